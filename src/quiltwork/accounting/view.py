"""A stretch of a chain as the accountant sees it: nodes, what they are charged, which quilts.

For node i and a quilt that leaves start..stop nearby, the bound is charge(start, stop) plus the
quilt's influence. Floats find the smallest bound; integers then say exactly what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.accounting.usage import Charges, Usage
from quiltwork.influence.families import TO_END, IntervalFamily

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

_ROUNDING = 2.0**-49


@dataclass(frozen=True, eq=False)
class View:
    """The charges of `usage` around the nodes of one family, as far as its quilts reach.

    A side that is dropped (`TO_END`) reaches to the end of the series; where that lies outside
    the view, its charge is looked up in `usage`.
    """

    usage: Usage
    family: IntervalFamily
    charges: Charges

    @classmethod
    def around(cls, usage: Usage, family: IntervalFamily, first: int, last: int) -> View:
        """View the nodes first..last. O(last − first + reach)."""
        low = max(family.origin, first - len(family.left_rows))
        high = min(family.length, last + len(family.right_rows))
        return cls(usage, family, usage.charges(low, high))

    @property
    def width(self) -> int:
        """How many nodes are in view."""
        return self.charges.last - self.charges.first + 1

    @property
    def sees_first(self) -> bool:
        """Whether the view begins where the series does."""
        return self.charges.first == self.family.origin

    @property
    def sees_last(self) -> bool:
        """Whether the view ends where the series does."""
        return self.charges.last == self.family.length

    def sees(self, left: int, right: int) -> bool:
        """Whether the nearby set of such a quilt lies within the view."""
        return (left != TO_END or self.sees_first) and (right != TO_END or self.sees_last)

    @cached_property
    def _floats(self) -> tuple[FloatArray, FloatArray]:
        return self.charges.floats()

    @cached_property
    def _before_view(self) -> int:
        """What a run that begins at the origin is charged for what lies before the view."""
        if self.sees_first:
            return 0
        return self.usage.before(self.charges.first) - self.usage.before(self.family.origin)

    @cached_property
    def _after_view(self) -> int:
        """What a run that ends with the series is charged for what lies after the view."""
        if self.sees_last:
            return 0
        return self.usage.upto(self.family.length) - self.usage.upto(self.charges.last)

    def raised(self, values: FloatArray, far: bool, times: int = 1) -> FloatArray:
        """Bounds computed in floats, raised by `times` what they may be off.

        With `far`, for quilts that reach beyond the view too.
        """
        upto, before = self._floats
        charges = float(upto[-1] + before[-1])
        if far:
            charges += (self._before_view + self._after_view) / self.charges.denominator
        return np.asarray(values + times * _ROUNDING * (charges + np.abs(values)))

    def bounds(
        self, nodes: IntArray, left: IntArray, right: IntArray, influence: FloatArray
    ) -> FloatArray:
        """Charge of what is nearby plus influence, broadcast over nodes and quilts."""
        upto, before = self._floats
        start, stop = self._span(nodes, left, right)
        charged = upto[stop] - before[start]
        if (left == TO_END).any():
            extra = self._before_view / self.charges.denominator
            charged = charged + np.where(left == TO_END, extra, 0.0)
        if (right == TO_END).any():
            extra = self._after_view / self.charges.denominator
            charged = charged + np.where(right == TO_END, extra, 0.0)
        return np.asarray(charged + influence, dtype=np.float64)

    def _span(self, nodes: IntArray, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        """Where `before` and `upto` stand for the nearby sets, cut to the view."""
        first, last = self.charges.first, self.charges.last
        start = np.where(left == TO_END, first, np.maximum(first, nodes - left))
        stop = np.where(right == TO_END, last, np.minimum(last, nodes + right))
        return start - first, stop - (first - 1)

    def fractions(
        self, nodes: IntArray, left: IntArray, right: IntArray, influence: FloatArray
    ) -> list[Fraction]:
        """The bounds of (node, quilt) pairs, exactly."""
        start, stop = self._span(nodes, left, right)
        near = self.charges.upto[stop] - self.charges.before[start]
        pairs = [
            (int(charge) + self._beyond(a, b), e)
            for charge, a, b, e in zip(
                near, left.tolist(), right.tolist(), influence.tolist(), strict=True
            )
        ]
        denominator = self.charges.denominator
        exact = {(c, e): Fraction(c, denominator) + Fraction(e) for c, e in set(pairs)}
        return [exact[pair] for pair in pairs]

    def _beyond(self, left: int, right: int) -> int:
        before = self._before_view if left == TO_END else 0
        return before + (self._after_view if right == TO_END else 0)

    def representatives(self, nodes: range, every: bool) -> IntArray:
        """Nodes such that each other node is charged like one of them, whatever the quilt.

        Only corners of the usage within reach tell nodes apart. Near an end of the series, and
        when quilts that reach to an end count (`every`), all nodes differ.
        """
        numbers = np.arange(nodes.start, nodes.stop, nodes.step, dtype=np.int64)
        if every or self.sees_first or self.sees_last:
            return numbers
        corners = self.usage.corners_within(self.charges.first - 2, self.charges.last + 2)
        before, after = len(self.family.left_rows) + 2, len(self.family.right_rows) + 2
        low = np.searchsorted(numbers, corners - after)
        high = np.searchsorted(numbers, corners + before, side="right")
        change = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.add.at(change, low, 1)
        np.add.at(change, high, -1)
        alone = np.cumsum(change[:-1]) > 0
        keep = alone.copy()
        keep[0] = True
        keep[1:] |= alone[:-1]
        return numbers[keep]

    def missing(self, node: int, value: float) -> float:
        """How much less than `value` a node might leak by quilts beyond the family's reach.

        A quilt that lies farther to the left is charged for all that is within reach on the left,
        and has at least the influence of its right side alone; likewise on the right. Where
        nothing farther out is charged, dropping the side is better than any such quilt.
        """
        family, at = self.family, np.array([node])
        if family.complete:
            return 0.0
        before, after = len(family.left_rows), len(family.right_rows)
        least = [value]
        if node - before > family.origin and self._charged_before(node - before):
            right = np.arange(after + 1)
            influence = np.append(family.right_most, 0.0)
            least.append(self.bounds(at, np.full_like(right, before), right, influence).min())
        if node + after < family.length and self._charged_after(node + after):
            left = np.arange(before + 1)
            influence = np.append(family.left_most, 0.0)
            least.append(self.bounds(at, left, np.full_like(left, after), influence).min())
        return float(value - min(least))

    def _charged_before(self, node: int) -> bool:
        return self.usage.before(node) > self.usage.before(self.family.origin)

    def _charged_after(self, node: int) -> bool:
        return self.usage.upto(self.family.length) > self.usage.upto(node)
