"""`quiltwork bench`: run the repository's benchmarks, which are not part of the package."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import click

from quiltwork import files
from quiltwork.cli.checkout import checkout_with
from quiltwork.cli.command import command, option
from quiltwork.cli.output import as_json, emit
from quiltwork.errors import InvalidInputError


@command(
    example="""
    quiltwork bench --list
    quiltwork bench noise
    """
)
@click.argument("names", nargs=-1)
@option("--list", "Name the benchmarks and stop.", bool, into="listing")
def bench(names: tuple[str, ...], listing: bool) -> None:
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
