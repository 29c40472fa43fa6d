"""The command behind `make reproduce`: run experiments, store them, write and print results."""

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
    """Compute the papers' results and put the published values beside them.

    Runs all experiments, or the named ones. A finished experiment is stored and not run again
    while its code and size stay the same, so an interrupted run continues where it stopped. An
    experiment whose data are missing is skipped; if it was named, that is an error.
    """
    chosen = select(names)
    if listing:
        _show_list(chosen)
        return
    size: Size = "full" if full else "quick"
    outcomes: dict[str, Reproduction] = {}
    skipped: dict[str, str] = {}
    for experiment in chosen:
        try:
            with progress(1000, experiment.name) as bar:
                outcomes[experiment.name] = run(experiment, size, output, _report(bar), fresh=fresh)
                _report(bar)(1, 1)
        except UnsupportedError as error:
            if names:
                raise
            skipped[experiment.name] = str(error)  # data or an extra are missing: run the others
    shown = _with_earlier(outcomes, list(all_experiments().values()), size, output)
    index = write_all(shown, output)[0]
    written = [index, *(write_docs(outcomes.values(), docs) if docs else [])]
    _show_outcomes(list(outcomes.values()), skipped, written)


def _report(bar: object) -> Progress:
    """Return a progress callback that moves a bar of 1000 steps."""

    def report(done: int, total: int) -> None:
        target = 1000 * done // max(1, total)
        bar.update(max(0, target - bar.pos))  # type: ignore[attr-defined]

    return report


def _with_earlier(
    outcomes: dict[str, Reproduction], experiments: list[Experiment], size: Size, folder: Path
) -> list[Reproduction]:
    """Add results of earlier runs, so that the page shows all finished experiments."""
    results = [
        outcomes.get(experiment.name) or finished(experiment, size, folder)
        for experiment in experiments
    ]
    return [result for result in results if result is not None]


def _show_list(chosen: list[Experiment]) -> None:
    body = [
        {
            "name": experiment.name,
            "title": experiment.title,
            "item": experiment.item,
            "quick": dict(experiment.quick),
            "full": dict(experiment.full),
        }
        for experiment in chosen
    ]
    rows = [(experiment.name, experiment.item, experiment.title) for experiment in chosen]
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
                "name": outcome.experiment.name,
                "size": outcome.size,
                "seconds": outcome.seconds,
                "kept": outcome.kept,
                "result": result_to_dict(outcome.result),
            }
            for outcome in outcomes
        ],
        "skipped": skipped,
        "files": [str(path) for path in written],
    }
    lines = []
    for outcome in outcomes:
        origin = "finished earlier" if outcome.kept else f"{outcome.seconds:.3g} s"
        lines += [
            f"{outcome.experiment.name}: {outcome.experiment.title} ({outcome.size}, {origin})"
        ]
        rows = [
            (r.quantity, r.published_text(), r.ours_text(), r.comparison())
            for r in outcome.result.rows
        ]
        table = text_table(["quantity", "published", "ours", "difference"], rows)
        lines += [f"  {line}" for line in table] + [""]
    lines += [f"{name}: skipped. {reason}" for name, reason in skipped.items()]
    lines += [f"Page: {written[0]}"]
    emit(files.dump("reproduction-run", 1, body), lines)
