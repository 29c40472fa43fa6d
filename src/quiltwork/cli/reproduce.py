"""`quiltwork reproduce`: published values beside ours, in a checkout."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from quiltwork.cli.checkout import checkout_with
from quiltwork.cli.command import command, option


@command(
    example="""
    quiltwork reproduce --list
    quiltwork reproduce geometric-figure-2
    quiltwork reproduce --full --output reproduction
    """
)
@click.argument("names", nargs=-1)
@option("--list", "Show the experiments and stop.", bool, into="listing")
@option("--full", "Run the full sizes instead of the quick ones.", bool)
@option("--fresh", "Run again what is already finished.", bool)
@option(
    "-o --output",
    "Folder for figures, CSV, the page index.html and finished results.",
    click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
)
@option(
    "--docs",
    "Also write Markdown pieces with their figures here, for the documentation.",
    click.Path(file_okay=False, path_type=Path),
)
def reproduce(
    names: tuple[str, ...],
    listing: bool,
    full: bool,
    fresh: bool,
    output: Path,
    docs: Path | None,
) -> None:
    """Put the papers' published values beside ours, in a checkout.

    Runs every experiment, or those named. A finished experiment is kept and not run again while
    the code and its size stay the same, so an interrupted run goes on where it stopped. One whose
    data are not here is skipped, unless it is named.
    """
    what = "papers/command.py", "The papers' experiments", "quiltwork reproduce"
    root = str(checkout_with(*what))
    if root not in sys.path:
        sys.path.insert(0, root)
    import_module("papers.command").reproduce(names, listing, full, fresh, output, docs)
