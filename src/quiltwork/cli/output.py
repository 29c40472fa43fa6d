"""What commands print: one JSON document or lines for people on stdout, progress on stderr."""

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

Read = TypeVar("Read")
_LOGGED = 10
"""Seconds after which work says so where nobody watches a terminal."""


def as_json() -> bool:
    """Tell whether the running command was asked for JSON."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(JSON_KEY))


def emit(document: str, human_lines: Iterable[str]) -> None:
    """Print the result: `document` (from `files.dump`) under `--json`, else the lines."""
    _PATIENCE.stop()
    if as_json():
        click.echo(document)
        return
    for line in human_lines:
        click.echo(line)


def note(line: str) -> None:
    """Say something beside the result, on stderr; under `--json` as a warning is said."""
    document = files.dump("warning", 1, {"warning": {"message": line}})
    click.echo(document if as_json() else line, err=True)


def check_targets(
    output: str | None,
    report: str | None = None,
    plot: str | None = None,
    inputs: Iterable[str] = (),
) -> None:
    """Refuse, before anything is spent, files that cannot be written, are inputs or the same.

    - is standard output.
    """
    read = {Path(os.path.realpath(file)) for file in inputs}
    written: set[Path] = set()
    for path in (None if output == "-" else output, report, plot):
        if path is None:
            continue
        place = Path(os.path.realpath(path))
        if place in read:
            raise click.UsageError(f"{path} is one of the inputs; write to another file")
        if read & set(place.parents):
            raise click.UsageError(f"{path} is inside one of the inputs; write to another folder")
        if place in written:
            raise click.UsageError(f"{path} is to be written twice; name two files")
        files.check_writable(path)
        written.add(place)
    if plot is not None:
        from quiltwork.report.figures import check_figure_path

        check_figure_path(plot)


def pictures(
    result: Any, report: str | None, plot: str | None, *choices: Any, **more: Any
) -> Iterator[Callable[[], object]]:
    """Give what writes a result's page and its chart, where they were asked for, to `deliver`."""
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
    """Write and print an answer that was paid for, and lose it in no case.

    With `output` the document goes to that file, or for - to standard output, where nothing else
    is printed then. A file that fails does not keep the answer from being printed; an answer that
    cannot be printed goes to stderr as a document. The first failure is raised at the end.
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
    """Where an answer goes, as it was typed."""

    output: str | None = output_option
    plot: str | None = plot_option
    report: str | None = report_option

    def check(self) -> None:
        """Refuse, before anything is spent, files that cannot be written."""
        check_targets(self.output, self.report, self.plot)

    def deliver(
        self, document: str, lines: Iterable[str], result: Any = None, *choices: Any, **more: Any
    ) -> None:
        """Write and print an answer, with the page and the chart of a result if there is one."""
        found = () if result is None else pictures(result, self.report, self.plot, *choices, **more)
        deliver(document, lines, found, self.output)


class _Patience:
    """Tells that work goes on, unless a progress bar does.

    On a terminal from two seconds on, in one line; elsewhere, in a log, by a line after ten seconds
    and then ever more rarely.
    """

    def __init__(self) -> None:
        self._done = threading.Event()
        self._clock: threading.Thread | None = None

    def start(self) -> None:
        self._done.clear()
        self._clock = threading.Thread(target=self._tell, daemon=True)
        self._clock.start()

    def stop(self) -> None:
        self._done.set()
        if self._clock is not None:
            self._clock.join()
            self._clock = None

    def _tell(self) -> None:
        if not _has_terminal():
            seconds = waited = _LOGGED
            while not self._done.wait(waited):
                sys.stderr.write(f"{working(seconds)}\n")
                sys.stderr.flush()
                seconds, waited = 3 * seconds, 2 * seconds
            return
        seconds, told = 2, False
        while not self._done.wait(2 if not told else 1):
            sys.stderr.write(f"\r{working(seconds)}")
            sys.stderr.flush()
            seconds, told = seconds + 1, True
        if told:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def working(seconds: int) -> str:
    """Return the line that tells so."""
    return f"Working, {seconds} s …"


_PATIENCE = _Patience()


@contextmanager
def patience(quiet: bool) -> Iterator[None]:
    """Show that work goes on; nothing if `quiet`."""
    if not quiet:
        _PATIENCE.start()
    try:
        yield
    finally:
        _PATIENCE.stop()


def prompted(question: str, read: Callable[[str], Read], default: str | None = None) -> Read:
    """Ask on the terminal until `read` takes the answer; a sentence says why it did not."""

    def taken(text: str) -> Read:
        try:
            return read(text.strip())
        except InvalidInputError as error:
            raise click.UsageError(str(error)) from None

    _PATIENCE.stop()
    try:
        found: Read = click.prompt(
            question, default, value_proc=taken, show_default=default != "", err=True
        )
    finally:
        if not as_json():
            _PATIENCE.start()
    return found


def progress(work: Iterable[Any] | int, label: str) -> AbstractContextManager[ProgressBar[Any]]:
    """Draw a progress bar on stderr; none if that is no terminal, or under `--json`.

    with progress(paths, "Reading") as bar:
        for path in bar: …
    with progress(1000, "Drawing") as bar:
        bar.update(10)
    """
    if _has_terminal():
        _PATIENCE.stop()  # the bar tells more
    steps = {"length": work} if isinstance(work, int) else {"iterable": work}
    stream = sys.stderr if _has_terminal() and not as_json() else StringIO()
    return click.progressbar(**steps, label=label, file=stream)


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Align a table for the terminal: numbers to the right, text to the left.

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
    """Align cells with an interval of each, and last one for all at once: one cell's is the same.

    `header` leaves the last out.
    """
    if len(rows) == 1:
        return text_table(header, [row[:-1] for row in rows])
    return text_table([*header, "all at once"], rows)


def _has_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _looks_numeric(cell: str) -> bool:
    """Tell numbers, fractions and intervals from text such as `4 levels`; a gap may be either."""
    return re.fullmatch(r"[-+−\d.,e/%\[\] ]*", cell) is not None
