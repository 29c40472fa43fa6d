"""`quiltwork demo`, `completion`, and what only the repository holds: `bench` and `reproduce`."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click

from quiltwork import files
from quiltwork.cli.command import command, option
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


@command(
    example="""
    quiltwork demo
    quiltwork demo --output /tmp/tour --open
    """
)
@option(
    "-o --output",
    "Folder for the page.",
    click.Path(file_okay=False, path_type=Path),
    default=Path("demo-report"),
)
@option("--open", "Open the page in a browser.", bool, into="show")
def demo(output: Path, show: bool) -> None:
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


INSTALL = {
    "bash": 'eval "$(quiltwork completion bash)"   # add this line to ~/.bashrc',
    "zsh": 'eval "$(quiltwork completion zsh)"   # add this line to ~/.zshrc, after compinit',
    "fish": "quiltwork completion fish > ~/.config/fish/completions/quiltwork.fish",
}


@command(
    example="""
    eval "$(quiltwork completion bash)"            # now, or in ~/.bashrc for good
    eval "$(quiltwork completion zsh)"             # in ~/.zshrc, after compinit
    quiltwork completion fish > ~/.config/fish/completions/quiltwork.fish
    """
)
@click.argument("shell", type=click.Choice(list(INSTALL)))
def completion(shell: str) -> None:
    """Print the script that completes commands in a shell."""
    from click.shell_completion import get_completion_class

    from quiltwork.cli.app import app
    from quiltwork.cli.boundary import COMPLETION_VARIABLE

    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"No completion for {shell}")
    parts = complete(app, {}, "quiltwork", COMPLETION_VARIABLE)
    # Not .source(): for bash that starts a bash process only to look at its version.
    script = parts.source_template % parts.source_vars()
    document = files.dump("completion", 1, {"shell": shell, "script": script})
    emit(document, [f"# To install: {INSTALL[shell]}", script])
