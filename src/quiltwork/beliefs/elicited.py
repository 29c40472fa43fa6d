"""Elicited beliefs: a chain from the states, their mean durations and an error margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.grids import Grid, duration
from quiltwork.beliefs.states import Label, distinct_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, shortened, to_fraction

_LONGEST = 10**6
_FURTHEST = Fraction(1, 2)
_RAREST = Fraction(1, 2)
"""No probability falls below half of its value, so that a stay at most doubles on average."""


def chain_from_stays(
    states: Sequence[Label],
    stays: Sequence[Number],
    after: Mapping[Label, Mapping[Label, Number]] | None = None,
    grid: Grid | None = None,
) -> MarkovChain:
    """Return the chain with these mean durations: a state stays with probability 1 − 1/mean.

    Args:
        states: two or more labels.
        stays: the mean duration of a stay in each state, in time points, at least 1.
        after: for some states, the weights of the next states; by default all others equally.
        grid: the step of a time point.

    >>> chain_from_stays(["rest", "walk"], [10, 4]).transition
    array([[0.9 , 0.1 ],
           [0.25, 0.75]])
    """
    labels = distinct_labels(states)
    if len(labels) < 2:
        raise InvalidInputError("A series with one state has nothing to protect; give two or more.")
    if len(stays) != len(labels):
        raise InvalidInputError(
            f"There are {len(labels)} states and {len(stays)} durations; give one for each state."
        )
    next_weights = {} if after is None else dict(after)
    for label in next_weights:
        if label not in labels:
            raise InvalidInputError(
                f"after= has an entry for {shortened(label)}, which is not one of the states."
            )
    rows = np.zeros((len(labels), len(labels)))
    for index, (label, stay) in enumerate(zip(labels, stays, strict=True)):
        mean = to_fraction(stay, f"The stay in {label!r}")
        if not 1 <= mean <= _LONGEST:
            raise InvalidInputError(
                f"A stay in {label!r} lasts {shortened(stay)} time points on average; it must be "
                f"from 1 to {_LONGEST:,}."
            )
        leaving = _next_state_shares(labels, index, next_weights.get(label))
        rows[index] = [float(share / mean) for share in leaving]
        rows[index, index] = float(1 - 1 / mean)
    return MarkovChain(rows, states=labels, grid=grid)


def _next_state_shares(
    labels: tuple[Label, ...], index: int, weights: Mapping[Label, Number] | None
) -> list[Fraction]:
    """Return the distribution of the next state when a stay ends; the state's own share is 0."""
    label = labels[index]
    if weights is None:
        even = Fraction(1, len(labels) - 1)
        return [Fraction(0) if other == label else even for other in labels]
    for other in weights:
        if other not in labels or other == label:
            raise InvalidInputError(
                f"After {label!r} comes {shortened(other)}, which is not another of the states."
            )
    exact = [to_fraction(weights.get(other, 0), "A weight") for other in labels]
    if min(exact) < 0 or sum(exact) == 0:
        raise InvalidInputError(
            f"The weights of what follows {label!r} must be at least 0 and not all 0."
        )
    return [weight / sum(exact) for weight in exact]


def around(chain: MarkovChain, distance: Number) -> MarkovChain | ChainBox:
    """Return the box of chains whose probabilities differ by at most `distance`, any start.

    No probability falls below half of its value, so that a stay at most doubles on average. With
    distance 0 it is the chain itself.

    >>> around(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 0.08).lower
    array([[0.82, 0.05],
           [0.32, 0.52]])
    """
    off = to_fraction(distance, "The distance")
    if not 0 <= off <= _FURTHEST:
        raise InvalidInputError(
            f"The error of a probability must be from 0 to 0.5, not {shortened(distance)}; 0.05 is "
            "careful, 0.2 is very unsure."
        )
    if off == 0:
        return chain
    exact = [[Fraction(repr(p)) for p in row] for row in chain.transition.tolist()]
    lower = [[float(max(p - off, _RAREST * p)) for p in row] for row in exact]
    upper = [[float(min(p + off, Fraction(1))) for p in row] for row in exact]
    return ChainBox(lower, upper, chain.states, grid=chain.grid)


def reasons(chain: MarkovChain, distance: Number) -> list[str]:
    """Return the meaning of a belief's numbers in plain words, and the protection they give.

    >>> print(*reasons(chain_from_stays(["rest", "walk"], [10, 4]), 0), sep="\\n")
    A stay in rest lasts 10 time points on average: it continues with probability 0.9.
    The next state is walk.
    A stay in walk lasts 4 time points on average: it continues with probability 0.75.
    The next state is rest.
    Neither the duration of a stay so far nor the hour of the day changes these probabilities.
    Error margin 0: the noise protects against an adversary who believes exactly this chain.
    """
    step = None if chain.grid is None else chain.grid.step
    lines = []
    for index, label in enumerate(chain.states):
        stays = float(chain.transition[index, index])
        mean = 1 / (1 - stays)
        timed = "" if step is None else f" ({duration(round(mean * step))})"
        points = "time point" if round(mean, 9) == 1 else "time points"
        lines.append(
            f"A stay in {label} lasts {mean:.6g} {points}{timed} on average: it continues with "
            f"probability {stays:.6g}."
        )
        lines.append(_next_states(chain, index))
    lines.append(
        "Neither the duration of a stay so far nor the hour of the day changes these probabilities."
    )
    off = float(to_fraction(distance, "The distance"))
    if off == 0:
        lines.append(
            "Error margin 0: the noise protects against an adversary who believes exactly this "
            "chain."
        )
    else:
        lines.append(
            f"Error margin {off:g}: each probability may differ by up to {off:g}, but is at least "
            "half of your value, so a stay lasts at most twice as long on average."
        )
        lines.append(
            "The noise protects against every adversary with probabilities in this range, even if "
            "they change from step to step, and from any initial state."
        )
    return lines


def _next_states(chain: MarkovChain, index: int) -> str:
    row = chain.transition[index].copy()
    row[index] = 0.0
    shares = row / row.sum()
    named = [
        f"{label}" if share > 1 - 1e-9 else f"{label} ({100 * share:.3g} %)"
        for label, share in zip(chain.states, shares.tolist(), strict=True)
        if share > 0
    ]
    return f"The next state is {' or '.join(named)}."
