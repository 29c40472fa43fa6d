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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget.spending import Spending
from quiltwork.caching import cached_property
from quiltwork.exact import float_up, parse_stored_fraction
from quiltwork.influence.gaussian import SumLevels
from quiltwork.influence.sweep import Levels

Times: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[Any]
"""Integers of type int64, or Python's own where int64 could overflow."""

_LONGEST_DENOMINATOR_BITS = 1024
_FINE = 1 << 256
_SAFE = 1 << 60
_UP = 1 + 2.0**-49
_END = np.iinfo(np.int64).max


class Runs(NamedTuple):
    """What each time point from first[j] up to the next run is charged, over the denominator.

    `own` if it changes alone, `forward` on top of a change that comes from the left, `backward` of
    one that comes from the right.
    """

    first: Times
    own: Integers
    forward: Integers
    backward: Integers


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
    times: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sums: Integers = field(default_factory=lambda: np.empty((0, 5), dtype=np.int64))
    everything: int = 0
    narrowest: Fraction | None = None
    """The narrowest range that values were clipped to, of the releases that tell theirs."""

    def plus(self, *spendings: Spending) -> Usage:
        """Add releases. Cost: a copy of the rows; some milliseconds for 10⁵ windows.

        A denominator that would make the common one longer than 1024 bits is avoided by rounding
        that release's charges up, by less than 2⁻²⁵⁶ each.
        """
        parts = [part for spending in spendings for part in spending.parts]
        common, narrowest = self.denominator, self.narrowest
        for one in parts:
            costs = one.per_point, one.per_pair, one.once
            common = _common(common, *(cost.denominator for cost in costs))
            narrowest = least_span(narrowest, one)
        everything = self.everything * (common // self.denominator)
        times: list[int] = []
        rises: list[tuple[int, ...]] = []
        for one in parts:
            costs = one.per_point, one.per_pair, one.once
            point, pair, once = (_over(common, cost) for cost in costs)
            times += (one.start, one.stop, one.stop + 1)
            rises += ((point, pair, once, 0), (0, -pair, 0, once), (-point, 0, 0, 0))
            everything += point * (one.stop - one.start + 1) + pair * (one.stop - one.start) + once
        kind = np.int64 if everything < _SAFE else object
        given = np.array(times, dtype=np.int64), np.array(rises, dtype=kind).reshape(-1, 4)
        return self._raised(common, *given, everything, narrowest)

    def combined(self, other: Usage, factor: Fraction) -> Usage:
        """Add `factor` times another usage. O(rows of both)."""
        common = _common(self.denominator, other.denominator * factor.denominator)
        times = math.ceil(factor * common / other.denominator)
        everything = common // self.denominator * self.everything + times * other.everything
        changes, rises = other.rises()
        if everything >= _SAFE:
            rises = rises.astype(object)
        narrowest = _least(self.narrowest, other.narrowest)
        rises = rises * times if len(rises) else rises
        return self._raised(common, changes, rises, everything, narrowest)

    def _raised(
        self, common: int, at: Times, by: Integers, everything: int, narrowest: Fraction | None
    ) -> Usage:
        """The usage with charges that change at some times, over a multiple of the denominator."""
        kind = np.int64 if everything < _SAFE else object
        times, sums = self.times, self.sums.astype(kind)
        if len(sums) and common != self.denominator:
            sums = sums * (common // self.denominator)
        new, which = np.unique(at, return_inverse=True)
        rises = np.zeros((len(new), 4), dtype=kind)
        np.add.at(rises, which, by)
        changed = (rises != 0).any(axis=1)
        new, rises = new[changed], rises[changed]
        if not len(new):
            return Usage(common, times, sums, everything, narrowest)
        times, sums = _with_rows(times, sums, new)
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
        return Usage(common, times, sums, everything, narrowest)

    def rises(self) -> tuple[Times, Integers]:
        """The times of all rows, and how charges change at each. O(rows).

        By how much those per point and per pair rise from the time before, and what the windows
        that begin and that end there are charged once.
        """
        risen = self.sums[:, :2] - self._earlier(0, len(self.sums))[:, :2]
        return self.times, np.concatenate([risen, self.sums[:, 3:]], axis=1)

    def _earlier(self, begin: int, end: int) -> Integers:
        """The row before each of some rows."""
        nothing = np.zeros((0 if begin else 1, 5), dtype=self.sums.dtype)
        rows = self.sums[max(begin - 1, 0) : max(end - 1, 0)]
        return np.concatenate([nothing, rows])[: end - begin]

    @classmethod
    def of_rises(
        cls,
        denominator: int,
        times: Times,
        rises: Integers,
        narrowest: Fraction | None = None,
    ) -> Usage:
        """The usage whose charges change so at some times in order. O(times)."""
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
        everything = usage.charges(np.array([1]), times[-1:])[0]
        return replace(usage, everything=int(everything))

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values: when charges change, and by how much. O(changes)."""
        times, rises = self.rises()
        columns = [row.tolist() if (row != 0).any() else [] for row in rises.T]
        span = None if self.narrowest is None else str(self.narrowest)
        steps = np.diff(times, prepend=0).tolist()
        return {"over": self.denominator, "steps": steps, "rises": columns, "narrowest": span}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Usage:
        """Read what `to_body` wrote, exactly as it was. O(changes).

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: if it is something else.
        """
        steps, span = body["steps"], body["narrowest"]
        columns = [column or [0] * len(steps) for column in body["rises"]]
        large = max((abs(one) for column in columns for one in column), default=0) >= _SAFE
        rises: Integers = np.array(columns, dtype=object if large else np.int64).reshape(4, -1).T
        times = np.cumsum(np.array(steps, dtype=np.int64))
        narrowest = None if span is None else parse_stored_fraction(span, "narrowest")
        return cls.of_rises(int(body["over"]), times, rises, narrowest)

    def highest(self, first: int, last: int) -> Fraction:
        """The most that is spent on a time point of first..last itself. O(rows between)."""
        return Fraction(int(self.between(first, last).own.max()), self.denominator)

    def _rows(self, first: int, last: int) -> tuple[int, int]:
        """The rows from the one that holds at `first` to the last one up to `last`."""
        begin = max(int(np.searchsorted(self.times, first, side="right")) - 1, 0)
        return begin, int(np.searchsorted(self.times, last, side="right"))

    @cached_property
    def runs(self) -> Runs:
        """Runs of time points that are charged alike, from the first one on without end."""
        return self.between(1, _END - 1)

    def between(self, first: int, last: int) -> Runs:
        """Runs of the time points first..last: at the time of a row, and after it. O(rows)."""
        begin, end = self._rows(first, last)
        point, pair, around, begun, ended = self.sums[begin:end].T
        earlier = self._earlier(begin, end)
        behind, coming = earlier[:, 1], earlier[:, 2]
        times, once = self.times[begin:end], point + pair
        pieces = (
            (times, times + 1),
            (once + behind + begun + coming, once + pair + around),
            (once + begun, once),
            (point + behind + ended, once),
        )
        first_of, *rows = (
            np.concatenate(
                [
                    piece[0][:0] if begin else np.zeros_like(piece[0], shape=1),
                    np.stack(piece, axis=1).ravel(),
                ]
            )
            for piece in pieces
        )
        begins = np.maximum(first_of, first)
        kept = (np.append(begins[1:], last + 1) > begins) & (begins <= last)
        return Runs(begins[kept], *(row[kept] for row in rows))

    def levels(self, length: int) -> Levels:
        """What is spent on each time point, rounded up. O(rows)."""
        starts, *charged = self.between(1, length)
        own, forward, backward = (_floats(row, self.denominator) for row in charged)
        return Levels(starts, own, forward, backward, length, float_up(self.total)).joined()

    def sum_levels(self, length: int) -> SumLevels:
        """What sums and means of clipped numbers spend on each time point, rounded up."""
        inside = int(np.searchsorted(self.times, length, side="right"))
        times, level = self.times[:inside], _floats(self.sums[:inside, 0], self.denominator)
        if not inside or times[0] > 1:
            times, level = np.append(1, times), np.append(0.0, level)
        once = sum(self.sums[:, 3].tolist()) / self.denominator
        return SumLevels(times, level, length, once * _UP)

    def charges(self, start: Times, stop: Times) -> Integers:
        """What changing each of start..stop is charged, over the denominator; empty ones nothing.

        O(rows) the first time, then O(log rows) each.
        """
        found = self._sum(2, stop) - self._sum(3, start - 1)
        return np.where(stop >= start, found, 0)

    def charge(self, first: int, last: int) -> Fraction:
        """The charge of one run, exactly."""
        found = self.charges(np.array([first]), np.array([last]))[0]
        return Fraction(int(found), self.denominator)

    @property
    def total(self) -> Fraction:
        """The charge of everything: what group privacy pays."""
        return Fraction(self.everything, self.denominator)

    def _sum(self, row: int, last: Times) -> Integers:
        """A row of `runs` added up over all time points up to `last`."""
        place = np.searchsorted(self.runs.first, last, side="right") - 1
        size = (last - self.runs.first[place] + 1).astype(self.sums.dtype)
        found = self._sums[row - 2][place] + self.runs[row][place] * size
        return np.where(last > 0, found, 0)

    @cached_property
    def _sums(self) -> tuple[Integers, ...]:
        """The sums of `forward` and of `backward` over all runs before each."""
        sizes = np.diff(self.runs.first).astype(self.sums.dtype)
        return tuple(
            np.concatenate([np.zeros_like(row[:1]), np.cumsum(row[:-1] * sizes)])
            for row in (self.runs.forward, self.runs.backward)
        )


def _floats(numbers: Integers, denominator: int) -> NDArray[np.float64]:
    """The quotients, rounded up."""
    if numbers.dtype == object or denominator >= _SAFE:
        return np.array([number / denominator for number in numbers.tolist()]) * _UP
    return np.asarray(numbers / float(denominator) * _UP)


def _with_rows(times: Times, sums: Integers, new: Times) -> tuple[Times, Integers]:
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
