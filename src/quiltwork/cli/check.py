"""`quiltwork check`: a look at one's own files before anything else."""

from __future__ import annotations

import click

from quiltwork.cli.command import argument, command, option, option_group, split_list
from quiltwork.cli.output import emit
from quiltwork.cli.table_options import ReadingOptions


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
    time: str | None = option("FILES is one of series, with times in this column.", "COLUMN"),
    value: str | None = option("Of series: the column with states or numbers.", "COLUMN"),
    subject: str | None = option("Of series: tells subjects apart: house,meter.", "COLUMNS"),
    timezone: str | None = option("Of times without an offset: Europe/Berlin.", "ZONE"),
) -> None:
    """Look at your own files: how they are read, what is odd.

    FILES are CSV or Parquet, of one table or of several providers. For each column: its type as
    the other commands read it, the cells that decided that, spellings that differ by case or
    blanks, what is missing, and equal rows. Of a file of series (--time, --value): the step, each
    subject's first and last time, doubled times and holes with their rows, and the states or
    numbers. It shows cells, so it is for the screen of whoever owns the rows. Nothing is released
    or spent; do not decide by it what a release protects.
    """
    if time is not None or value is not None:
        _look_at_series(files, reading, (time, value, subject, timezone))
        return
    if subject is not None or timezone is not None:
        raise click.UsageError("--subject and --timezone are of series: add --time and --value")
    from quiltwork.tables.file_check import check_files

    found = check_files(files, split_list(text), reading.of(files))
    emit(found.to_json(), found.explain().splitlines())


def _look_at_series(
    files: tuple[str, ...],
    reading: ReadingOptions,
    columns: tuple[str | None, str | None, str | None, str | None],
) -> None:
    from quiltwork.delimited import DialectOptions
    from quiltwork.series.reading.columns import only_column
    from quiltwork.series.reading.series_check import look_at_series

    time, value, subject, timezone = columns
    if len(files) != 1 or reading.rename or reading.each:
        raise click.UsageError("Series are looked at file by file, without --rename and --in")
    subjects = split_list(subject or "")
    beside = [name for name in (time, *subjects) if name not in (None, "filename")]
    said = split_list(reading.na_values or "")
    seen = look_at_series(
        files[0],
        value or only_column(files[0], beside, []),
        time=time,
        subject=subjects or None,
        timezone=timezone,
        given=DialectOptions(reading.delimiter, encoding=reading.encoding, na_values=said),
    )
    emit(seen.to_json(), seen.explain().splitlines())
