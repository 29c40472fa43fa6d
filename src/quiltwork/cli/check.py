"""`quiltwork check`: what the owner's files look like, before anything else."""

from __future__ import annotations

import shlex
from contextlib import suppress

import click

from quiltwork.cli.command import argument, command, option, option_group, split_list
from quiltwork.cli.output import emit, note
from quiltwork.cli.table_options import ReadingOptions
from quiltwork.delimited import DialectOptions
from quiltwork.errors import QuiltworkError


@command(
    example="""
    quiltwork check a.csv b.csv c.csv
    quiltwork check a.csv b.csv --na=-9 --rename AGE=age --in a.csv:delimiter=;
    quiltwork check meters.csv --time time --value kw --subject meter --timezone Europe/Berlin
    """
)
def check(
    files: tuple[str, ...] = argument(),
    text: str = option("Columns that are text, whatever they look like.", "COLUMNS", default=""),
    reading: ReadingOptions = option_group(ReadingOptions),
    time: str | None = option("FILES is one file of series, with times in this column.", "COLUMN"),
    value: str | None = option("Of series: the column with states or numbers.", "COLUMN"),
    subject: str | None = option(
        "Of series: the columns of subject names: house,meter.", "COLUMNS"
    ),
    only: str | None = option("Of series: look at this subject alone.", "NAME"),
    timezone: str | None = option("Of times without an offset: Europe/Berlin.", "ZONE"),
) -> None:
    """Look at your own files: how they are read, and what is odd.

    FILES are CSV or Parquet, of one table or of several providers. For each column: its type as
    the other commands read it, the cells that decided that, spellings that differ by case or
    blanks, what is missing, and equal rows. Of a file of series (--time, --value): the step, each
    subject's first and last time, doubled times and holes with their rows, and the states or
    numbers. It shows cells, so it is for the screen of the owner of the rows. Nothing is released
    or spent; do not decide by it what a release protects.
    """
    if time is not None or value is not None:
        _check_series(files, reading, time, value, subject, only, timezone)
        return
    if subject is not None or timezone is not None or only is not None:
        raise click.UsageError(
            "--subject, --only and --timezone are of series: add --time and --value"
        )
    from quiltwork.tables.file_check import check_files

    result = check_files(files, split_list(text), reading.of(files))
    emit(result.to_json(), result.explain().splitlines())
    if len(files) == 1:
        _suggest_series(files[0], _dialect(reading))


def _dialect(reading: ReadingOptions) -> DialectOptions:
    words = split_list(reading.na_values or "")
    return DialectOptions(reading.delimiter, encoding=reading.encoding, na_values=words)


def _suggest_series(path: str, dialect: DialectOptions) -> None:
    """Say how to look at a file as a series, if one of its columns holds times."""
    from quiltwork.series.reading.series_check import find_series_columns

    columns = None
    with suppress(QuiltworkError, OSError):  # Parquet and pipes get no suggestion
        columns = find_series_columns(path, dialect)
    if columns is not None:
        time, value = map(shlex.quote, columns)
        note(
            f"Column {columns[0]!r} holds times. If the rows are a series, look at them as one: "
            f"quiltwork check {shlex.quote(path)} --time {time} --value {value}"
        )


def _check_series(
    files: tuple[str, ...],
    reading: ReadingOptions,
    time: str | None,
    value: str | None,
    subject: str | None,
    only: str | None,
    timezone: str | None,
) -> None:
    from quiltwork.series.reading.columns import only_column
    from quiltwork.series.reading.series_check import check_series

    if len(files) != 1 or reading.rename or reading.each:
        raise click.UsageError("Series are looked at file by file, without --rename and --in")
    subjects = split_list(subject or "")
    beside = [name for name in (time, *subjects) if name not in (None, "filename")]
    result = check_series(
        files[0],
        value or only_column(files[0], beside, []),
        time=time,
        subject=subjects or None,
        only=only,
        timezone=timezone,
        dialect=_dialect(reading),
    )
    emit(result.to_json(), result.explain().splitlines())
