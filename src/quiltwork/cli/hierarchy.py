"""`quiltwork hierarchy`: builds a generalization hierarchy by rule, in ARX's CSV format."""

from __future__ import annotations

import click

from quiltwork.cli.command import argument, command, exact_number, option, option_group, split_list
from quiltwork.cli.output import check_targets, emit
from quiltwork.cli.table_options import ReadingOptions
from quiltwork.exact import counted
from quiltwork.files import dump


@command(
    example="""
    quiltwork hierarchy a.csv b.csv --column age --intervals 5,10,20 -o age.csv
    quiltwork hierarchy a.csv b.csv --column zip --prefixes 3,2 -o zip.csv
    quiltwork hierarchy visits.csv --column day --dates month,year -o day.csv
    """
)
def hierarchy(
    files: tuple[str, ...] = argument(),
    column: str = option("The column whose values the hierarchy covers.", "NAME"),
    intervals: str | None = option(
        "Widths of intervals of numbers, each a multiple of the one before.", "WIDTHS"
    ),
    origin: object = option("The number at which intervals begin.", kind=exact_number, default="0"),
    prefixes: str | None = option(
        "The number of first characters of codes that each level keeps.", "CHARACTERS"
    ),
    dates: str | None = option("Periods of dates: month, quarter, year, decade.", "LEVELS"),
    output: str = option(
        "Where to write the hierarchy; edit it as you like.", "FILE", names="-o --output"
    ),
    reading: ReadingOptions = option_group(ReadingOptions),
) -> None:
    """Make a hierarchy for a column, in ARX's format.

    Use the file with `anonymize --hierarchy`, or in ARX. FILES are CSV or Parquet tables. Each line
    of the hierarchy is a value and its generalizations up to `*`, separated by semicolons. Values
    that occur in no file are not covered: add their lines by hand. Give the same reading options
    (--na, --rename, --in, --delimiter) as to `anonymize`, so that both read the same values.
    """
    from quiltwork.tables.codes.hierarchies import Hierarchy
    from quiltwork.tables.input.frames import open_frames

    if sum(rule is not None for rule in (intervals, prefixes, dates)) != 1:
        raise click.UsageError("give one of --intervals, --prefixes and --dates")
    check_targets(output, inputs=files)
    values: list[object] = []
    frames = open_frames([*files], [column] if prefixes else [], reading.of(files))
    for name, frame in zip(files, frames, strict=True):
        if column not in frame.names:
            raise click.UsageError(f"{name} has no column {column!r}")
        values += frame.column(column).to_pylist()
    if intervals is not None:
        tree = Hierarchy.intervals(values, map(exact_number, split_list(intervals)), origin)  # type: ignore[arg-type]
    elif prefixes is not None:
        tree = Hierarchy.prefixes(values, _whole(prefixes))
    else:
        tree = Hierarchy.dates(values, split_list(dates))  # type: ignore[arg-type]
    tree.write(output)
    body = {"column": column, "values": len(tree.paths), "levels": tree.depth, "output": output}
    line = f"{counted(len(tree.paths), 'value')} in {tree.depth} levels: {output}"
    emit(dump("hierarchy", 1, body), [line, ";".join(tree.paths[0])])


def _whole(numbers: str) -> list[int]:
    """Parse the levels of --prefixes."""
    if not all(number.isdecimal() for number in split_list(numbers)):
        raise click.UsageError("--prefixes must be whole numbers, such as 3,2")
    return [int(number) for number in split_list(numbers)]
