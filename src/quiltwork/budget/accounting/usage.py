"""What a set of releases charges for changing a run of time points, in exact integers.

Charges per point, per pair of neighbours and per window add up over releases, so a set of releases
is the times at which these charges change: at most three for each release, whatever the length of
the series. In between every time point is charged alike. The charge of a run l..r is G(r) − H(l),
where G(r) adds up `forward` over all times up to r, and H(l) adds up `backward` over all times
before l: a pair, and a window that is charged once, are paid where they begin, or where they end.
All numbers are integers over one common denominator.

Theorem: docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up
from quiltwork.influence.gaussian import SumLevels
from quiltwork.influence.sweep import Levels

Integers: TypeAlias = NDArray[Any]
"""Integers of type int64, or Python's own where int64 could overflow."""

Corner: TypeAlias = tuple[int, int, int, int]
"""At one time: by how much the charges per point and per pair rise from the time before, and what
the windows that begin and that end there are charged once."""

_NO_CORNER: Corner = (0, 0, 0, 0)
_LONGEST_DENOMINATOR_BITS = 1024
_FINE = 1 << 256
_SAFE = 1 << 60
_UP = 1 + 2.0**-49


class ChargedRun(NamedTuple):
    """What each time point from `first` up to the next run is charged, over the denominator.

    `own` if it changes alone, `forward` on top of a change that comes from the left, `backward` of
    one that comes from the right.
    """

    first: int
    own: int
    forward: int
    backward: int


@dataclass(frozen=True, eq=False)
class Charges:
    """The sums of a series: upto[r] is G(r), before[l − 1] is H(l), as integers."""

    upto: Integers
    before: Integers
    denominator: int

    def of(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Integers:
        """The charges of the runs start..stop, over `denominator`."""
        charges: Integers = self.upto[stop] - self.before[start - 1]
        return charges


@dataclass(frozen=True, eq=False)
class Usage:
    """All charges of a set of releases; immutable, grown by `plus`.

    >>> usage = Usage().plus(Spending.dp(0.1, 1, 10), Spending.dp(0.2, 5, 20))
    >>> usage.charge(4, 6), usage.charge(1, 20)
    (Fraction(7, 10), Fraction(21, 5))
    """

    denominator: int = 1
    corners: Mapping[int, Corner] = field(default_factory=dict)
    everything: int = 0
    narrowest: Fraction | None = None
    """The narrowest range that values were clipped to, of the releases that tell theirs."""

    def plus(self, *spendings: Spending) -> Usage:
        """Add releases, one after the other. Cost: a copy of the corners.

        A denominator that would make the common one longer than 1024 bits is avoided by rounding
        that release's charges up, by less than 2⁻²⁵⁶ each.
        """
        common, everything, corners = self.denominator, self.everything, dict(self.corners)
        narrowest = self.narrowest
        for one in spendings:
            narrowest = least_span(narrowest, one)
            costs = (one.per_point, one.per_pair, one.once)
            wanted = _common(common, *(cost.denominator for cost in costs))
            if wanted != common:
                factor = wanted // common
                common, everything, corners = wanted, everything * factor, _times(corners, factor)
            point, pair, once = (math.ceil(cost * common) for cost in costs)
            _raise(corners, one.start, (point, pair, once, 0))
            _raise(corners, one.stop, (0, -pair, 0, once))
            _raise(corners, one.stop + 1, (-point, 0, 0, 0))
            everything += point * (one.stop - one.start + 1) + pair * (one.stop - one.start) + once
        return Usage(common, corners, everything, narrowest)

    def combined(self, other: Usage, factor: Fraction) -> Usage:
        """Add `factor` times another usage. O(corners of both)."""
        common = _common(self.denominator, other.denominator * factor.denominator)
        scale = common // self.denominator
        times = math.ceil(factor * common / other.denominator)
        corners = _times(self.corners, scale)
        for time, corner in _times(other.corners, times).items():
            _raise(corners, time, corner)
        everything = scale * self.everything + times * other.everything
        return Usage(common, corners, everything, _least(self.narrowest, other.narrowest))

    def corner(self, time: int) -> tuple[Fraction, ...]:
        """How charges change at one time: exact, and the same whatever the denominator."""
        return tuple(Fraction(n, self.denominator) for n in self.corners.get(time, _NO_CORNER))

    @classmethod
    def of_corners(
        cls, denominator: int, corners: Mapping[int, Corner], narrowest: Fraction | None = None
    ) -> Usage:
        """The usage with these corners, given over the denominator. O(corners)."""
        usage = cls(denominator, corners)
        last = max(corners, default=0)
        return cls(denominator, corners, usage._upto(last) - usage._before(1), narrowest)

    @cached_property
    def runs(self) -> tuple[ChargedRun, ...]:
        """Runs of time points that are charged alike, from the first that is charged on."""
        return tuple(self._found_runs())

    def _found_runs(self) -> Iterator[ChargedRun]:
        point = pair = going_on = 0
        for time in sorted({*self.corners, *(time + 1 for time in self.corners)}):
            behind, around = pair, going_on  # the pair and the windows that come from the left
            rise, pairs, begun, ended = self.corners.get(time, _NO_CORNER)
            point, pair, going_on = point + rise, pair + pairs, going_on + begun - ended
            own = point + pair + behind + begun + around
            yield ChargedRun(time, own, point + pair + begun, point + behind + ended)

    def levels(self, length: int) -> Levels:
        """What is spent on each time point, rounded up. O(corners)."""
        runs = [run for run in self.runs if run.first <= length]
        if not runs or runs[0].first > 1:
            runs.insert(0, ChargedRun(1, 0, 0, 0))
        first = np.array([run.first for run in runs])
        own, forward, backward = (
            np.array([run[part] / self.denominator for run in runs]) * _UP for part in (1, 2, 3)
        )
        return Levels(first, own, forward, backward, length, float_up(self.total)).joined()

    def sum_levels(self, length: int) -> SumLevels:
        """What sums and means of clipped numbers spend on each time point, rounded up."""
        times = sorted({1, *(time for time in self.corners if time <= length)})
        rises = [self.corners.get(time, _NO_CORNER)[0] for time in times]
        level = np.array([total / self.denominator for total in accumulate(rises)]) * _UP
        once = sum(begun for _, _, begun, _ in self.corners.values()) / self.denominator
        return SumLevels(np.array(times), level, length, once * _UP)

    def charges(self, length: int) -> Charges:
        """The sums on 1..length, O(length)."""
        runs = (ChargedRun(0, 0, 0, 0), *(run for run in self.runs if run.first <= length))
        lengths = np.diff([*(run.first for run in runs), length + 1])
        most = max(max(abs(run.forward), abs(run.backward)) for run in runs)
        kind = np.int64 if most * (length + 2) < _SAFE else object
        upto, before = (
            np.cumsum(np.repeat(np.array([run[part] for run in runs], dtype=kind), lengths))
            for part in (2, 3)
        )
        return Charges(upto, before, self.denominator)

    def charge(self, first: int, last: int) -> Fraction:
        """The charge of one run, exactly. O(corners) the first time, then O(log corners)."""
        if last < first:
            return Fraction(0)
        return Fraction(self._upto(last) - self._before(first), self.denominator)

    @property
    def total(self) -> Fraction:
        """The charge of everything: what group privacy pays."""
        return Fraction(self.everything, self.denominator)

    def _upto(self, last: int) -> int:
        return self._sum(self._sums[0], 2, last)

    def _before(self, first: int) -> int:
        return self._sum(self._sums[1], 3, first - 1)

    def _sum(self, sums: list[int], part: int, last: int) -> int:
        """The sum up to `last`, of what its run adds and the runs before it."""
        place = bisect_right(self.runs, last, key=lambda run: run.first) - 1
        if place < 0:
            return 0
        run = self.runs[place]
        return sums[place] + run[part] * (last - run.first + 1)

    @cached_property
    def _sums(self) -> tuple[list[int], list[int]]:
        """The sums of `forward` and of `backward` over all runs before each."""
        forward, backward = (
            [0, *accumulate(a[part] * (b.first - a.first) for a, b in pairwise(self.runs))]
            for part in (2, 3)
        )
        return forward, backward


def least_span(narrowest: Fraction | None, spending: Spending) -> Fraction | None:
    """The narrowest range after one more release; one that tells nothing counts for none."""
    return _least(narrowest, spending.span if spending.dp_epsilon else None)


def _least(*spans: Fraction | None) -> Fraction | None:
    return min((span for span in spans if span is not None), default=None)


def _common(denominator: int, *others: int) -> int:
    wanted = math.lcm(denominator, *others)
    too_long = wanted.bit_length() > _LONGEST_DENOMINATOR_BITS
    return math.lcm(denominator, _FINE) if too_long else wanted


def _times(corners: Mapping[int, Corner], factor: int) -> dict[int, Corner]:
    if factor == 1:
        return dict(corners)
    return {
        time: (a * factor, b * factor, c * factor, d * factor)
        for time, (a, b, c, d) in corners.items()
    }


def _raise(corners: dict[int, Corner], time: int, by: Corner) -> None:
    """Add to what changes at one time; where nothing changes is no corner."""
    a, b, c, d = corners.get(time, _NO_CORNER)
    corners[time] = (a + by[0], b + by[1], c + by[2], d + by[3])
    if not any(corners[time]):
        del corners[time]
