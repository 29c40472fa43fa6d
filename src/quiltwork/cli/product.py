"""`quiltwork demo`, and what only the repository holds: `bench` and `reproduce`."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click

from quiltwork import files
from quiltwork.cli.command import argument, command, option
from quiltwork.cli.output import as_json, emit, progress
from quiltwork.errors import InvalidInputError, UnsupportedError


def checkout_with(file: str, what: str, command: str) -> Path:
    """Find the repository that this package runs from, which holds the file."""
    import quiltwork

    root = Path(quiltwork.__file__).resolve().parents[2]
    if not (root / file).is_file():
        raise UnsupportedError(
            f"{what} live in the repository, not in the installed package; clone the repository "
            f"and run {command!r} there."
        )
    return root


@command(
    example="""
    quiltwork bench --list
    quiltwork bench noise
    """
)
def bench(
    names: tuple[str, ...] = argument(required=False),
    listing: bool = option("Name the benchmarks and stop.", names="--list"),
) -> None:
    """Time quiltwork against its peers, in a checkout.

    Runs every benchmark, or those named. Each times its candidate and its peers in the same run
    and writes a table under bench/results.
    """
    root = checkout_with("bench/run.py", "Benchmarks", "make bench")
    known = sorted(path.stem.removeprefix("bench_") for path in root.glob("bench/bench_*.py"))
    for name in names:
        if name not in known:
            raise InvalidInputError(f"No benchmark {name!r}; there are: {', '.join(known)}.")
    if listing:
        emit(files.dump("bench", 1, {"benchmarks": known, "results": []}), known)
        return
    started = time.time()
    ran = subprocess.run(  # noqa: S603  (the repository's own script and checked names)
        [sys.executable, "-m", "bench.run", *names],
        cwd=root,
        check=False,
        stdout=2 if as_json() else None,  # tables of text go to stderr then
    )
    body = {"benchmarks": list(names) or known, "results": _results(root, started)}
    emit(files.dump("bench", 1, body), [f"Results: {root / 'bench' / 'results'}"])
    if ran.returncode:
        click.get_current_context().exit(3)


def _results(root: Path, since: float) -> list[dict[str, object]]:
    """Read the tables written since a moment."""
    found: list[dict[str, object]] = []
    for path in sorted((root / "bench" / "results").glob("*.csv")):
        if path.stat().st_mtime >= since - 1:
            with path.open(newline="", encoding="utf-8") as file:
                found.append({"table": path.stem, "rows": list(csv.DictReader(file))})
    return found


@command(
    example="""
    quiltwork reproduce --list
    quiltwork reproduce geometric-figure-2
    quiltwork reproduce --full --output reproduction
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


@command(
    example="""
    quiltwork demo
    quiltwork demo --output /tmp/tour --open
    """
)
def demo(
    output: Path = option(
        "Folder for the page.",
        names="-o --output",
        default=Path("demo-report"),
    ),
    show: bool = option("Open the page in a browser.", names="--open"),
) -> None:
    """Show what quiltwork does on simulated data, in a few seconds.

    Writes one self-contained HTML page and prints where it is. The people are simulated, the
    noise is real: every run gives other answers.
    """
    from quiltwork.demo import CHAPTERS, chapters, report

    output.mkdir(parents=True, exist_ok=True)  # first: where it fails, nobody waits for it
    told = []
    with progress(len(CHAPTERS), "Releasing") as bar:
        for chapter in chapters():
            told.append(chapter)
            bar.update(1)
    path = output / "index.html"
    path.write_text(report(told), encoding="utf-8")
    body = {
        "chapters": [{"name": c.name, "title": c.title, **c.data} for c in told],
        "report": str(path),
    }
    lines = [line for c in told for line in (c.title, "", *c.lines, "")]
    emit(files.dump("demo", 1, body), [*lines, f"Report: {path}"])
    if show:
        click.launch(str(path))
