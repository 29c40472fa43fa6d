"""Every command, present and future: an example, --json, --debug, and no heavy import."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import click
import pytest

from quiltwork.cli.commands import COMMANDS
from quiltwork.cli.root_command import app


def walk(group: click.Group, path: str):
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None, name
        if isinstance(found, click.Group):
            yield from walk(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


ALL = dict(walk(app, "quiltwork"))


@pytest.mark.parametrize("path", ALL)
def test_help_shows_an_example_that_parses(path):
    shown = ALL[path].get_help(click.Context(ALL[path], info_name=path))
    assert "\nExample:\n" in shown
    examples = [line for line in shown.split("\nExample:\n")[1].splitlines() if path in line]
    assert examples, "the example must type the command itself"
    for line in examples:
        if line.strip().startswith(path):
            words = shlex.split(line.strip().rstrip("\\"), comments=True)
            words = words[: words.index(">")] if ">" in words else words
            flags = [word.partition("=")[0] for word in words if word.startswith("--")]
            known = {name for option in ALL[path].params for name in option.opts}
            assert set(flags) <= known


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_json_and_debug(path):
    names = {name for option in ALL[path].params for name in option.opts}
    assert {"--json", "--debug", "--help"} <= names | {"--help"}


@pytest.mark.parametrize("path", ALL)
def test_every_option_is_explained(path):
    for option in ALL[path].params:
        if isinstance(option, click.Option):
            assert option.help, option.name


def test_the_map_shows_every_command_under_its_job(cli):
    shown = cli("--help").out
    assert cli().out == shown
    for job, commands in COMMANDS.items():
        section = shown.split(f"\n{job}:\n")[1].split("\n\n")[0]
        listed = [line.split()[0] for line in section.splitlines()]
        assert listed == list(commands)
        for name, (_, does) in commands.items():  # said without importing the command
            assert app.get_command(click.Context(app), name).get_short_help_str(100) == does
    assert "..." not in shown.split("Options:")[1], "a summary is too long for the map"


def test_version(cli):
    from quiltwork import __version__

    assert cli("--version").out == f"quiltwork {__version__}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["count", "--help"]])
def test_help_and_version_load_neither_numpy_nor_scipy(arguments):
    code = (
        "import sys\n"
        "from quiltwork.cli.boundary import run\n"
        f"run({arguments!r})\n"
        "print(sorted(m for m in ('numpy', 'scipy', 'pandas', 'matplotlib') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_dash_m_is_the_same(cli):
    command = [sys.executable, "-m", "quiltwork", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"quiltwork \S+\n", done.stdout)
