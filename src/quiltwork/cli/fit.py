"""`quiltwork fit`: a belief from sequences that are not the protected ones."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import command, confidence_number, exact_number
from quiltwork.cli.output import emit, text_table
from quiltwork.cli.series import read, reading_options, split_list

if TYPE_CHECKING:
    from quiltwork.beliefs import ChainBox, MarkovChain
    from quiltwork.series import Series


@command(
    example="""
    quiltwork fit volunteers.csv --value activity --subject person --time minute -o belief.json
    quiltwork fit pilot.csv --value kw --edges 0.5,2 --every 10min --time time \\
        --box --confidence 0.95 -o box.json
    """
)
@click.argument("file")
@reading_options
@click.option("--states", metavar="LIST", help="The public states; others in the file are refused.")
@click.option(
    "--smoothing",
    type=exact_number,
    metavar="NUMBER",
    help="Added to every transition count of a chain.  [default: 0.5]",
)
@click.option(
    "--initial",
    type=click.Choice(["stationary", "any", "empirical"]),
    help="What the adversary believes about the first time point of a chain.  "
    "[default: stationary]",
)
@click.option("--box", is_flag=True, help="Fit a confidence region of chains instead of one.")
@click.option(
    "--confidence",
    type=confidence_number,
    metavar="NUMBER",
    help="With --box: that the region holds the whole true matrix.  [default: 0.95]",
)
@click.option("-o", "--output", metavar="FILE", help="Write the belief here, as JSON.")
def fit(
    file: str,
    states: str | None,
    smoothing: Fraction | None,
    initial: Any,
    box: bool,
    confidence: Fraction | None,
    output: str | None,
    **reading: Any,
) -> None:
    """Fit a belief on FILE, for use with `calibrate` and `release`.

    Fit on public data or on other subjects than those whose data is released: a belief fitted on
    the released data makes the noise scale itself a leak. The belief remembers which file it was
    fitted on, and a release from that file warns; it keeps its steps, edges, labels and states, and
    data on others are refused.
    """
    if box and (smoothing is not None or initial is not None):
        raise click.UsageError("--smoothing and --initial are for one chain: leave out --box")
    if not box and confidence is not None:
        raise click.UsageError("--confidence is for a region of chains: add --box")
    if states is not None and reading["edges"] is not None:
        raise click.UsageError(
            "--edges make the states: leave out --states, or name them by --labels"
        )
    if output is not None:
        files.check_writable(output)
    from quiltwork.beliefs import ChainBox, MarkovChain
    from quiltwork.series.reading.values import as_labels

    declared = None if states is None else tuple(as_labels(split_list(states), "--states"))
    series = read(file, reading, states=declared)
    belief: ChainBox | MarkovChain
    given = {"confidence": confidence, "smoothing": smoothing, "initial": initial}
    options: dict[str, Any] = {name: part for name, part in given.items() if part is not None}
    if box:
        belief = ChainBox.fit(series.data, states=series.states, **options)
    else:
        belief = MarkovChain.fit(series.data, states=series.states, **options)
    if output is not None:
        files.write(output, belief.to_json() + "\n")
    emit(belief.to_json(), _lines(belief, series, output))


def _lines(belief: ChainBox | MarkovChain, series: Series, output: str | None) -> Iterator[str]:
    from quiltwork.beliefs import MarkovChain

    noun = "sequence" if len(series.data) == 1 else "sequences"
    yield f"{series.points:,} time points in {len(series.data):,} {noun}; {series.missing} missing"
    yield ""
    states = [str(state) for state in belief.states]
    if isinstance(belief, MarkovChain):
        rows = [
            [state, *(f"{p:.4f}" for p in row)]
            for state, row in zip(states, belief.transition, strict=True)
        ]
    else:
        rows = [
            [state, *(f"{low:.4f}..{high:.4f}" for low, high in zip(lower, upper, strict=True))]
            for state, lower, upper in zip(states, belief.lower, belief.upper, strict=True)
        ]
    yield from text_table(["from \\ to", *states], rows)
    yield ""
    if not series.declared:
        yield "The states were taken from the file; declare them with --states or --edges."
    if output is None:
        yield "Nothing was written; add -o belief.json to keep the belief."
    else:
        yield f"Written to {output}. Use it for other data than this: a fit on the released data"
        yield "leaks through the noise scale."
