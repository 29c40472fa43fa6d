"""What a set of releases charges for changing a run of time points, in exact integers.

The charge of a run l..r is additive over releases and has the form G(r) − H(l): G(r) adds up,
over all times up to r, the charges per point, per pair that begins there and per window that
begins there; H(l) adds up, over all times before l, the charges per point, per pair that ends
there and per window that ends there. A set of K releases is O(K) numbers whatever the length of
the series. All numbers are integers over one common denominator.

Theorem: joint-quilt-accountant
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget.accounting.steps import Integers, Steps
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up
from quiltwork.influence.sweep import Levels

_LONGEST_DENOMINATOR_BITS = 1024
_FINE = 1 << 256
_NOTHING = Steps()

Corner: TypeAlias = tuple[Fraction, Fraction, Fraction, Fraction]
"""At one time: by how much the charges per point and per pair rise from the time before, and what
the windows that begin and that end there are charged once."""
_NO_CORNER = (0, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Charges:
    """G and H on the stretch first..last, both less H(first).

    `upto` holds G(first−1)..G(last), `before` holds H(first)..H(last+1), as integers over
    `denominator`.
    """

    first: int
    last: int
    upto: Integers
    before: Integers
    denominator: int

    def of(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Integers:
        """The charges of the runs start..stop within the stretch, over `denominator`."""
        charges: Integers = self.upto[stop - (self.first - 1)] - self.before[start - self.first]
        return charges


@dataclass(frozen=True, eq=False)
class Usage:
    """All charges of a set of releases; immutable, grown by `plus`.

    >>> usage = Usage().plus(Spending.dp(0.1, 1, 10)).plus(Spending.dp(0.2, 5, 20))
    >>> usage.charge(4, 6), usage.charge(1, 20)
    (Fraction(7, 10), Fraction(21, 5))
    """

    denominator: int = 1
    points: Steps = _NOTHING
    pairs: Steps = _NOTHING
    begun: Steps = _NOTHING
    ended: Steps = _NOTHING
    going_on: Steps = _NOTHING
    everything: int = 0

    def plus(self, spending: Spending) -> Usage:
        """Add one release. O(K) copying and the pieces within its window.

        A denominator that would make the common one longer than 1024 bits is avoided by rounding
        that release's charges up, by less than 2⁻²⁵⁶ each.
        """
        costs = (spending.per_point, spending.per_pair, spending.once)
        usage = self._on_denominator(math.lcm(self.denominator, *(c.denominator for c in costs)))
        point, pair, once = (math.ceil(cost * usage.denominator) for cost in costs)
        start, stop = spending.start, spending.stop
        return replace(
            usage,
            points=usage.points.plus(start, stop, point),
            pairs=usage.pairs.plus(start, stop - 1, pair),
            begun=usage.begun.plus(start, start, once),
            ended=usage.ended.plus(stop, stop, once),
            going_on=usage.going_on.plus(start, stop - 1, once),
            everything=usage.everything + point * (stop - start + 1) + pair * (stop - start) + once,
        )

    def combined(self, other: Usage, factor: Fraction) -> Usage:
        """Add `factor` times another usage. O(K) for both."""
        wanted = math.lcm(self.denominator, other.denominator * factor.denominator)
        usage = self._on_denominator(wanted)
        times = math.ceil(factor * usage.denominator / other.denominator)
        steps = {
            name: getattr(usage, name).combined(getattr(other, name), times) for name in _STEPS
        }
        everything = usage.everything + times * other.everything
        return Usage(usage.denominator, **steps, everything=everything)

    def _on_denominator(self, wanted: int) -> Usage:
        if wanted.bit_length() > _LONGEST_DENOMINATOR_BITS:
            wanted = math.lcm(self.denominator, _FINE)
        if wanted == self.denominator:
            return self
        factor = wanted // self.denominator
        scaled = {name: getattr(self, name).times(factor) for name in _STEPS}
        return Usage(wanted, **scaled, everything=self.everything * factor)

    def corner(self, time: int) -> Corner:
        """How charges change at one time: exact, and the same whatever the denominator."""
        jumps = (steps.at(time) - steps.at(time - 1) for steps in (self.points, self.pairs))
        once = (steps.at(time) for steps in (self.begun, self.ended))
        point, pair, begun, ended = (Fraction(n, self.denominator) for n in (*jumps, *once))
        return point, pair, begun, ended

    def corners(self) -> dict[int, Corner]:
        """All times at which charges change, which is all there is to know. O(K)."""
        jumps, once = (self.points, self.pairs), (self.begun, self.ended)
        times = {time for one in jumps for time in one.corners()}
        times.update(time for one in once for time in one.support())
        return {time: self.corner(time) for time in sorted(times)}

    @classmethod
    def of_corners(
        cls, denominator: int, corners: Mapping[int, tuple[int, int, int, int]]
    ) -> Usage:
        """The usage with these corners, given over the denominator. O(K)."""
        times = sorted({*corners, *(time + 1 for time in corners)})
        points, pairs, begun, ended = (
            [corners.get(time, _NO_CORNER)[part] for time in times] for part in range(4)
        )
        going_on = accumulate(map(operator.sub, begun, ended))
        levels = (accumulate(points), accumulate(pairs), begun, ended, going_on)
        steps = {n: Steps.of(times, list(one)) for n, one in zip(_STEPS, levels, strict=True)}
        after = times[-1] + 1 if times else 0
        everything = sum(steps[name].sum_before(after) for name in ("points", "pairs", "begun"))
        return cls(denominator, **steps, everything=everything)

    def charges(self, first: int, last: int) -> Charges:
        """G and H on first..last, O(last − first)."""
        points, pairs = self.points.on(first, last), self.pairs.on(first - 1, last)
        entering = points + pairs[1:] + self.begun.on(first, last)
        leaving = points + pairs[:-1] + self.ended.on(first, last)
        offset = self.pairs.at(first - 1) + self.going_on.at(first - 1)
        return Charges(
            first,
            last,
            np.cumsum(np.concatenate(([offset], entering))),
            np.cumsum(np.concatenate(([0], leaving))),
            self.denominator,
        )

    def charge(self, first: int, last: int) -> Fraction:
        """The charge of one run, exactly."""
        if last < first:
            return Fraction(0)
        return Fraction(self.upto(last) - self.before(first), self.denominator)

    @property
    def total(self) -> Fraction:
        """The charge of everything: what group privacy pays."""
        return Fraction(self.everything, self.denominator)

    def upto(self, last: int) -> int:
        """G(last) over the denominator; O(K) the first time, then O(log K)."""
        return sum(s.sum_before(last + 1) for s in (self.points, self.pairs, self.begun))

    def before(self, first: int) -> int:
        """H(first) over the denominator; O(K) the first time, then O(log K)."""
        ended = self.ended.sum_before(first)
        return self.points.sum_before(first) + self.pairs.sum_before(first - 1) + ended

    def levels(self, length: int) -> Levels:
        """What is spent on each time point, rounded up. O(K)."""
        rows = {name: self._row(getattr(self, name)) for name in _STEPS}
        corners = [row[0] + shift for name, row in rows.items() for shift in _SHIFTS[name]]
        first = np.unique(np.concatenate([np.array([1]), *corners]))
        first = first[(first >= 1) & (first <= length)]

        def at(name: str, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
            places, values = rows[name]
            return np.append(values, 0.0)[np.searchsorted(places, nodes, side="right") - 1]

        points, pairs = at("points", first), at("pairs", first)
        behind = at("pairs", first - 1)
        begun, ended = at("begun", first), at("ended", first)
        around = begun + at("going_on", first - 1)
        own = (points + pairs + behind + around) * _UP
        forward, backward = (points + pairs + begun) * _UP, (points + behind + ended) * _UP
        total = float_up(self.total)
        return Levels(first, own, forward, backward, length, total).joined()

    def _row(self, steps: Steps) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        corners, values = steps.arrays()
        return corners, np.array([value / self.denominator for value in values], dtype=np.float64)


_STEPS = ("points", "pairs", "begun", "ended", "going_on")
_SHIFTS = {"points": (0,), "pairs": (0, 1), "begun": (0,), "ended": (0,), "going_on": (1,)}
_UP = 1 + 2.0**-49
