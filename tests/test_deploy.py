"""The files of `deploy` name what is there: files of the checkout, options of the commands."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import jinja2
import yaml

from quiltwork import __version__
from quiltwork.cli.serve import serve

ROOT = Path(__file__).resolve().parent.parent
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
UNIT = (ROOT / "deploy" / "quiltwork.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")


def options(words: list[str]) -> None:
    """Read what follows `quiltwork serve` as the command would, without running it."""
    after = words[words.index("serve") + 1 :]
    with click.Context(serve) as context:
        serve.parse_args(context, after)


def test_a_container_is_built_from_files_of_the_checkout():
    for line in re.findall(r"^COPY (?!--from)(.*)", CONTAINERFILE, re.M):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources)
    for name in re.findall(r"-r /build/(\S+)", CONTAINERFILE):
        assert (ROOT / name).exists()


def test_container_and_unit_start_the_curator_with_options_that_it_knows():
    parts = re.findall(r"^(?:ENTRYPOINT|CMD) \[(.*)\]", CONTAINERFILE, re.M)
    options([word.strip(' "') for part in parts for word in part.split(",")])
    options(shlex.split(re.search(r"^ExecStart=(.*)", UNIT, re.M)[1]))
    for line in re.findall(r"^quiltwork serve.*", PAGE, re.M):
        options(shlex.split(line))


def test_neither_runs_as_root_nor_carries_a_secret():
    assert re.search(r"^USER (?!root)", CONTAINERFILE, re.M)
    assert re.search(r"^User=(?!root)", UNIT, re.M)
    for text in (CONTAINERFILE, UNIT):
        assert not re.search(r"(KEY|PASSWORD|TOKEN)=\w", text)


def rendered_recipe():
    """The conda recipe as conda-build would read it; its functions are stood in for."""

    def load_file_regex(load_file, regex_pattern, *, from_recipe_dir):
        assert from_recipe_dir
        text = (ROOT / "deploy" / "conda" / load_file).read_text(encoding="utf-8")
        return re.search(regex_pattern, text)

    text = (ROOT / "deploy" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    names = {
        "load_file_regex": load_file_regex,
        "compiler": "c-compiler".format,
        "PYTHON": "python",
    }
    return yaml.safe_load(jinja2.Template(text, undefined=jinja2.StrictUndefined).render(names))


def test_the_conda_recipe_builds_this_version_and_asks_for_what_the_wheel_asks_for():
    recipe = rendered_recipe()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [one.replace(">=", " >=") for one in project["project"]["dependencies"]]
    python = f"python {project['project']['requires-python']}"
    assert recipe["requirements"]["run"] == [python, *wanted]
    backend = [one.replace(">=", " >=") for one in project["build-system"]["requires"]]
    assert set(backend) <= set(recipe["requirements"]["host"])
    assert recipe["package"]["version"] == __version__
    source = (ROOT / "deploy" / "conda" / recipe["source"]["path"]).resolve()
    assert source == ROOT
    assert (source / recipe["about"]["license_file"]).exists()
