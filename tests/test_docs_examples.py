"""Every example in the README and the docs runs and prints what it shows.

A page is run top to bottom in one namespace and one empty folder. `python` blocks run as they
stand, or as doctests if they have prompts; `console` blocks run each `$` line in a shell and
compare what it prints, unless they show no output. `...` in an output stands for anything.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]+)[^\n]*\n(?P<body>.*?)^ *(?P=fence)`* *$",
    re.M | re.S,
)
RUNNABLE = ("python", "pycon", "console")


@dataclass(frozen=True)
class Example:
    """One code block: its language, text and the line on which the text starts."""

    language: str
    text: str
    line: int


def examples(page: str) -> list[Example]:
    """The blocks of a page that can be run, in order."""
    return [
        Example(
            found["language"], dedent(found["body"]), page.count("\n", 0, found.start("body")) + 1
        )
        for found in FENCE.finditer(page)
        if found["language"] in RUNNABLE
    ]


def run_page(path: Path) -> int:
    """Run every example of a page in the current folder; the number of them."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    found = examples(path.read_text(encoding="utf-8"))
    for example in found:
        if example.language == "console":
            run_console(example, path)
        elif ">>>" in example.text:
            run_doctest(example, path, namespace)
        else:
            source = "\n" * (example.line - 1) + example.text
            exec(compile(source, str(path), "exec"), namespace)  # noqa: S102
    return len(found)


def run_doctest(example: Example, path: Path, namespace: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(
        example.text, namespace, path.name, str(path), example.line - 1
    )
    runner = doctest.DebugRunner(optionflags=OPTIONS, verbose=False)
    try:
        runner.run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        where = f"{path.name}, line {example.line + failure.example.lineno}"
        raise AssertionError(
            f"{where}: expected\n{failure.example.want}\ngot\n{failure.got}"
        ) from None
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None
    namespace.update(test.globs)


def run_console(example: Example, path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "100"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    for command, expected in console_commands(example.text):
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            check=False,
        )
        where = f"{path.name}, line {example.line}: $ {command}"
        assert done.returncode == 0, f"{where}\nexit code {done.returncode}\n{done.stdout}"
        matches = doctest.OutputChecker().check_output(expected, done.stdout, OPTIONS)
        assert matches or not expected.strip(), f"{where}\nexpected\n{expected}\ngot\n{done.stdout}"


def console_commands(text: str) -> list[tuple[str, str]]:
    """Commands with what they should print; a line that ends with a backslash goes on."""
    joined = re.sub(r"\\\n> ?|\\\n", "", text)
    parts = re.split(r"^\$ ", joined, flags=re.M)[1:]
    return [(command, expected) for command, _, expected in (p.partition("\n") for p in parts)]


PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if "_build" not in path.parts and examples(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_example_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(page) > 0


@pytest.mark.parametrize(
    "block",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
        "```console\n$ echo two\nthree\n```\n",
        "```console\n$ exit 1\n```\n",
    ],
)
def test_a_wrong_example_is_noticed(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises(AssertionError):
        run_page(page)


def test_blocks_share_a_namespace_and_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\nx = Path('x.txt').write_text('seen')\n```\n"
        "- indented\n  ```python\n  >>> x\n  4\n  ```\n"
        "```console\n$ cat \\\n> x.txt\nse...n\n$ true\n```\n"
    )
    assert run_page(page) == 3
