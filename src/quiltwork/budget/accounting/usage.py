"""`Usage`: the charges of a set of releases for changing any run of time points, exactly.

Charges per point, per pair of neighbours and per window add up over releases, so a set of releases
is represented by the times at which these charges change: at most three for each release, whatever
the length of the series. In between, every time point is charged alike. The charge of a run l..r is
G(r) − H(l), where G(r) adds up `forward` over all times up to r, and H(l) adds up `backward` over
all times before l: pairs, and windows that are charged once, count where they begin in G, and where
they end in H. All numbers are integers over one common denominator.

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
    """The charges of each time point from first[j] up to the next run, over the denominator.

    `own` if it changes alone, `forward` on top of a changed run that ends left of it, `backward` on
    top of one that begins right of it.
    """

    first: Times
    own: Integers
    forward: Integers
    backward: Integers


@dataclass(frozen=True, eq=False)
class Usage:
    """All charges of a set of releases; immutable, `plus` returns a larger one.

    Row j of `sums` holds from times[j] up to the next time: the charges per point, per pair with
    the next point, and of the windows that continue to it; then the charges of windows that begin
    and of those that end at times[j] itself. One more release changes the rows of its window only.

    >>> usage = Usage().plus(Spending.dp(0.1, 1, 10), Spending.dp(0.2, 5, 20))
    >>> usage.charge(4, 6), usage.charge(1, 20)
    (Fraction(7, 10), Fraction(21, 5))
    """

    denominator: int = 1
    times: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sums: Integers = field(default_factory=lambda: np.empty((0, 5), dtype=np.int64))
    total_charge: int = 0
    narrowest: Fraction | None = None
    """The narrowest range that values were clipped to, of the releases that state theirs."""

    def plus(self, *spendings: Spending) -> Usage:
        """Add releases. Cost: a copy of the rows; some milliseconds for 10⁵ windows.

        A denominator that would make the common one longer than 1024 bits is avoided by rounding
        that release's charges up, by less than 2⁻²⁵⁶ each.
        """
        parts = [part for spending in spendings for part in spending.parts]
        common, narrowest = self.denominator, self.narrowest
        for part in parts:
            costs = part.per_point, part.per_pair, part.once
            common = _common(common, *(cost.denominator for cost in costs))
            narrowest = least_span(narrowest, part)
        total_charge = self.total_charge * (common // self.denominator)
        times: list[int] = []
        rises: list[tuple[int, ...]] = []
        for part in parts:
            costs = part.per_point, part.per_pair, part.once
            point, pair, once = (_over(common, cost) for cost in costs)
            times += (part.start, part.stop, part.stop + 1)
            rises += ((point, pair, once, 0), (0, -pair, 0, once), (-point, 0, 0, 0))
            pairs = part.stop - part.start
            total_charge += point * (pairs + 1) + pair * pairs + once
        dtype = np.int64 if total_charge < _SAFE else object  # Python's integers never overflow
        changes = np.array(times, dtype=np.int64), np.array(rises, dtype=dtype).reshape(-1, 4)
        return self._raised(common, *changes, total_charge, narrowest)

    def combined(self, other: Usage, factor: Fraction) -> Usage:
        """Add `factor` times another usage. O(rows of both)."""
        common = _common(self.denominator, other.denominator * factor.denominator)
        times = math.ceil(factor * common / other.denominator)
        total_charge = common // self.denominator * self.total_charge + times * other.total_charge
        changes, rises = other.rises()
        if total_charge >= _SAFE:
            rises = rises.astype(object)
        narrowest = _least(self.narrowest, other.narrowest)
        rises = rises * times if len(rises) else rises
        return self._raised(common, changes, rises, total_charge, narrowest)

    def _raised(
        self, common: int, at: Times, by: Integers, total_charge: int, narrowest: Fraction | None
    ) -> Usage:
        """Return the usage with charges raised at these times, over the denominator `common`."""
        dtype = np.int64 if total_charge < _SAFE else object
        times, sums = self.times, self.sums.astype(dtype)
        if len(sums) and common != self.denominator:
            sums = sums * (common // self.denominator)
        new, row_of = np.unique(at, return_inverse=True)
        rises = np.zeros((len(new), 4), dtype=dtype)
        np.add.at(rises, row_of, by)
        changed = (rises != 0).any(axis=1)
        new, rises = new[changed], rises[changed]
        if not len(new):
            return Usage(common, times, sums, total_charge, narrowest)
        times, sums = _with_rows(times, sums, new)
        rows = np.searchsorted(times, new)
        begin, end = int(rows[0]), int(rows[-1]) + 1
        steps = np.zeros((end - begin, 3), dtype=dtype)
        steps[rows - begin, :2] = rises[:, :2]
        steps[rows - begin, 2] = rises[:, 2] - rises[:, 3]
        sums[begin:end, :3] += np.cumsum(steps, axis=0)
        sums[rows, 3:] += rises[:, 2:]
        before = np.where((rows > 0)[:, np.newaxis], sums[rows - 1, :3], 0)
        flat = rows[(sums[rows, :3] == before).all(axis=1) & (sums[rows, 3:] == 0).all(axis=1)]
        if len(flat):  # rows without a change would make equal usages look different
            times, sums = np.delete(times, flat), np.delete(sums, flat, axis=0)
        return Usage(common, times, sums, total_charge, narrowest)

    def rises(self) -> tuple[Times, Integers]:
        """Return the times of all rows, and how charges change at each. O(rows).

        The columns are the rises per point and per pair from the time before, and the charges once
        of the windows that begin and that end there.
        """
        risen = self.sums[:, :2] - self._earlier(0, len(self.sums))[:, :2]
        return self.times, np.concatenate([risen, self.sums[:, 3:]], axis=1)

    def _earlier(self, begin: int, end: int) -> Integers:
        """Return the row before each of the rows begin..end − 1; zeros before the first."""
        zeros = np.zeros((0 if begin else 1, 5), dtype=self.sums.dtype)
        rows = self.sums[max(begin - 1, 0) : max(end - 1, 0)]
        return np.concatenate([zeros, rows])[: end - begin]

    @classmethod
    def of_rises(
        cls,
        denominator: int,
        times: Times,
        rises: Integers,
        narrowest: Fraction | None = None,
    ) -> Usage:
        """Return the usage with these changes of charges, as `rises` returns them. O(times)."""
        if not len(times):
            return cls(denominator, narrowest=narrowest)
        if rises.dtype == object:  # possibly too large for a float
            large = sum(max(map(abs, row)) for row in rises.tolist())
        else:
            large = math.ceil(np.abs(rises).max(axis=1).astype(np.float64).sum())
        fits = 8 * large * (int(times[-1]) + 1) < _SAFE
        point, pair, begun, ended = rises.astype(np.int64 if fits else object).T
        sums = [*(np.cumsum(rise) for rise in (point, pair, begun - ended)), begun, ended]
        usage = cls(denominator, times, np.stack(sums, axis=1), 0, narrowest)
        total_charge = usage.charges(np.array([1]), times[-1:])[0]
        return replace(usage, total_charge=int(total_charge))

    def to_body(self) -> dict[str, Any]:
        """Write the usage as JSON values: when charges change, and by how much. O(changes)."""
        times, rises = self.rises()
        columns = [row.tolist() if (row != 0).any() else [] for row in rises.T]
        span = None if self.narrowest is None else str(self.narrowest)
        steps = np.diff(times, prepend=0).tolist()
        return {"over": self.denominator, "steps": steps, "rises": columns, "narrowest": span}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Usage:
        """Read what `to_body` wrote, exactly as it was. O(changes).

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: for anything else.
        """
        steps, span = body["steps"], body["narrowest"]
        columns = [column or [0] * len(steps) for column in body["rises"]]
        largest = max((abs(rise) for column in columns for rise in column), default=0)
        dtype = object if largest >= _SAFE else np.int64
        rises: Integers = np.array(columns, dtype=dtype).reshape(4, -1).T
        times = np.cumsum(np.array(steps, dtype=np.int64))
        narrowest = None if span is None else parse_stored_fraction(span, "narrowest")
        return cls.of_rises(int(body["over"]), times, rises, narrowest)

    def max_point_charge(self, first: int, last: int) -> Fraction:
        """Return the largest charge of one time point of first..last itself. O(rows between)."""
        return Fraction(int(self.between(first, last).own.max()), self.denominator)

    def _rows(self, first: int, last: int) -> tuple[int, int]:
        """Return the range of rows that hold at the time points first..last."""
        begin = max(int(np.searchsorted(self.times, first, side="right")) - 1, 0)
        return begin, int(np.searchsorted(self.times, last, side="right"))

    @cached_property
    def runs(self) -> Runs:
        """Runs of time points that are charged alike, from the first one on without limit."""
        return self.between(1, _END - 1)

    def between(self, first: int, last: int) -> Runs:
        """Return runs of the time points first..last. O(rows).

        Each row makes two: its own time, where windows begin and end, and the times after it.
        """
        begin, end = self._rows(first, last)
        point, pair, around, begun, ended = self.sums[begin:end].T
        earlier = self._earlier(begin, end)
        pair_before, around_before = earlier[:, 1], earlier[:, 2]
        times, point_and_pair = self.times[begin:end], point + pair
        at_and_after = (  # first, own, forward, backward
            (times, times + 1),
            (
                point_and_pair + pair_before + begun + around_before,
                point_and_pair + pair + around,
            ),
            (point_and_pair + begun, point_and_pair),
            (point + pair_before + ended, point_and_pair),
        )
        first_of, *rows = (
            np.concatenate(
                [
                    at[:0] if begin else np.zeros_like(at, shape=1),
                    np.stack((at, after), axis=1).ravel(),
                ]
            )
            for at, after in at_and_after
        )
        starts = np.maximum(first_of, first)
        nonempty = (np.append(starts[1:], last + 1) > starts) & (starts <= last)
        return Runs(starts[nonempty], *(row[nonempty] for row in rows))

    def levels(self, length: int) -> Levels:
        """Return the charges of each time point, rounded up. O(rows)."""
        starts, *charged = self.between(1, length)
        own, forward, backward = (_floats(row, self.denominator) for row in charged)
        return Levels(starts, own, forward, backward, length, float_up(self.total)).joined()

    def sum_levels(self, length: int) -> SumLevels:
        """Return the charges of sums and means of clipped numbers, rounded up. O(rows)."""
        inside = int(np.searchsorted(self.times, length, side="right"))
        times, level = self.times[:inside], _floats(self.sums[:inside, 0], self.denominator)
        if not inside or times[0] > 1:
            times, level = np.append(1, times), np.append(0.0, level)
        once = sum(self.sums[:, 3].tolist()) / self.denominator
        return SumLevels(times, level, length, once * _UP)

    def charges(self, start: Times, stop: Times) -> Integers:
        """Return the charge of each run start..stop, over the denominator; 0 for empty runs.

        O(rows) the first time, then O(log rows) each.
        """
        charges = self._sum(2, stop) - self._sum(3, start - 1)
        return np.where(stop >= start, charges, 0)

    def charge(self, first: int, last: int) -> Fraction:
        """Return the charge of one run, exactly."""
        charge = self.charges(np.array([first]), np.array([last]))[0]
        return Fraction(int(charge), self.denominator)

    @property
    def total(self) -> Fraction:
        """The charge of all time points together: the cost by group privacy."""
        return Fraction(self.total_charge, self.denominator)

    def _sum(self, field: int, last: Times) -> Integers:
        """Return the sum of a field of `runs` over all time points up to `last`."""
        run = np.searchsorted(self.runs.first, last, side="right") - 1
        size = (last - self.runs.first[run] + 1).astype(self.sums.dtype)
        sums = self._sums[field - 2][run] + self.runs[field][run] * size
        return np.where(last > 0, sums, 0)

    @cached_property
    def _sums(self) -> tuple[Integers, ...]:
        """The sums of `forward` and of `backward` over all runs before each run."""
        sizes = np.diff(self.runs.first).astype(self.sums.dtype)
        return tuple(
            np.concatenate([np.zeros_like(row[:1]), np.cumsum(row[:-1] * sizes)])
            for row in (self.runs.forward, self.runs.backward)
        )


def _floats(numbers: Integers, denominator: int) -> NDArray[np.float64]:
    """Return the quotients, rounded up."""
    if numbers.dtype == object or denominator >= _SAFE:
        return np.array([number / denominator for number in numbers.tolist()]) * _UP
    return np.asarray(numbers / float(denominator) * _UP)


def _with_rows(times: Times, sums: Integers, new: Times) -> tuple[Times, Integers]:
    """Insert rows for new times, at which nothing changes yet."""
    rows = np.searchsorted(times, new)
    is_present = np.append(times, -1)[rows] == new
    rows, new = rows[~is_present], new[~is_present]
    added = np.zeros((len(rows), 5), dtype=sums.dtype)
    added[rows > 0, :3] = sums[rows[rows > 0] - 1, :3]
    return np.insert(times, rows, new), np.insert(sums, rows, added, axis=0)


def least_span(narrowest: Fraction | None, spending: Spending) -> Fraction | None:
    """Return the narrowest range after one more release; a release of level 0 has none."""
    if spending.span is None or not spending.dp_epsilon:
        return narrowest
    return _least(narrowest, spending.span)


def _least(*spans: Fraction | None) -> Fraction | None:
    return min((span for span in spans if span is not None), default=None)


def _common(denominator: int, *others: int) -> int:
    exact = math.lcm(denominator, *others)
    too_long = exact.bit_length() > _LONGEST_DENOMINATOR_BITS
    return math.lcm(denominator, _FINE) if too_long else exact


def _over(common: int, cost: Fraction) -> int:
    """Return a cost over the common denominator, rounded up if that is no multiple of its own."""
    factor, rest = divmod(common, cost.denominator)
    return cost.numerator * factor if not rest else math.ceil(cost * common)
