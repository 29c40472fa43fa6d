"""A belief from what a person says: which states, how long each lasts, how sure they are."""

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
"""Within a distance nothing becomes less than half as likely: a stay no more than doubles."""


def chain_from_stays(
    states: Sequence[Label],
    stays: Sequence[Number],
    after: Mapping[Label, Mapping[Label, Number]] | None = None,
    grid: Grid | None = None,
) -> MarkovChain:
    """Return the chain whose stays have these means: the state stays with 1 − 1/mean.

    Args:
        states: two or more labels.
        stays: for each, how many time points a stay lasts on average, from 1 on.
        after: for some, the weights of the states that follow; all others equally if not given.
        grid: what a time point is.

    >>> chain_from_stays(["rest", "walk"], [10, 4]).transition
    array([[0.9 , 0.1 ],
           [0.25, 0.75]])
    """
    labels = distinct_labels(states)
    if len(labels) < 2:
        raise InvalidInputError("A series with one state has nothing to hide; give two or more.")
    if len(stays) != len(labels):
        raise InvalidInputError(
            f"There are {len(labels)} states and {len(stays)} lengths of stays; give one for each."
        )
    given = {} if after is None else dict(after)
    for label in given:
        if label not in labels:
            raise InvalidInputError(f"What follows {shortened(label)} was said; it is no state.")
    rows = np.zeros((len(labels), len(labels)))
    for place, (label, stay) in enumerate(zip(labels, stays, strict=True)):
        mean = to_fraction(stay, f"The stay in {label!r}")
        if not 1 <= mean <= _LONGEST:
            raise InvalidInputError(
                f"A stay in {label!r} lasts {shortened(stay)} time points on average; it must be "
                f"from 1 to {_LONGEST:,}."
            )
        leaving = _shares(labels, place, given.get(label))
        rows[place] = [float(share / mean) for share in leaving]
        rows[place, place] = float(1 - 1 / mean)
    return MarkovChain(rows, states=labels, grid=grid)


def _shares(
    labels: tuple[Label, ...], place: int, weights: Mapping[Label, Number] | None
) -> list[Fraction]:
    """The shares of the states that follow one when it ends; its own is 0."""
    label = labels[place]
    if weights is None:
        even = Fraction(1, len(labels) - 1)
        return [Fraction(0) if other == label else even for other in labels]
    for other in weights:
        if other not in labels or other == label:
            raise InvalidInputError(
                f"After {label!r} comes {shortened(other)}, which is not another of the states."
            )
    read = [to_fraction(weights.get(other, 0), "A weight") for other in labels]
    if min(read) < 0 or sum(read) == 0:
        raise InvalidInputError(
            f"The weights of what follows {label!r} must be at least 0 and not all 0."
        )
    return [weight / sum(read) for weight in read]


def around(chain: MarkovChain, distance: Number) -> MarkovChain | ChainBox:
    """Return every chain whose probabilities are off by at most `distance`, from any start.

    None is less than half of what it was, so that a stay no more than doubles on average. With
    distance 0 the chain itself.

    >>> around(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 0.08).lower
    array([[0.82, 0.05],
           [0.32, 0.52]])
    """
    off = to_fraction(distance, "The distance")
    if not 0 <= off <= _FURTHEST:
        raise InvalidInputError(
            f"Probabilities may be off by 0 to 0.5, not by {shortened(distance)}; 0.05 is careful, "
            "0.2 is very unsure."
        )
    if off == 0:
        return chain
    said = [[Fraction(repr(p)) for p in row] for row in chain.transition.tolist()]
    lower = [[float(max(p - off, _RAREST * p)) for p in row] for row in said]
    upper = [[float(min(p + off, Fraction(1))) for p in row] for row in said]
    return ChainBox(lower, upper, chain.states, grid=chain.grid)


def reasons(chain: MarkovChain, distance: Number) -> list[str]:
    """Say in plain words what each number of such a belief means, and who is protected.

    >>> print(*reasons(chain_from_stays(["rest", "walk"], [10, 4]), 0), sep="\\n")
    A stay in 'rest' lasts 10 time points on average: it goes on with probability 0.9.
    Then follows 'walk'.
    A stay in 'walk' lasts 4 time points on average: it goes on with probability 0.75.
    Then follows 'rest'.
    How long a stay has lasted says nothing about when it ends, and no hour differs from another.
    You are sure: the noise protects against an adversary who believes exactly this chain.
    """
    step = None if chain.grid is None else chain.grid.step
    lines = []
    for place, label in enumerate(chain.states):
        stays = float(chain.transition[place, place])
        mean = 1 / (1 - stays)
        timed = "" if step is None else f" ({duration(round(mean * step))})"
        points = "time point" if round(mean, 9) == 1 else "time points"
        lines.append(
            f"A stay in {label!r} lasts {mean:.6g} {points}{timed} on average: it goes on with "
            f"probability {stays:.6g}."
        )
        lines.append(_followers(chain, place))
    lines.append(
        "How long a stay has lasted says nothing about when it ends, and no hour differs from "
        "another."
    )
    off = float(to_fraction(distance, "The distance"))
    if off == 0:
        lines.append(
            "You are sure: the noise protects against an adversary who believes exactly this chain."
        )
    else:
        lines.append(
            f"Each probability may be off by up to {off:g}, but none is less than half of what "
            "you said: a stay lasts at most twice as long on average."
        )
        lines.append(
            "The noise protects against every adversary whose probabilities lie there, also if "
            "they change from step to step and wherever the series begins."
        )
    return lines


def _followers(chain: MarkovChain, place: int) -> str:
    row = chain.transition[place].copy()
    row[place] = 0.0
    shares = row / row.sum()
    named = [
        f"{label!r}" if share > 1 - 1e-9 else f"{label!r} ({100 * share:.3g} %)"
        for label, share in zip(chain.states, shares.tolist(), strict=True)
        if share > 0
    ]
    return f"Then follows {' or '.join(named)}."
