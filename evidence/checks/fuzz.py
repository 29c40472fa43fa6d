"""Hostile input to every command and every public function.

A command ends with exit code 0, 1, 2 or 3 and a sentence, a function answers or raises one of our
errors, and neither takes long or fills the memory. Half of the cases are command lines, half calls.
Case by case the same values come up in every run; releases draw real noise.
"""

from __future__ import annotations

import faulthandler
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from types import FrameType

import numpy as np

from evidence.fuzzing import commands, functions, workspace

NAME = "Hostile input"
CLAIM = "whatever is typed or passed, a command or a function answers or refuses in a sentence"
CASES = 40_000
SECONDS, MOST_SECONDS = 20, 120
MEMORY = 4 << 30


class TooLong(BaseException):
    """Not an Exception, which the command line would turn into a sentence."""


def run(progress: Callable[[int, int], None]) -> dict[str, int]:
    """All cases, within limits of time and memory."""
    with _limited():
        return check(CASES, progress, seconds=SECONDS)


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    only: Callable[[str], bool] = lambda name: True,
    seconds: float = 0.0,
) -> dict[str, int]:
    """Run cases of the commands and functions that `only` takes; `seconds` 0 is no limit.

    Goes on after a violation, and tells them all at the end, one of each kind.
    """
    lines = [line for line in commands.ORDINARY if only(line)]
    calls = [(name, make) for name, make in callables().items() if only(name)]
    violations: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        template = _template(Path(scratch))
        for case in range(cases):
            rng = np.random.default_rng([20261116, case])
            turn = case // 2 if lines and calls else case
            if calls and (case % 2 or not lines):
                name, make = calls[turn % len(calls)]
                attempt = partial(_call, template.with_name("calls"), name, make, rng)
            else:
                words = commands.altered(lines[turn % len(lines)], rng)
                name = " ".join(word[:80] for word in words)
                attempt = partial(commands.trouble, words, template, rng)
            found = _within(seconds, attempt)
            if found:
                violations.setdefault(
                    re.sub(r"\d", "", found)[-200:], f"case {case}: {name}\n{found}"
                )
            progress(case + 1, cases)
    assert not violations, "\n\n".join(violations.values())
    return {
        "commands": len(commands.commands()),
        "public functions, classes and methods": len(calls),
        "cases": cases,
        "violations": 0,
    }


def _call(folder: Path, name: str, make: Callable[[], object], rng: np.random.Generator) -> str:
    with workspace.inside(folder):
        return functions.trouble(name, make, rng)


def callables() -> dict[str, Callable[[], Callable[..., object]]]:
    """What `functions` finds, with the files that this makes in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch, workspace.inside(Path(scratch)):
        return functions.callables()


def _template(scratch: Path) -> Path:
    template, calls = scratch / "template", scratch / "calls"
    template.mkdir()
    calls.mkdir()
    (calls / "states.csv").write_text("state\nrest\nwalk\n")
    with redirect_stdout(StringIO()):
        workspace.build(template)
    return template


def _within(seconds: float, attempt: Callable[[], str]) -> str:
    """Make an attempt; after so many seconds of work, say so; if that is not heard, end all."""
    if not seconds:
        return attempt()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
    try:
        return attempt()
    except TooLong as error:
        inside = traceback.extract_tb(error.__traceback__)[-2]
        return f"more than {seconds:g} seconds, at last in {inside.name}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def _limited() -> Iterator[None]:
    """Hear the alarm, and refuse memory beyond what one case may take."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before, limits = signal.signal(signal.SIGPROF, ring), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)
