"""Output of commands: one JSON document or lines of text on stdout, progress on stderr."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quiltwork import files
from quiltwork.cli.command import JSON_KEY, output_option, plot_option, report_option
from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

Parsed = TypeVar("Parsed")
_FIRST_LOG_LINE = 10
"""Seconds until long work writes its first line to a log."""


def as_json() -> bool:
    """Whether the running command has --json."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(JSON_KEY))


def emit(document: str, human_lines: Iterable[str]) -> None:
    """Print a result: with `--json` the document (from `files.dump`), else the lines."""
    _WORKING.stop()
    if as_json():
        click.echo(document)
        return
    for line in human_lines:
        click.echo(line)


def note(line: str) -> None:
    """Print a remark on stderr; with `--json` in the format of a warning."""
    document = files.dump("warning", 1, {"warning": {"message": line}})
    click.echo(document if as_json() else line, err=True)


def check_targets(
    output: str | None,
    report: str | None = None,
    plot: str | None = None,
    inputs: Iterable[str] = (),
) -> None:
    """Check output files before anything is spent.

    Refuses files that cannot be written, are an input, or are named twice; - is standard output.
    """
    sources = {Path(os.path.realpath(file)) for file in inputs}
    written: set[Path] = set()
    for path in (None if output == "-" else output, report, plot):
        if path is None:
            continue
        target = Path(os.path.realpath(path))
        if target in sources:
            raise click.UsageError(f"{path} is one of the inputs; write to another file")
        if sources & set(target.parents):
            raise click.UsageError(f"{path} is inside one of the inputs; write to another folder")
        if target in written:
            raise click.UsageError(f"{path} is named for two outputs; name two files")
        files.check_writable(path)
        written.add(target)
    if plot is not None:
        from quiltwork.report.figures import check_figure_path

        check_figure_path(plot)


def report_and_chart(
    result: Any, report: str | None, plot: str | None, *choices: Any, **more: Any
) -> Iterator[Callable[[], object]]:
    """Yield the functions that write the requested report and chart, for `deliver`."""
    if report is not None:
        yield partial(result.report, report, *choices, **more)
    if plot is not None:
        from quiltwork.report.figures import write_figure

        yield lambda: write_figure(plot, result.chart(*choices))


def deliver(
    document: str,
    human_lines: Iterable[str],
    writes: Iterable[Callable[[], object]] = (),
    output: str | None = None,
) -> None:
    """Write and print an answer that was paid for, so that no failure loses it.

    With `output` the document goes to that file, or for - to standard output in place of the lines.
    If a file cannot be written, the answer is still printed; if it cannot be printed, the document
    goes to stderr. The first failure is raised at the end.
    """
    if output not in (None, "-"):
        writes = [*writes, partial(files.write, output or "", document + "\n")]
    failures = []
    for write in writes:
        try:
            write()
        except Exception as error:
            failures.append(error)
    try:
        emit(document, [document] if output == "-" else human_lines)
    except BrokenPipeError:
        raise
    except Exception:
        click.echo(document, err=True)
        raise
    if failures:
        raise failures[0]


@dataclass(frozen=True)
class Targets:
    """The output options of a command: a file, a chart, a report."""

    output: str | None = output_option
    plot: str | None = plot_option
    report: str | None = report_option

    def check(self) -> None:
        """Check the output files before anything is spent."""
        check_targets(self.output, self.report, self.plot)

    def deliver(
        self, document: str, lines: Iterable[str], result: Any = None, *choices: Any, **more: Any
    ) -> None:
        """Write and print an answer, with the report and the chart of `result` if it is given."""
        if result is None:
            deliver(document, lines, (), self.output)
            return
        writes = report_and_chart(result, self.report, self.plot, *choices, **more)
        deliver(document, lines, writes, self.output)


class _WorkingLine:
    """Shows that work continues, until a progress bar replaces it.

    On a terminal one line from two seconds on; in a log a line after ten seconds, then at growing
    intervals.
    """

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._done.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        if not _has_terminal():
            seconds = pause = _FIRST_LOG_LINE
            while not self._done.wait(pause):
                sys.stderr.write(f"{working(seconds)}\n")
                sys.stderr.flush()
                seconds, pause = 3 * seconds, 2 * seconds
            return
        seconds, visible = 2, False
        while not self._done.wait(1 if visible else 2):
            sys.stderr.write(f"\r{working(seconds)}")
            sys.stderr.flush()
            seconds, visible = seconds + 1, True
        if visible:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def working(seconds: int) -> str:
    """Return the line shown while work continues."""
    return f"Working, {seconds} s …"


_WORKING = _WorkingLine()


@contextmanager
def working_line(quiet: bool) -> Iterator[None]:
    """Show during a block that work continues, unless `quiet`."""
    if not quiet:
        _WORKING.start()
    try:
        yield
    finally:
        _WORKING.stop()


def prompted(question: str, parse: Callable[[str], Parsed], default: str | None = None) -> Parsed:
    """Ask on the terminal until `parse` accepts the reply; its error message is shown."""

    def parsed(text: str) -> Parsed:
        try:
            return parse(text.strip())
        except InvalidInputError as error:
            raise click.UsageError(str(error)) from None

    _WORKING.stop()
    try:
        reply: Parsed = click.prompt(
            question, default, value_proc=parsed, show_default=default != "", err=True
        )
    finally:
        if not as_json():
            _WORKING.start()
    return reply


def progress(work: Iterable[Any] | int, label: str) -> AbstractContextManager[ProgressBar[Any]]:
    """Return a progress bar on stderr; an invisible one without a terminal or with `--json`.

    with progress(paths, "Reading") as bar:
        for path in bar: …
    with progress(1000, "Drawing") as bar:
        bar.update(10)
    """
    if _has_terminal():
        _WORKING.stop()  # the bar shows more
    steps = {"length": work} if isinstance(work, int) else {"iterable": work}
    stream = sys.stderr if _has_terminal() and not as_json() else StringIO()
    return click.progressbar(**steps, label=label, file=stream)


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of an aligned table: numbers to the right, text to the left.

    >>> print(*text_table(["sex", "count"], [["f", 12], ["m", 7]]), sep="\\n")
    sex  count
    f       12
    m        7
    """
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    columns = []
    for column in zip(*cells, strict=True):
        width, right = max(map(len, column)), all(map(_looks_numeric, column[1:]))
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def interval_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return an aligned table whose last column holds intervals valid for all cells at once.

    `header` leaves that column out; so does the table if there is only one row, where it repeats
    the interval of the cell.
    """
    if len(rows) == 1:
        return text_table(header, [row[:-1] for row in rows])
    return text_table([*header, "all at once"], rows)


def _has_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _looks_numeric(cell: str) -> bool:
    """Whether a cell is a number, a fraction, an interval or empty, not text such as `4 levels`."""
    return re.fullmatch(r"[-+−\d.,e/%\[\] ]*", cell) is not None
