"""Additive statistics: queries as a sum of integers over the steps of a chain.

F = start[X_1] + Σ gain[X_{t−1}, X_t] over the steps t = first..last. A count, a sum of numbers
(in units of their greatest common divisor) and one cell of a histogram or of transition counts
have this form, so their laws are a dynamic program over (state, running value). The joint law of
several statistics uses one integer code, whose digits are their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from quiltwork.beliefs.matrices import IntArray
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import positive_fraction, shortened, to_fraction
from quiltwork.queries import ByHour, Count, Histogram, Query, Sum, TimePerDay, Top, Transitions
from quiltwork.queries.query import States, parse_query

_LARGEST = 1 << 62
"""Running values and codes must fit int64."""


@dataclass(frozen=True, eq=False)
class AdditiveStatistic:
    """One cell of an answer: (offset + unit·F)/divisor for the integer statistic F.

    Attributes:
        start: (k,) the contribution of X_1, per state.
        gain: (k, k) the contribution of a step from x to y.
        first: the first step that contributes, by the time point it arrives at.
        last: the last one.
        unit: the greatest common divisor of the values, divided out of F.
        offset: the smallest total.
        divisor: the number of points, for a mean or a share; else 1.
    """

    start: IntArray
    gain: IntArray
    first: int
    last: int
    unit: Fraction
    offset: Fraction
    divisor: int

    @property
    def steps(self) -> int:
        """The number of steps that contribute."""
        return max(0, self.last - self.first + 1)

    @property
    def size(self) -> int:
        """One more than the largest value of F: its values are 0..size−1."""
        return int(self.start.max()) + int(self.gain.max()) * self.steps + 1


@dataclass(frozen=True, eq=False)
class JointStatistic:
    """Several additive statistics with their noise scales; one integer code per value vector.

    `scales` are in units of the integer statistics. The code of (v_1, …, v_d) is its index in an
    array of shape `sizes`, so codes add up as values do.
    """

    parts: tuple[AdditiveStatistic, ...]
    scales: tuple[Fraction, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each statistic."""
        return tuple(part.size for part in self.parts)

    @cached_property
    def cells(self) -> int:
        """The number of codes, that is of points of the product grid."""
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The increase of the code per unit of each statistic."""
        return tuple(math.prod(self.sizes[j + 1 :]) for j in range(len(self.sizes)))

    @cached_property
    def start(self) -> IntArray:
        """(k,) the code of X_1's contribution, per state."""
        weighted = [s * part.start for s, part in zip(self.strides, self.parts, strict=True)]
        return np.asarray(np.sum(weighted, axis=0, dtype=np.int64))

    def of_inner_states(self, shown: IntArray) -> JointStatistic:
        """Return the statistics as functions of inner states; `shown` maps these to states."""
        pairs = np.ix_(shown, shown)
        parts = [replace(p, start=p.start[shown], gain=p.gain[pairs]) for p in self.parts]
        return JointStatistic(tuple(parts), self.scales)

    def gain(self, t: int) -> IntArray:
        """Return the code of the step that arrives at time point t, per pair of states."""
        total = np.zeros_like(self.parts[0].gain)
        for stride, part in zip(self.strides, self.parts, strict=True):
            if part.first <= t <= part.last:
                total += stride * part.gain
        return total

    def output(self, code: int) -> tuple[int | float, ...]:
        """Return the answers that a code stands for, in units of the queries."""
        return self.answers(int(digit) for digit in np.unravel_index(code, self.sizes))

    def answers(self, values: Iterable[int]) -> tuple[int | float, ...]:
        """Return the answers that values of the statistics stand for."""
        return tuple(
            _as_number((part.offset + part.unit * value) / part.divisor)
            for part, value in zip(self.parts, values, strict=True)
        )


def _as_number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def additive_parts(query: Query, states: States, length: int) -> tuple[AdditiveStatistic, ...]:
    """Return the cells of a query's answer as additive statistics.

    A sum or mean is taken on its grid if it has one (the query of a release), else exactly.

    Raises:
        UnsupportedError: for queries that are not additive, such as custom ones.
    """
    parse_query(query).check(states)
    if query.runs:
        raise UnsupportedError(
            "The exact leakage of several runs together is not available; audit each run alone."
        )
    window = query.window(length)
    size, divisor = len(states), query.divisor(window[1] - window[0] + 1)
    if isinstance(query, Count):
        each = 24 if isinstance(query, TimePerDay) else 1
        values = [each * v for v in _indicator(states.index(query.state), size)]
        return (_per_point(values, window, divisor),)
    if isinstance(query, Histogram) and not isinstance(query, ByHour | Top):
        return tuple(_per_point(_indicator(s, size), window, divisor) for s in range(size))
    if isinstance(query, Sum):
        return (_per_point(query.values(states), window, divisor),)
    if isinstance(query, Transitions):
        return tuple(_per_pair(pair, size, window) for pair in range(size * size))
    raise UnsupportedError(
        f"The exact leakage of {query.kind!r} is not available; it is for counts, histograms, "
        "sums, means and transition counts with additive noise."
    )


def joint(releases: Sequence[tuple[Query, object]], states: States, length: int) -> JointStatistic:
    """Return (query, scale) pairs as one joint statistic; scales are in units of the answers."""
    parts: list[AdditiveStatistic] = []
    scales: list[Fraction] = []
    for query, scale in _pairs(releases):
        sigma = _read_scale(scale)
        cells = additive_parts(query, states, length)
        parts += cells
        scales += [sigma * cell.divisor / cell.unit for cell in cells]
    return JointStatistic(tuple(parts), tuple(scales))


def _read_scale(scale: object) -> Fraction:
    sigma = to_fraction(scale, "The noise scale")
    if sigma < 0:
        raise InvalidInputError(f"A noise scale must not be negative, not {shortened(scale)}.")
    return positive_fraction(scale, "The noise scale") if sigma else sigma


def _pairs(releases: object) -> list[tuple[Query, object]]:
    if not isinstance(releases, (list, tuple)) or not releases:
        raise InvalidInputError(
            "Give the releases as a list of (query, scale) pairs, for example "
            "[(queries.count(1), 3.5)]."
        )
    for pair in releases:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise InvalidInputError(
                "A release is a pair (query, scale), the scale of the noise added, not "
                f"{shortened(pair)}."
            )
    return [(pair[0], pair[1]) for pair in releases]


def _indicator(state: int, size: int) -> list[Fraction]:
    return [Fraction(s == state) for s in range(size)]


def _per_point(values: list[Fraction], window: tuple[int, int], divisor: int) -> AdditiveStatistic:
    start, stop = window
    points, lowest = stop - start + 1, min(values)
    denominator = math.lcm(*(value.denominator for value in values))
    excess = [int((value - lowest) * denominator) for value in values]
    common = max(1, math.gcd(*excess))
    if max(excess) // common * points > _LARGEST:
        raise UnsupportedError(
            f"The values of the states are multiples of {common / denominator:.6g}, which is too "
            "fine a grid for an exact audit; round them to a coarser one."
        )
    steps = np.array([value // common for value in excess], dtype=np.int64)
    first = steps if start == 1 else np.zeros_like(steps)
    gain = np.broadcast_to(steps, (len(steps), len(steps))).copy()
    unit = Fraction(common, denominator)
    return AdditiveStatistic(first, gain, max(start, 2), stop, unit, lowest * points, divisor)


def _per_pair(pair: int, size: int, window: tuple[int, int]) -> AdditiveStatistic:
    gain = np.zeros((size, size), dtype=np.int64)
    gain[divmod(pair, size)] = 1
    start = np.zeros(size, dtype=np.int64)
    return AdditiveStatistic(start, gain, window[0] + 1, window[1], Fraction(1), Fraction(0), 1)
