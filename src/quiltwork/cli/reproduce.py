"""`quiltwork reproduce`: published values beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quiltwork import files
from quiltwork.cli.command import command
from quiltwork.cli.output import emit, progress, text_table
from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from quiltwork.reproduce.registry import Experiment, Progress, Size
    from quiltwork.reproduce.runner import Reproduction


@command(
    example="""
    quiltwork reproduce --list
    quiltwork reproduce geometric-figure-2
    quiltwork reproduce --full --output reproduction
    """
)
@click.argument("names", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Show the experiments and stop.")
@click.option("--full", is_flag=True, help="Run the full sizes instead of the quick ones.")
@click.option("--fresh", is_flag=True, help="Run again what is already finished.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for figures, CSV, the page index.html and finished results.",
)
@click.option(
    "--docs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write Markdown pieces with their figures here, for the documentation.",
)
def reproduce(
    names: tuple[str, ...],
    listing: bool,
    full: bool,
    fresh: bool,
    output: Path,
    docs: Path | None,
) -> None:
    """Put the papers' published values beside ours.

    Runs every experiment, or those named. A finished experiment is kept and not run again while
    the code and its size stay the same, so an interrupted run goes on where it stopped. One whose
    data are not here is skipped, unless it is named.
    """
    from quiltwork.reproduce import all_experiments, run, select
    from quiltwork.reproduce.write import write_all, write_docs

    chosen = select(names)
    if listing:
        _show_list(chosen)
        return
    size: Size = "full" if full else "quick"
    outcomes: dict[str, Reproduction] = {}
    skipped: dict[str, str] = {}
    for one in chosen:
        try:
            with progress(1000, one.name) as bar:
                outcomes[one.name] = run(one, size, output, _report(bar), fresh=fresh)
                _report(bar)(1, 1)
        except UnsupportedError as error:
            if names:
                raise
            skipped[one.name] = str(error)  # its data or extra is not here; the others go on
    shown = _with_earlier(outcomes, list(all_experiments().values()), size, output)
    index = write_all(shown, output)[0]
    written = [index, *(write_docs(outcomes.values(), docs) if docs else [])]
    _show_outcomes(list(outcomes.values()), skipped, written)


def _report(bar: object) -> Progress:
    """Turn (done, total) into steps of a bar with 1000 of them."""

    def report(done: int, total: int) -> None:
        target = 1000 * done // max(1, total)
        bar.update(max(0, target - bar.pos))  # type: ignore[attr-defined]

    return report


def _with_earlier(
    outcomes: dict[str, Reproduction], known: list[Experiment], size: Size, folder: Path
) -> list[Reproduction]:
    """Add what earlier runs finished, so that the page grows with each run."""
    from quiltwork.reproduce import finished

    found = [outcomes.get(one.name) or finished(one, size, folder) for one in known]
    return [one for one in found if one is not None]


def _show_list(chosen: list[Experiment]) -> None:
    body = [
        {
            "name": one.name,
            "title": one.title,
            "item": one.item,
            "quick": dict(one.quick),
            "full": dict(one.full),
        }
        for one in chosen
    ]
    rows = [(one.name, one.item, one.title) for one in chosen]
    emit(
        files.dump("experiments", 1, {"experiments": body}),
        text_table(["experiment", "item", "what"], rows),
    )


def _show_outcomes(
    outcomes: list[Reproduction], skipped: dict[str, str], written: list[Path]
) -> None:
    from quiltwork.reproduce.result import result_to_dict

    body = {
        "outcomes": [
            {
                "name": one.experiment.name,
                "size": one.size,
                "seconds": one.seconds,
                "kept": one.kept,
                "result": result_to_dict(one.result),
            }
            for one in outcomes
        ],
        "skipped": skipped,
        "files": [str(path) for path in written],
    }
    lines = []
    for one in outcomes:
        origin = "finished earlier" if one.kept else f"{one.seconds:.3g} s"
        lines += [f"{one.experiment.name}: {one.experiment.title} ({one.size}, {origin})"]
        rows = [
            (r.quantity, r.published_text(), r.ours_text(), r.comparison()) for r in one.result.rows
        ]
        table = text_table(["quantity", "published", "ours", "difference"], rows)
        lines += [f"  {line}" for line in table] + [""]
    lines += [f"{name}: skipped. {reason}" for name, reason in skipped.items()]
    lines += [f"Page: {written[0]}"]
    emit(files.dump("reproduction-run", 1, body), lines)
