"""Queries as additive statistics: integers that every step of a chain adds to a running value.

F = start[X_1] + Σ gain[X_{t−1}, X_t] over the steps t = first..last. A count, a sum of numbers
(in units of their greatest common divisor) and one cell of a histogram or of transition counts
are of this form, which is what makes their laws a dynamic program over (state, running value).
Several statistics are followed at once by writing their values as the digits of one integer code.
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
from quiltwork.queries.query import States, read_query

_LARGEST = 1 << 62


@dataclass(frozen=True, eq=False)
class Additive:
    """One cell of an answer: (offset + unit·(what the steps add up to))/divisor.

    Attributes:
        start: what X_1 adds, per state.
        gain: what a step from x to y adds.
        first: the first step that adds (arriving at this time point) …
        last: … and the last one.
        unit: the greatest common divisor that was taken out …
        offset: … and the smallest total.
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
        """How many steps add something."""
        return max(0, self.last - self.first + 1)

    @property
    def size(self) -> int:
        """How many values 0, 1, … the running value may take."""
        return int(self.start.max()) + int(self.gain.max()) * self.steps + 1


@dataclass(frozen=True, eq=False)
class Joint:
    """Several statistics with their noise scales, as one integer code per combination of values.

    `scales` are in units of what the steps add up to. The code of values (v_1, …, v_d) is their
    position in an array of shape `sizes`; codes add up as values do.
    """

    parts: tuple[Additive, ...]
    scales: tuple[Fraction, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each statistic."""
        return tuple(part.size for part in self.parts)

    @cached_property
    def cells(self) -> int:
        """The number of codes: the size of the product grid."""
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one unit of each statistic adds to the code."""
        return tuple(math.prod(self.sizes[j + 1 :]) for j in range(len(self.sizes)))

    @cached_property
    def start(self) -> IntArray:
        """The code that X_1 adds, per state."""
        weighted = [s * part.start for s, part in zip(self.strides, self.parts, strict=True)]
        return np.asarray(np.sum(weighted, axis=0, dtype=np.int64))

    def over(self, shown: IntArray) -> Joint:
        """The same statistics of inner states, each of which shows one of the states."""
        pairs = np.ix_(shown, shown)
        parts = [replace(one, start=one.start[shown], gain=one.gain[pairs]) for one in self.parts]
        return Joint(tuple(parts), self.scales)

    def gain(self, t: int) -> IntArray:
        """The code that the step arriving at time point t adds, per pair of states."""
        total = np.zeros_like(self.parts[0].gain)
        for stride, part in zip(self.strides, self.parts, strict=True):
            if part.first <= t <= part.last:
                total += stride * part.gain
        return total

    def output(self, code: int) -> tuple[int | float, ...]:
        """The numbers that a code stands for, as the queries give them."""
        return self.answers(int(digit) for digit in np.unravel_index(code, self.sizes))

    def answers(self, values: Iterable[int]) -> tuple[int | float, ...]:
        """The numbers that values of the statistics stand for, as the queries give them."""
        return tuple(
            _plain((part.offset + part.unit * value) / part.divisor)
            for part, value in zip(self.parts, values, strict=True)
        )


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def additive_parts(query: Query, states: States, length: int) -> tuple[Additive, ...]:
    """Return the answer of a query as additive statistics, in the order of its cells.

    A sum or mean is taken on its grid if it has one (the query of a release), else exactly.
    """
    read_query(query).check(states)
    if query.runs:
        raise UnsupportedError(
            "The exact leakage of several runs together is not available; ask about each of them."
        )
    window = query.window(length)
    size, divisor = len(states), query.divisor(window[1] - window[0] + 1)
    if isinstance(query, Count):
        each = 24 if isinstance(query, TimePerDay) else 1
        values = [each * one for one in _indicator(states.index(query.state), size)]
        return (_per_point(values, window, divisor),)
    if isinstance(query, Histogram) and not isinstance(query, ByHour | Top):
        return tuple(_per_point(_indicator(s, size), window, divisor) for s in range(size))
    if isinstance(query, Sum):
        return (_per_point(query.values(states), window, divisor),)
    if isinstance(query, Transitions):
        return tuple(_per_pair(pair, size, window) for pair in range(size * size))
    raise UnsupportedError(
        f"The exact leakage of {query.kind!r} is not available: it is known for counts, "
        "histograms, sums, means and transition counts with additive noise."
    )


def joint(releases: Sequence[tuple[Query, object]], states: States, length: int) -> Joint:
    """Read (query, scale) pairs as one joint statistic; scales are in units of the answers."""
    parts: list[Additive] = []
    scales: list[Fraction] = []
    for query, scale in _pairs(releases):
        sigma = _read_scale(scale)
        found = additive_parts(query, states, length)
        parts += found
        scales += [sigma * part.divisor / part.unit for part in found]
    return Joint(tuple(parts), tuple(scales))


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


def _per_point(values: list[Fraction], window: tuple[int, int], divisor: int) -> Additive:
    start, stop = window
    points, lowest = stop - start + 1, min(values)
    denominator = math.lcm(*(value.denominator for value in values))
    rest = [int((value - lowest) * denominator) for value in values]
    common = max(1, math.gcd(*rest))
    if max(rest) // common * points > _LARGEST:
        raise UnsupportedError(
            f"The values of the states are multiples of {common / denominator:.6g}, too fine a "
            "grid for an exact audit; ask about values on a coarser one."
        )
    steps = np.array([value // common for value in rest], dtype=np.int64)
    first = steps if start == 1 else np.zeros_like(steps)
    gain = np.broadcast_to(steps, (len(steps), len(steps))).copy()
    unit = Fraction(common, denominator)
    return Additive(first, gain, max(start, 2), stop, unit, lowest * points, divisor)


def _per_pair(pair: int, size: int, window: tuple[int, int]) -> Additive:
    gain = np.zeros((size, size), dtype=np.int64)
    gain[divmod(pair, size)] = 1
    nothing = np.zeros(size, dtype=np.int64)
    return Additive(nothing, gain, window[0] + 1, window[1], Fraction(1), Fraction(0), 1)
