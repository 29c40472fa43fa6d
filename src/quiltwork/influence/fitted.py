"""What a fitted belief asks for, and what in the fit deserves a second look.

All of it is computed from the data of the fit, which are not the protected ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, ChainBox, CyclicChain, HiddenChain, Label, MarkovChain
from quiltwork.beliefs.alternatives import Candidate, judged, nats_allowed
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.origins import by_position, parts_by_clock
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.beliefs.transition_counts import Tally, smoothed_rows, tally
from quiltwork.errors import InvalidInputError, QuiltworkError
from quiltwork.exact import Number, to_fraction
from quiltwork.influence.calibration import Calibration, calibrate
from quiltwork.queries import histogram

_FEW_STEPS = 10
_MOST_STATES = 30
_TOO_FAR = 2
_NEARLY_ALL = 0.9
_TOO_WIDE = 4
_KEPT = 3
_OPTIONS = {
    "order 1": "--single",
    "order 2": "--order 2",
    "durations": "--durations",
    "time of day": "--period day",
    "time of week": "--period week",
}


def fit_price(beliefs: Belief | Sequence[Belief], length: int) -> Calibration:
    """Return the noise of a histogram of so many time points at ε = 1.

    >>> round(fit_price(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100).scale, 3)
    6.673
    """
    return calibrate(beliefs, length, 1, query=histogram())


def driving_states(found: Calibration) -> tuple[Label, Label] | None:
    """Return the two states that the noise is for: those that neighbours tell apart best.

    They attain the bound of the sweep at the levels of the calibration, in an endless series of the
    belief that decides. None for boxes and for matrices that change with the time of day.
    """
    if found.exact_scale == 0:
        return None
    bound = found.bounds[found.belief - 1]
    pair = bound.driving_states(found.problem, found.integer_scale)
    states = bound.belief.states
    return None if pair is None or states is None else (states[pair[0]], states[pair[1]])


def fit_warnings(
    beliefs: Belief | Sequence[Belief],
    sequences: Any,
    *,
    smoothing: Number = 0.5,
    period: Any = None,
) -> list[str]:
    """Return what contradicts a fit or makes it fragile, a sentence each; none if all is well.

    - fewer than ten steps per state;
    - one belief alone: held-out data rule it out by the rule of `candidates`;
    - several: memory that is likelier than all of them and too large to be calibrated;
    - times of a zone whose clocks change in between: no belief about the time of day was tried;
    - a first-order chain: the noise of a histogram moves by more than 2× when `smoothing` is
      divided or multiplied by ten (up to 30 states);
    - a box: it takes more than 4 times the noise of one chain (up to 30 states).

    Args:
        beliefs: what was fitted, one or a list.
        sequences: what it was fitted on.
        smoothing: with which it was fitted.
        period: as in `plausible`.

    >>> data = MarkovChain([[0.9, 0.1], [0.4, 0.6]]).sample(3000, seed=1)
    >>> fit_warnings(MarkovChain.fit(data), data)
    []
    """
    members = as_beliefs(beliefs)
    pieces = split_sequences(sequences)
    counted = tally(recorded_runs(pieces), members[0].states, members[0].grid)
    length = max(map(len, pieces))
    given = {"states": members[0].states, "period": period}  # what is scored is always smoothed
    given["smoothing"] = max(to_fraction(smoothing, "smoothing"), Fraction(1, 2))
    found, beyond = judged(sequences, **given)
    sentences = _few_steps(counted)
    if len(members) == 1:
        sentences += _ruled_out(members[0], found, int(counted.transitions.sum()))
    sentences += beyond
    if period is None:
        sentences += _without_days(members, pieces, length)
    for one in members:
        if isinstance(one, MarkovChain) and one.size <= _MOST_STATES:
            sentences += _smoothing_decides(one, sequences, smoothing, length)
        if isinstance(one, ChainBox) and one.size <= _MOST_STATES:
            sentences += _wide(one, counted, length)
    return sentences


def _without_days(members: Sequence[Belief], pieces: Sequence[Any], length: int) -> list[str]:
    """Say what it costs that no belief about the time of day could be fitted."""
    try:
        for piece in pieces:
            parts_by_clock(piece)
    except InvalidInputError:
        pass
    else:
        return []
    told = "Clocks change in this series by no whole number of steps"
    left = f"{told}, so beliefs about the time of day were left out; "
    way = "without the time zone (--timezone none) time points are those that clocks show."
    try:
        day = CyclicChain.fit(
            recorded_runs(map(by_position, pieces)), "day", 0.5, members[0].states
        )
    except QuiltworkError:
        return [left + way]
    now = max(fit_price(belief, length).scale for belief in members)
    with_day = fit_price(day, length).scale
    return [
        f"{left}a histogram takes noise of {now:.4g} under what was fitted, and noise of "
        f"{with_day:.4g} under a chain that knows the time of day: {way}"
    ]


def _few_steps(counted: Tally) -> list[str]:
    size, steps = len(counted.states), int(counted.transitions.sum())
    if steps >= _FEW_STEPS * size:
        return []
    numbers = any(isinstance(state, float) for state in counted.states)
    remedy = "turn the numbers into a few bins (--edges)" if numbers else "merge states"
    return [
        f"{steps:,} steps between {size:,} states say little about each: fewer than ten per "
        f"state; {remedy}, or fit on more data."
    ]


def _ruled_out(belief: Belief, found: list[Candidate], steps: int) -> list[str]:
    own = next((one for one in found if _same_kind(one.belief, belief)), None)
    rivals = [  # a box holds chains whose matrices change
        one
        for one in found
        if not (isinstance(belief, ChainBox) and isinstance(one.belief, CyclicChain))
    ]
    best = max(rivals, key=lambda one: one.per_step)
    if own is None or (best.per_step - own.per_step) * steps <= nats_allowed(steps):
        return []
    return [
        f"The data contradict {own.name}: steps that were held out are "
        f"{best.per_step - own.per_step:.3f} nats likelier each under {best.name}. The noise does "
        f"not hold against who knows that; fit the list of plausible beliefs, or that one "
        f"({_OPTIONS[best.name]})."
    ]


def _same_kind(one: Belief, other: Belief) -> bool:
    if isinstance(other, ChainBox):
        return isinstance(one, MarkovChain)
    if isinstance(one, HiddenChain) and isinstance(other, HiddenChain):
        return one.inner.size == other.inner.size
    return type(one) is type(other)


def _smoothing_decides(
    belief: MarkovChain, sequences: Any, smoothing: Number, length: int
) -> list[str]:
    amount = to_fraction(smoothing, "smoothing")
    if amount == 0:
        return []
    amounts = amount / 10, amount, amount * 10
    scales = [fit_price(_again(belief, sequences, one), length).scale for one in amounts]
    if max(scales) <= _TOO_FAR * min(scales):
        return []
    added, noise = (_listed([float(one) for one in row]) for row in (amounts, scales))
    return [
        f"Smoothing decides the noise: {added} added to every count give scale {noise}. It stands "
        "for steps that are hardly seen; merge rare states, fit on more data, or choose it by "
        "what is known and not by the noise."
    ]


def _again(belief: MarkovChain, sequences: Any, smoothing: Fraction) -> MarkovChain:
    return MarkovChain.fit(sequences, smoothing, belief.states, belief.initial, belief.grid)


def _listed(numbers: list[float]) -> str:
    shown = [f"{number:,.6g}" if number < 100 else f"{number:,.0f}" for number in numbers]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _wide(box: ChainBox, counted: Tally, length: int) -> list[str]:
    """Say what would help where a box takes far more noise than the chain in its middle."""
    found, everything = fit_price(box, length).scale, 2 * length
    plain = fit_price(MarkovChain(smoothed_rows(counted, 0.5)), length).scale
    if found <= _TOO_WIDE * plain:
        return []
    asked = f"{found / plain:,.0f} times the noise of one chain"
    if found >= _NEARLY_ALL * everything:
        asked = f"as much noise as hiding all {length:,} time points at once"
    rarest = int(np.argmin(counted.transitions.sum(axis=1)))
    seen = int(counted.transitions[rarest].sum())
    more = 10 * counted.transitions
    richer = fit_price(ChainBox.from_counts(more, more), length).scale
    return [
        f"The box asks for {asked}: it allows that {int((box.lower <= 0).sum()):,} of its "
        f"{box.size**2:,} steps are impossible, and state {box.states[rarest]!r} is left {seen:,} "
        f"times only. Ten times the data would take noise of scale {richer:,.0f}."
        f"{_merging(counted, length, found)} Leave gaps out (--missing public), or fit the list of "
        "plausible beliefs."
    ]


def _merging(counted: Tally, length: int, found: float) -> str:
    """Say what noise a box of fewer states would take, all but the most frequent ones merged."""
    often = np.argsort(-counted.transitions.sum(axis=1), kind="stable")
    told = []
    for kept in range(1, min(_KEPT + 1, len(often) - 1)):
        place = np.full(len(often), kept)
        place[often[:kept]] = np.arange(kept)
        merged = np.zeros((kept + 1, kept + 1), dtype=np.int64)
        np.add.at(merged, (place[:, np.newaxis], place), counted.transitions)
        scale = fit_price(ChainBox.from_counts(merged, merged), length).scale
        if scale < _NEARLY_ALL * found:
            names = ", ".join(repr(counted.states[one]) for one in often[:kept])
            told.append(f"{scale:,.0f} with {names} kept and the others merged")
    return f" A box of fewer states takes noise of scale {'; '.join(told)}." if told else ""
