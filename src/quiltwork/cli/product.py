"""The command `quiltwork demo`: the four systems on simulated data, with an HTML report."""

from __future__ import annotations

from pathlib import Path

import click

from quiltwork import files
from quiltwork.cli.command import command, option
from quiltwork.cli.output import emit, progress


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

    output.mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
    results = []
    with progress(len(CHAPTERS), "Releasing") as bar:
        for chapter in chapters():
            results.append(chapter)
            bar.update(1)
    path = output / "index.html"
    path.write_text(report(results), encoding="utf-8")
    body = {
        "chapters": [{"name": c.name, "title": c.title, **c.data} for c in results],
        "report": str(path),
    }
    lines = [line for c in results for line in (c.title, "", *c.lines, "")]
    emit(files.dump("demo", 1, body), [*lines, f"Report: {path}"])
    if show:
        click.launch(str(path))
