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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up
from quiltwork.influence.gaussian import SumLevels
from quiltwork.influence.sweep import Levels
from quiltwork.lazy import cached_property

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


@dataclass(frozen=True, eq=False)
class ChargedRuns:
    """What each time point from first[j] up to the next run is charged, over the denominator.

    `own` if it changes alone, `forward` on top of a change that comes from the left, `backward` of
    one that comes from the right.
    """

    first: NDArray[np.int64]
    own: Integers
    forward: Integers
    backward: Integers


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

    Row j of `sums` holds from times[j] up to the next time: the charges per point, per pair with
    the next point, and of the windows that go on to it; then what begins and what ends at times[j]
    itself. So one more release adds to the rows of its window, and copies the others.

    >>> usage = Usage().plus(Spending.dp(0.1, 1, 10), Spending.dp(0.2, 5, 20))
    >>> usage.charge(4, 6), usage.charge(1, 20)
    (Fraction(7, 10), Fraction(21, 5))
    """

    denominator: int = 1
    times: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sums: Integers = field(default_factory=lambda: np.empty((0, 5), dtype=np.int64))
    everything: int = 0
    narrowest: Fraction | None = None
    """The narrowest range that values were clipped to, of the releases that tell theirs."""

    def plus(self, *spendings: Spending) -> Usage:
        """Add releases. Cost: a copy of the rows; some milliseconds for 10⁵ windows.

        A denominator that would make the common one longer than 1024 bits is avoided by rounding
        that release's charges up, by less than 2⁻²⁵⁶ each.
        """
        common, everything, narrowest = self.denominator, self.everything, self.narrowest
        corners: dict[int, Corner] = {}
        for one in (part for spending in spendings for part in spending.parts):
            narrowest = least_span(narrowest, one)
            costs = (one.per_point, one.per_pair, one.once)
            wanted = _common(common, *(cost.denominator for cost in costs))
            if wanted != common:
                factor = wanted // common
                common, everything, corners = wanted, everything * factor, _times(corners, factor)
            point, pair, once = (_over(common, cost) for cost in costs)
            _raise(corners, one.start, (point, pair, once, 0))
            _raise(corners, one.stop, (0, -pair, 0, once))
            _raise(corners, one.stop + 1, (-point, 0, 0, 0))
            everything += point * (one.stop - one.start + 1) + pair * (one.stop - one.start) + once
        return self._raised(common, corners, everything, narrowest)

    def combined(self, other: Usage, factor: Fraction) -> Usage:
        """Add `factor` times another usage. O(rows of both)."""
        common = _common(self.denominator, other.denominator * factor.denominator)
        scale = common // self.denominator
        times = math.ceil(factor * common / other.denominator)
        everything = scale * self.everything + times * other.everything
        narrowest = _least(self.narrowest, other.narrowest)
        return self._raised(common, _times(other.corners, times), everything, narrowest)

    def _raised(
        self, common: int, corners: Mapping[int, Corner], everything: int, least: Fraction | None
    ) -> Usage:
        """The usage with these changes on top, over a multiple of the denominator."""
        kind = np.int64 if everything < _SAFE else object
        sums = self.sums.astype(kind)
        if len(sums) and common != self.denominator:
            sums = sums * (common // self.denominator)
        if not corners:
            return Usage(common, self.times, sums, everything, least)
        new = np.array(sorted(corners))
        rises = np.array([corners[time] for time in new.tolist()], dtype=kind)
        times, sums = _with_rows(self.times, sums, new)
        rows = np.searchsorted(times, new)
        begin, end = int(rows[0]), int(rows[-1]) + 1
        moved = np.zeros((end - begin, 3), dtype=kind)
        moved[rows - begin, :2] = rises[:, :2]
        moved[rows - begin, 2] = rises[:, 2] - rises[:, 3]
        sums[begin:end, :3] += np.cumsum(moved, axis=0)
        sums[rows, 3:] += rises[:, 2:]
        before = np.where((rows > 0)[:, np.newaxis], sums[rows - 1, :3], 0)
        flat = rows[(sums[rows, :3] == before).all(axis=1) & (sums[rows, 3:] == 0).all(axis=1)]
        if len(flat):  # where nothing changes is no row
            times, sums = np.delete(times, flat), np.delete(sums, flat, axis=0)
        return Usage(common, times, sums, everything, least)

    @property
    def corners(self) -> dict[int, Corner]:
        """How charges change at every time at which they do. O(rows)."""
        times, rises = self.rises(0, len(self.times))
        return dict(zip(times.tolist(), map(tuple, rises.tolist()), strict=True))

    def rises(self, begin: int, end: int) -> tuple[NDArray[np.int64], Integers]:
        """The times of some rows, and the corner at each. O(end − begin)."""
        earlier = self.sums[max(begin - 1, 0) : max(end - 1, 0), :2]
        if not begin:
            earlier = np.concatenate([np.zeros((min(1, end), 2), dtype=self.sums.dtype), earlier])
        risen = self.sums[begin:end, :2] - earlier
        return self.times[begin:end], np.concatenate([risen, self.sums[begin:end, 3:]], axis=1)

    @classmethod
    def of_rises(
        cls,
        denominator: int,
        times: NDArray[np.int64],
        rises: Integers,
        narrowest: Fraction | None = None,
    ) -> Usage:
        """The usage with a corner at each of some times in order. O(times)."""
        if not len(times):
            return cls(denominator, narrowest=narrowest)
        if rises.dtype == object:  # perhaps more than any float is
            large = sum(max(map(abs, row)) for row in rises.tolist())
        else:
            large = math.ceil(np.abs(rises).max(axis=1).astype(np.float64).sum())
        fits = 8 * large * (int(times[-1]) + 1) < _SAFE
        point, pair, begun, ended = rises.astype(np.int64 if fits else object).T
        sums = [*(np.cumsum(rise) for rise in (point, pair, begun - ended)), begun, ended]
        usage = cls(denominator, times, np.stack(sums, axis=1), 0, narrowest)
        last = int(times[-1])
        return replace(usage, everything=usage._upto(last) - usage._before(1))

    def highest(self, first: int, last: int) -> Fraction:
        """A bound on what is spent on a time point of first..last itself, which only grows.

        It is the most, but for pairs and windows that begin where others end. O(rows between).
        """
        begin = max(int(np.searchsorted(self.times, first, side="right")) - 1, 0)
        end = int(np.searchsorted(self.times, last, side="right"))
        if begin >= end:
            return Fraction(0)
        point, pair, around, begun, _ = self.sums[begin:end].T
        later = point + 2 * pair + around
        at = point + pair + begun
        at[1:] += self.sums[begin : end - 1, 1] + self.sums[begin : end - 1, 2]
        if begin:
            at[0] += self.sums[begin - 1, 1] + self.sums[begin - 1, 2]
        return Fraction(max(int(at.max()), int(later.max())), self.denominator)

    def same_between(self, other: Usage, first: int, last: int) -> bool:
        """Whether both charge the time points first..last alike. O(rows between)."""
        times, sums = self._between(first, last)
        others, theirs = other._between(first, last)
        if self.denominator != other.denominator and len(times) == len(others):
            sums = sums.astype(object) * other.denominator
            theirs = theirs.astype(object) * self.denominator
        return np.array_equal(times, others) and np.array_equal(sums, theirs)

    def _between(self, first: int, last: int) -> tuple[NDArray[np.int64], Integers]:
        begin = max(int(np.searchsorted(self.times, first, side="right")) - 1, 0)
        end = int(np.searchsorted(self.times, last, side="right"))
        return self.times[begin:end], self.sums[begin:end]

    @cached_property
    def runs(self) -> ChargedRuns:
        """Runs of time points that are charged alike, from the first that is charged on."""
        return self._runs(0, len(self.times))

    def _runs(self, begin: int, end: int) -> ChargedRuns:
        """Those of some rows: at the time of each, and right after it. O(end − begin)."""
        point, pair, around, begun, ended = self.sums[begin:end].T
        nothing = np.zeros((0 if begin else 1, 5), dtype=self.sums.dtype)
        earlier = np.concatenate([nothing, self.sums[max(begin - 1, 0) : end - 1]])[: end - begin]
        behind, coming = earlier[:, 1], earlier[:, 2]
        first = np.stack([self.times[begin:end], self.times[begin:end] + 1], axis=1).ravel()
        own = np.stack([point + pair + behind + begun + coming, point + 2 * pair + around], axis=1)
        forward = np.stack([point + pair + begun, point + pair], axis=1)
        backward = np.stack([point + behind + ended, point + pair], axis=1)
        last = np.diff(first, append=np.iinfo(np.int64).max) > 0  # the next row begins there
        return ChargedRuns(first[last], *(row.ravel()[last] for row in (own, forward, backward)))

    def levels(self, length: int) -> Levels:
        """What is spent on each time point, rounded up. O(rows)."""
        runs = self.runs
        inside = int(np.searchsorted(runs.first, length, side="right"))
        first, *rows = (
            runs.first[:inside],
            *(_floats(row[:inside], self.denominator) for row in (runs.own, *_sides(runs))),
        )
        if not inside or first[0] > 1:
            first, rows = np.append(1, first), [np.append(0.0, row) for row in rows]
        own, forward, backward = rows
        return Levels(first, own, forward, backward, length, float_up(self.total)).joined()

    @cached_property
    def peaks(self) -> tuple[float, ...]:
        """The highest own, forward and backward level, as `levels` rounds them. O(rows)."""
        rows = (self.runs.own, *_sides(self.runs))
        most = np.array([row.max(initial=0) for row in rows], dtype=self.sums.dtype)
        return tuple(_floats(most, self.denominator).tolist())

    def levels_between(self, first: int, last: int, length: int, peaks: Sequence[float]) -> Levels:
        """What is spent on the time points first..last; all others count as high as `peaks`.

        O(rows between), and so quick for one window among many.
        """
        begin = max(int(np.searchsorted(self.times, first, side="right")) - 1, 0)
        end = int(np.searchsorted(self.times, last, side="right"))
        runs = self._runs(begin, end)
        rows = [_floats(row, self.denominator) for row in (runs.own, *_sides(runs))]
        skipped = int(np.searchsorted(runs.first, first, side="right")) - 1
        kept = slice(max(skipped, 0), int(np.searchsorted(runs.first, last, side="right")))
        starts = np.maximum(runs.first[kept], first)
        rows = [row[kept] for row in rows]
        if skipped < 0:
            starts, rows = np.append(first, starts), [np.append(0.0, row) for row in rows]
        if first > 1:
            starts = np.append(1, starts)
            rows = [np.append(peak, row) for peak, row in zip(peaks, rows, strict=True)]
        if last < length:
            starts = np.append(starts, last + 1)
            rows = [np.append(row, peak) for peak, row in zip(peaks, rows, strict=True)]
        own, forward, backward = rows
        return Levels(starts, own, forward, backward, length, float_up(self.total)).joined()

    def sum_levels(self, length: int) -> SumLevels:
        """What sums and means of clipped numbers spend on each time point, rounded up."""
        inside = int(np.searchsorted(self.times, length, side="right"))
        times, level = self.times[:inside], _floats(self.sums[:inside, 0], self.denominator)
        if not inside or times[0] > 1:
            times, level = np.append(1, times), np.append(0.0, level)
        once = sum(self.sums[:, 3].tolist()) / self.denominator
        return SumLevels(times, level, length, once * _UP)

    def charges(self, length: int) -> Charges:
        """The sums on 1..length, O(length)."""
        runs = self.runs
        inside = int(np.searchsorted(runs.first, length, side="right"))
        lengths = np.diff(np.concatenate([[0], runs.first[:inside], [length + 1]]))
        upto, before = (
            np.cumsum(np.repeat(np.concatenate([np.zeros_like(row[:1]), row[:inside]]), lengths))
            if inside
            else np.zeros(length + 1, dtype=np.int64)
            for row in _sides(runs)
        )
        return Charges(upto, before, self.denominator)

    def charge(self, first: int, last: int) -> Fraction:
        """The charge of one run, exactly. O(rows) the first time, then O(log rows)."""
        if last < first:
            return Fraction(0)
        return Fraction(self._upto(last) - self._before(first), self.denominator)

    @property
    def total(self) -> Fraction:
        """The charge of everything: what group privacy pays."""
        return Fraction(self.everything, self.denominator)

    def _upto(self, last: int) -> int:
        return self._sum(self.runs.forward, self._sums[0], last)

    def _before(self, first: int) -> int:
        return self._sum(self.runs.backward, self._sums[1], first - 1)

    def _sum(self, values: Integers, sums: Integers, last: int) -> int:
        """The sum up to `last`, of what its run adds and the runs before it."""
        place = int(np.searchsorted(self.runs.first, last, side="right")) - 1
        if place < 0:
            return 0
        return int(sums[place]) + int(values[place]) * (last - int(self.runs.first[place]) + 1)

    @cached_property
    def _sums(self) -> tuple[Integers, Integers]:
        """The sums of `forward` and of `backward` over all runs before each."""
        sizes = np.diff(self.runs.first).astype(self.sums.dtype)
        forward, backward = (
            np.concatenate([np.zeros_like(row[:1]), np.cumsum(row[:-1] * sizes)])
            for row in _sides(self.runs)
        )
        return forward, backward


def _sides(runs: ChargedRuns) -> tuple[Integers, Integers]:
    return runs.forward, runs.backward


def _floats(numbers: Integers, denominator: int) -> NDArray[np.float64]:
    """The quotients, rounded up."""
    if numbers.dtype == object or denominator >= _SAFE:
        return np.array([number / denominator for number in numbers.tolist()]) * _UP
    return np.asarray(numbers / float(denominator) * _UP)


def _with_rows(
    times: NDArray[np.int64], sums: Integers, new: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Integers]:
    """Rows also for new times, at which nothing changes yet."""
    rows = np.searchsorted(times, new)
    known = np.append(times, -1)[rows] == new
    rows, new = rows[~known], new[~known]
    added = np.zeros((len(rows), 5), dtype=sums.dtype)
    added[rows > 0, :3] = sums[rows[rows > 0] - 1, :3]
    return np.insert(times, rows, new), np.insert(sums, rows, added, axis=0)


def least_span(narrowest: Fraction | None, spending: Spending) -> Fraction | None:
    """The narrowest range after one more release; one that tells nothing counts for none."""
    if spending.span is None or not spending.dp_epsilon:
        return narrowest
    return _least(narrowest, spending.span)


def _least(*spans: Fraction | None) -> Fraction | None:
    return min((span for span in spans if span is not None), default=None)


def _common(denominator: int, *others: int) -> int:
    wanted = math.lcm(denominator, *others)
    too_long = wanted.bit_length() > _LONGEST_DENOMINATOR_BITS
    return math.lcm(denominator, _FINE) if too_long else wanted


def _over(common: int, cost: Fraction) -> int:
    """A cost over the common denominator, rounded up where that is not its own."""
    factor, rest = divmod(common, cost.denominator)
    return cost.numerator * factor if not rest else math.ceil(cost * common)


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
