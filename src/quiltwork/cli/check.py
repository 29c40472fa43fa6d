"""`quiltwork check`: a look at one's own files before anything else."""

from __future__ import annotations

from quiltwork.cli.command import argument, command, option, option_group, split_list
from quiltwork.cli.output import emit
from quiltwork.cli.tables import ReadingOptions


@command(
    example="""
    quiltwork check a.csv b.csv c.csv
    quiltwork check a.csv b.csv --na=-9 --rename AGE=age --in a.csv:delimiter=;
    """
)
def check(
    files: tuple[str, ...] = argument(),
    text: str = option("Columns that are text, whatever they look like.", "COLUMNS", default=""),
    reading: ReadingOptions = option_group(ReadingOptions),
) -> None:
    """Look at your own files: how they are read, what is odd.

    FILES are CSV or Parquet, of one table or of several providers. For each column: its type as
    the other commands read it, the cells that decided that, spellings that differ by case or
    blanks, what is missing, and equal rows. It shows cells, so it is for the screen of whoever owns
    the rows. Nothing is released or spent; do not decide by it what a release protects.
    """
    from quiltwork.tables.look import look_at

    found = look_at(files, split_list(text), reading.of(files))
    emit(found.to_json(), found.explain().splitlines())
