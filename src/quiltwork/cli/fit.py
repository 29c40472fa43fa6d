"""`quiltwork fit`: beliefs from sequences that are not the protected ones."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    command,
    confidence_number,
    option,
    option_group,
    split_list,
)
from quiltwork.cli.output import check_targets, emit, progress, text_table
from quiltwork.cli.series_options import Reading, read, with_reading
from quiltwork.errors import QuiltworkWarning

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief, Label
    from quiltwork.series import Series

_SHOWN_STATES = 12
_PRICED_STATES = 60


@command(
    example="""
    quiltwork fit volunteers.csv --value activity --subject person --time minute -o belief.json
    quiltwork fit volunteers.csv --value activity --subject person --single -o chain.json
    quiltwork fit pilot.csv --value kw --edges 0.5,2 --every 10min --time time \\
        --box --confidence 0.95 -o box.json
    """
)
def fit(
    file: str = argument(),
    reading: Reading = option_group(Reading),
    states: str | None = option("The public states; others in the file are refused.", "LIST"),
    smoothing: Fraction | None = option(
        "Added to every transition count of a chain.  [default: 0.5]"
    ),
    initial: Any = option(
        "What the adversary believes about the first time point; empirical with --single.  "
        "[default: stationary]",
        kind=("stationary", "any", "empirical"),
    ),
    single: bool = option("Fit one chain of order 1: the last state alone matters."),
    order: int | None = option("Fit one chain of order N: the last N states matter.", "N"),
    durations: bool = option("Fit one chain in which the duration of a state matters."),
    period: str | None = option(
        "Fit one chain with a matrix per phase of this period.", "day|week|N"
    ),
    box: bool = option("Fit a confidence region of chains."),
    confidence: Fraction | None = option(
        "With --box: the probability that the region contains the true matrix.  [default: 0.95]",
        kind=confidence_number,
    ),
    output: str | None = option(
        "Write the beliefs here, as JSON; - prints them.", "FILE", names="-o --output"
    ),
) -> None:
    """Fit beliefs on FILE, for use with `calibrate` and `release`.

    By default the result is the list of all beliefs that the data leave plausible: chains of order
    1 and 2, with durations, or with the time of day. Noise for the list protects against each of
    them; its cost beside one chain of order 1 is shown. --single, --order, --durations, --period
    and --box choose one belief.

    Fit on public data or on other subjects than those whose data are released: a belief fitted on
    the released data makes the noise scale itself a leak. The belief records the file it was fitted
    on, and a release from that file warns. It also stores steps, edges, labels and states, and data
    on others are refused. Its file stores the column and the time zone, the defaults of a release.
    """
    kinds = {
        "--single": single,
        "--order": order is not None,
        "--durations": durations,
        "--period": period is not None,
        "--box": box,
    }
    chosen = [name for name, given in kinds.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other: give one of them")
    if box and (smoothing is not None or initial is not None):
        raise click.UsageError("--smoothing and --initial are for one chain: leave out --box")
    if not box and confidence is not None:
        raise click.UsageError("--confidence is for a region of chains: add --box")
    if initial == "empirical" and chosen != ["--single"]:
        raise click.UsageError("--initial empirical is for one plain chain: add --single")
    if states is not None and reading.edges is not None:
        raise click.UsageError(
            "--edges make the states: leave out --states, or name them by --labels"
        )
    check_targets(output)
    from quiltwork.beliefs import beliefs_to_json
    from quiltwork.influence.diagnostics import fit_warnings
    from quiltwork.series.reading.values import as_labels

    declared = None if states is None else tuple(as_labels(split_list(states)))
    series = read(file, reading, states=declared)
    given = {"confidence": confidence, "smoothing": smoothing, "initial": initial}
    options: dict[str, Any] = {name: part for name, part in given.items() if part is not None}
    turns: Any = int(period) if period is not None and period.isdecimal() else period
    tried = _fitted(series, chosen, order, turns, options)
    document = with_reading(beliefs_to_json([one.belief for one in tried if one.kept]), reading)
    if output == "-":
        emit(document, [document])
        return
    if output is not None:
        files.write(output, document + "\n")
    tried = _priced(tried, max(series.lengths))
    kept = [one.belief for one in tried if one.kept]
    usual = Fraction(1, 2) if smoothing is None else smoothing
    told = fit_warnings(kept, series.data, smoothing=usual, period=turns)
    emit(
        files.dump("fit", 1, _body(tried, series, json.loads(document), told)),
        _lines(tried, series, output),
    )
    for sentence in told:
        warnings.warn(sentence, QuiltworkWarning, stacklevel=1)


@dataclass(frozen=True)
class _Tried:
    """A fitted belief: held-out likelihood, whether it is kept, noise scale and driving states."""

    name: str
    belief: Belief
    kept: bool
    per_step: float | None = None
    scale: float | None = None
    drives: tuple[Label, Label] | None = None


def _fitted(
    series: Series, chosen: list[str], order: int | None, period: Any, options: dict[str, Any]
) -> list[_Tried]:
    """Return the chosen belief, or all candidates; with the chain of order 1 for comparison."""
    from quiltwork.beliefs import ChainBox, CyclicChain, MarkovChain, candidates

    data, known = series.data, {**options, "states": series.states}
    match chosen:
        case []:
            return [
                _Tried(one.name, one.belief, one.plausible, one.per_step)
                for one in candidates(data, **known)
            ]
        case ["--box"]:
            one: Belief = ChainBox.fit(data, **known)
        case ["--period"]:
            one = CyclicChain.fit(data, period, **known)
        case ["--single"]:
            return [_Tried("order 1", MarkovChain.fit(data, **known), True)]
        case _:
            durations = chosen == ["--durations"]
            one = MarkovChain.fit(
                data, **known, order=1 if order is None else order, durations=durations
            )
    smoothing = options.get("smoothing", Fraction(1, 2))
    plain = MarkovChain.fit(data, smoothing, series.states)
    name = chosen[0].removeprefix("--")
    if (detail := order if period is None else period) is not None:
        name = f"{name} {detail}"
    return [_Tried(name, one, True), _Tried("order 1", plain, False)]


def _priced(tried: list[_Tried], length: int) -> list[_Tried]:
    """Return the beliefs with the noise of the kept ones and of order 1, unless that is slow."""
    from quiltwork.influence.diagnostics import driving_states, fit_price

    if len(_plain(tried).belief.states or ()) > _PRICED_STATES:
        return tried
    found = []
    with progress(tried, "Pricing") as bar:
        for one in bar:
            if one.kept or one.name == "order 1":
                made = fit_price(one.belief, length)
                one = replace(one, scale=made.scale, drives=driving_states(made))
            found.append(one)
    return found


def _deciding(tried: Sequence[_Tried]) -> _Tried:
    return max((one for one in tried if one.kept), key=lambda one: one.scale or 0.0)


def _plain(tried: Sequence[_Tried]) -> _Tried:
    return next(one for one in tried if one.name == "order 1")


def _body(tried: list[_Tried], series: Series, document: Any, told: list[str]) -> dict[str, Any]:
    from quiltwork.beliefs.documents import labels_to_json

    decides = _deciding(tried)
    return {
        "belief": document,
        "points": series.points,
        "sequences": len(series.data),
        "missing": series.missing,
        "tried": [
            {"name": one.name, "per_step": one.per_step, "kept": one.kept, "scale": one.scale}
            for one in tried
        ],
        "price": {
            "query": "histogram",
            "epsilon": "1",
            "length": max(series.lengths),
            "scale": decides.scale,
            "single": _plain(tried).scale,
            "decides": decides.name,
            "states": None if decides.drives is None else labels_to_json(decides.drives),
        },
        "warnings": told,
    }


def _lines(tried: list[_Tried], series: Series, output: str | None) -> Iterator[str]:
    noun = "sequence" if len(series.data) == 1 else "sequences"
    yield f"{series.points:,} time points in {len(series.data):,} {noun}; {series.missing} missing"
    yield ""
    if tried[0].per_step is None:
        yield from _matrix(tried[0].belief)
    else:
        rows = [
            [
                one.name,
                f"{one.per_step:.4f}",
                "yes" if one.kept else "no",
                "" if one.scale is None else f"{one.scale:.6g}",
            ]
            for one in tried
        ]
        yield from text_table(["belief", "held out, nats per step", "plausible", "noise"], rows)
        yield ""
    yield from _prices(tried, series)
    yield ""
    if not series.declared:
        yield "The states are those in the file; declare public ones with --states or --edges."
    if output is None:
        yield "Nothing was written; add -o belief.json to save the belief."
    else:
        yield f"Written to {output}. Use it for other data than this: a fit on the released data"
        yield "leaks through the noise scale."


def _matrix(belief: Belief) -> Iterator[str]:
    """Yield the matrix of a chain or a box, if it is small enough to print."""
    from quiltwork.beliefs import ChainBox, MarkovChain

    if not isinstance(belief, MarkovChain | ChainBox) or belief.size > _SHOWN_STATES:
        return
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


def _prices(tried: list[_Tried], series: Series) -> Iterator[str]:
    decides, plain, length = _deciding(tried), _plain(tried), max(series.lengths)
    if decides.scale is None or plain.scale is None:
        yield "So many states are not priced; `quiltwork calibrate` may take minutes."
        return
    yield f"A histogram of {length:,} time points at ε = 1 takes noise of scale {decides.scale:.6g}"
    if len(tried) == 1:
        yield "under this chain."
    elif decides is plain:
        yield "under one chain of order 1, which decides."
    else:
        yield f"under {decides.name}, which decides; one chain of order 1 takes {plain.scale:.6g}."
    if decides.drives is not None:
        one, other = (
            f"{state} ({sum(row.tolist().count(state) for row in series.data.values()):,} observed)"
            for state in decides.drives
        )
        yield f"Neighbours reveal the most about {one} against {other}; they require this noise."
    yield from _usefulness(decides.scale, length, len(series.states))


def _usefulness(scale: float, length: int, states: int) -> Iterator[str]:
    """Yield a verdict on the usefulness of such a histogram, and how to improve it."""
    from quiltwork.budget.judging import judge

    found = judge(scale, length / states, "an even share of the time points")
    yield str(found)
    if found.verdict != "useful":
        yield (
            f"About {math.ceil(10 * scale * states):,} time points, over all subjects, would "
            "make it useful; a longer step (--every) or fewer states may need less noise."
        )
