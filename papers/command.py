"""`make reproduce`: run experiments, keep them, write and show what they found."""

from __future__ import annotations

from pathlib import Path

from papers.registry import Experiment, Progress, Size, all_experiments, select
from papers.result import result_to_dict
from papers.runner import Reproduction, finished, run
from papers.write import write_all, write_docs
from quiltwork import files
from quiltwork.cli.command import argument, command, option
from quiltwork.cli.output import emit, progress, text_table
from quiltwork.errors import UnsupportedError


@command(
    example="""
    make reproduce ONLY=--list
    make reproduce ONLY=geometric-figure-2
    make reproduce FULL=1
    python -m papers geometric-figure-2 --full --docs docs/_generated
    """
)
def reproduce(
    names: tuple[str, ...] = argument(required=False),
    listing: bool = option("Show the experiments and stop.", names="--list"),
    full: bool = option("Run the full sizes instead of the quick ones."),
    fresh: bool = option("Run again what is already finished."),
    output: Path = option(
        "Folder for figures, CSV, the page index.html and finished results.",
        names="-o --output",
        default=Path("reproduction"),
    ),
    docs: Path | None = option(
        "Also write Markdown pieces with their figures here, for the documentation.",
    ),
) -> None:
    """Put the papers' published values beside ours.

    Runs every experiment, or those named. A finished experiment is kept and not run again while
    the code and its size stay the same, so an interrupted run goes on where it stopped. One whose
    data are not here is skipped, unless it is named.
    """
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
