"""`ChainBox`: every chain between two matrices, even time-varying, from any start.

Bounds are taken as their shortest decimals, so 1 − 0.9 is 0.1 and not 0.09999999999999998, and
results round outward: clipping never removes a row from the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.beliefs.belief import StateBelief
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.confidence import box_bounds, parse_count_bounds
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.grids import Grid, grid_difference, parse_grid
from quiltwork.beliefs.matrices import FloatArray, IntArray, parse_matrix
from quiltwork.beliefs.origins import grid_of
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, parse_states, show_labels
from quiltwork.beliefs.transition_counts import count_transitions
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, proper_fraction

_ROUNDING = 1e-12
_FEASIBILITY = Decimal("1e-9")
_DIGITS = 400
"""Enough to add any two shortest decimals in [0, 1] exactly."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ChainBox(StateBelief):
    """All chains whose every transition matrix lies between `lower` and `upper`, any start.

    The matrix may change from step to step within the box. Bounds are clipped to what rows that
    sum to 1 can reach, so each kept bound is attained by some row of the box.

    Args:
        lower: k×k, the smallest probabilities.
        upper: k×k, the largest probabilities.
        states: one label per row; 0..k−1 if not given.
        grid: the step and binning of the data, to be checked against them.
        sources: where the data of a fit came from; `fit` sets it.

    Raises:
        InvalidInputError: naming the row where lower > upper or no row of sum 1 fits.

    >>> box = ChainBox([[0.8, 0.0], [0.3, 0.5]], [[0.95, 1.0], [0.5, 0.7]])
    >>> box.upper[0]
    array([0.95, 0.2 ])
    >>> box.contains(MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
    True
    """

    lower: FloatArray
    upper: FloatArray
    states: tuple[Label, ...]
    grid: Grid | None
    sources: Sources
    schema = "belief/chain-box"

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        states: Iterable[Any] | None = None,
        *,
        grid: Grid | None = None,
        sources: Sources = NO_SOURCES,
    ) -> None:
        low, high = parse_matrix(lower, "lower"), parse_matrix(upper, "upper")
        if low.shape != high.shape:
            raise InvalidInputError(
                f"lower has {len(low)} rows and upper has {len(high)}; give both one row per state."
            )
        labels = parse_states(states, len(low))
        low, high = clip_to_row_sums(low, np.minimum(high, 1.0))
        self.__setstate__((low, high, labels, parse_grid(grid), sources))

    @classmethod
    def fit(
        cls,
        sequences: Any,
        confidence: Number = 0.95,
        states: Iterable[Any] | None = None,
        grid: Grid | None = None,
    ) -> ChainBox:
        """Return a confidence region: it contains the chain behind the data with this confidence.

        All k² bounds hold simultaneously, for every chain on `states` and any start; a state that
        was never left has bounds 0 and 1. Never fit on the data to be released: the box records
        where its sequences came from, so that such a release warns. O(T + k²).

        Theorem: docs/theory/confidence-box.md

        Args:
            sequences: one sequence or many from the same chain, as in `MarkovChain.fit`.
            confidence: the probability, over the data, that the box contains the chain.
            states: the states; by default those of the grid, else the labels that occur. Then the
                region is for chains without other states.
            grid: the step and binning of the data; `read_series` records it with what it reads.

        Raises:
            InvalidInputError: for invalid data, or a confidence outside (0, 1).

        >>> box = ChainBox.fit([0, 1, 1, 0] * 250, confidence=0.95)
        >>> box.contains(MarkovChain([[0.5, 0.5], [0.5, 0.5]]))
        True
        """
        error = 1 - proper_fraction(confidence, "confidence")
        pieces = split_sequences(sequences)
        data_grid = grid_of(pieces, grid)
        counts = count_transitions(recorded_runs(pieces), states, data_grid)
        lower, upper = box_bounds(counts.transitions, counts.transitions, error)
        sources = Sources.of(pieces, lower)
        return cls(lower, upper, counts.states, grid=data_grid, sources=sources)

    @classmethod
    def from_counts(
        cls,
        lowest: ArrayLike,
        highest: ArrayLike,
        confidence: Number = 0.95,
        states: Iterable[Any] | None = None,
        grid: Grid | None = None,
    ) -> ChainBox:
        """Return a confidence region from bounds on each transition count.

        For privately released counts: if all true counts lie between `lowest` and `highest` with
        probability 1 − β, the region contains the chain with probability confidence − β. O(k²).

        Theorem: docs/theory/confidence-box.md

        Raises:
            InvalidInputError: if the bounds are no square matrices or leave no count.

        >>> wide = ChainBox.from_counts([[80, 0], [0, 40]], [[120, 30], [30, 60]])
        >>> wide.contains(MarkovChain([[0.9, 0.1], [0.2, 0.8]]))
        True
        """
        error = 1 - proper_fraction(confidence, "confidence")
        fewest, most = parse_count_bounds(lowest, highest)
        return cls(*box_bounds(fewest, most, error), states, grid=grid)

    def contains(self, chain: MarkovChain) -> bool:
        """Return whether the chain's matrix lies in the box, up to a relative 1e-12; O(k²).

        Zeros are exact: a transition the box excludes must have probability 0.

        Raises:
            InvalidInputError: if the chain has other states, or is known to be on another grid.
        """
        if not isinstance(chain, MarkovChain):
            raise InvalidInputError(
                f"A box contains chains; {type(chain).__name__} is not one. Give a MarkovChain."
            )
        if chain.states != self.states:
            raise InvalidInputError(
                f"The chain's states are {show_labels(chain.states)}, the box's are "
                f"{show_labels(self.states)}; only beliefs on the same states can be compared."
            )
        if words := grid_difference(self.grid, chain.grid):
            raise InvalidInputError(
                f"The box was made for {words[0]}, the chain for {words[1]}; only beliefs on the "
                "same grid can be compared."
            )
        above = chain.transition >= self.lower * (1 - _ROUNDING)
        below = chain.transition <= self.upper * (1 + _ROUNDING)
        return bool((above & below).all())

    def allows(self, codes: IntArray) -> bool:
        """Return whether every step of a path of state indices is possible. O(length)."""
        return bool((self.upper[codes[:-1], codes[1:]] > 0).all())

    def summary(self) -> str:
        """Return states, widest entry and grid in words."""
        apart = f"{float((self.upper - self.lower).max()):.3g}"
        return self._summarized(
            "any chain",
            " with transition probabilities between given bounds (at most "
            f"{apart} apart), which may change over time, and any start",
        )

    def __repr__(self) -> str:
        """Return states, widest entry and grid, without the matrices."""
        return f"{self._words(f'; widest={float((self.upper - self.lower).max()):.3g}')})"


def clip_to_row_sums(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the tightest bounds with the same rows of sum 1. O(k²).

    lower(x,y) becomes max(lower(x,y), 1 − Σ_{z≠y} upper(x,z)), upper(x,y) becomes
    min(upper(x,y), 1 − Σ_{z≠y} lower(x,z)); one pass reaches the fixed point.
    """
    for row, column in np.argwhere(lower > upper)[:1]:
        raise InvalidInputError(
            f"Row {row + 1}: lower is {float(lower[row, column])!r} and upper is "
            f"{float(upper[row, column])!r} in position {column + 1}; lower must not exceed upper."
        )
    low, high = lower.copy(), upper.copy()
    with localcontext(Context(prec=_DIGITS)):
        for row in range(len(lower)):
            _clip_row(low[row], high[row], row + 1)
    return low, high


def _clip_row(low: FloatArray, high: FloatArray, row: int) -> None:
    # Decimals as written, so that bounds such as 0.1 and 0.9 add up to exactly 1.
    lows = [Decimal(repr(value)) for value in low.tolist()]
    highs = [Decimal(repr(value)) for value in high.tolist()]
    least, most = sum(lows, Decimal(0)), sum(highs, Decimal(0))
    if least > 1 + _FEASIBILITY or most < 1 - _FEASIBILITY:
        name, total = ("lower", least) if least > 1 else ("upper", most)
        raise InvalidInputError(
            f"Row {row} of {name} sums to {float(total):.10g}, so no distribution fits between "
            "lower and upper; lower must sum to at most 1 and upper to at least 1."
        )
    for column, (a, b) in enumerate(zip(lows, highs, strict=True)):
        # What the other entries cannot supply, and what they leave.
        need, room = 1 - (most - b), 1 - (least - a)
        if need > a:
            low[column] = min(_outward(need, -math.inf), float(high[column]))
        if room < b:
            high[column] = max(_outward(room, math.inf), float(low[column]))


def _outward(value: Decimal, direction: float) -> float:
    """Return the float next to `value` whose shortest decimal is not inside of it."""
    nearest = float(value)
    inside = Decimal(repr(nearest)) > value if direction < 0 else Decimal(repr(nearest)) < value
    return min(1.0, max(0.0, math.nextafter(nearest, direction) if inside else nearest))
