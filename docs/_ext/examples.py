"""Run the examples of a page; the site and `make test` use the same code.

A page is run top to bottom in one namespace and one empty folder. `python` blocks run as they
stand, or as doctests if they have prompts; an `output` block is what the blocks since the last
one print; `console` blocks run each `$` line in a shell and compare what it prints, unless they
show no output. `...` in an output stands for anything.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\{?[\w-]+\}?)(?P<rest>[^\n]*)\n"
    r"(?P<body>.*?)^ *(?P=fence)`* *$",
    re.M | re.S,
)
RUNNABLE = ("python", "pycon", "console", "output")
PICTURE = "{picture}"
COLUMNS = "100"


@dataclass(frozen=True)
class Example:
    """A fenced block: language, rest of its first line, text, and the line of the text."""

    language: str
    rest: str
    text: str
    line: int


def blocks(page: str) -> list[Example]:
    """Return the fenced blocks of a page, in order."""
    return [
        Example(
            match["language"],
            match["rest"].strip(),
            dedent(match["body"]),
            page.count("\n", 0, match.start("body")) + 1,
        )
        for match in FENCE.finditer(page)
    ]


def examples(page: str) -> list[Example]:
    """Return the runnable blocks of a page, in order."""
    return [block for block in blocks(page) if block.language in RUNNABLE]


def pictures(path: Path) -> Iterator[tuple[int, object]]:
    """Run every block of a page in the current folder; yield the line and value of each picture."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == PICTURE:
            yield block.line, eval(block.rest, namespace)  # noqa: S307
        elif block.language == "output":
            compare(block, path, printed.getvalue())
            printed = io.StringIO()
        elif block.language == "console":
            run_console(block, path)
        elif block.language in RUNNABLE and ">>>" in block.text:
            run_doctest(block, path, namespace)
        elif block.language in RUNNABLE:
            source = "\n" * (block.line - 1) + block.text
            with redirect_stdout(printed):
                exec(compile(source, str(path), "exec"), namespace)  # noqa: S102


def run_page(path: Path) -> int:
    """Run every example of a page in the current folder and return their number."""
    for _ in pictures(path):
        pass
    return len(examples(path.read_text(encoding="utf-8")))


def compare(block: Example, path: Path, printed: str) -> None:
    if not doctest.OutputChecker().check_output(block.text, printed, OPTIONS):
        where = f"{path.name}, line {block.line}"
        raise AssertionError(f"{where}: expected\n{block.text}\ngot\n{printed}")


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
    for command, expected in console_commands(example.text):
        code, printed = run_command(command)
        where = f"{path.name}, line {example.line}: $ {command}"
        assert code == 0, f"{where}\nexit code {code}\n{printed}"
        matches = doctest.OutputChecker().check_output(expected, printed, OPTIONS)
        assert matches or not expected.strip(), f"{where}\nexpected\n{expected}\ngot\n{printed}"


def run_command(command: str) -> tuple[int, str]:
    """Return exit code and output; `quiltwork` runs in this process, which saves its start-up."""
    if command.startswith("quiltwork ") and not re.search(r"[|&;<>$*`~]", command):
        from quiltwork.cli.boundary import run

        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            return run(shlex.split(command)[1:]), printed.getvalue()
    environment = {**os.environ, "COLUMNS": COLUMNS}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout


def console_commands(text: str) -> list[tuple[str, str]]:
    """Return commands with their expected output; a backslash continues a line."""
    joined = re.sub(r"\\\n> ?|\\\n", "", text)
    parts = re.split(r"^\$ ", joined, flags=re.M)[1:]
    return [(command, expected) for command, _, expected in (p.partition("\n") for p in parts)]
