"""One side of a node: what lies beyond it can tell about it, carried one node inwards.

`Exact` keeps one bound per pair of states: on the right of log E[h|X_t=x]/E[h|X_t=x'], on the left
of log M(x)/M(x') with M(x) = P(X_t=x)·E[h|X_t=x], so that one and the same matrix works at every
node. `Contracted` keeps one number for all pairs and holds for every start and every matrix of a
set. Both follow a stretch of nodes from bounds at its first ones.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.kernel import sweep, sweep_two
from quiltwork.influence.sweep.fixed_point import Homogeneous, periodic_bounds
from quiltwork.influence.sweep.program import (
    AnyStartProgram,
    BoolArray,
    ComparedRows,
    FloatArray,
    IntArray,
    Program,
)
from quiltwork.influence.timeline import Timeline
from quiltwork.roots import bisect

_LONGEST_SPAN, _BISECTIONS = 64, 80
_ORDINARY = 64.0
"""Ratios of bounds up to e to so much per node stay numbers."""
_LARGEST_BOUND = 300.0


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact program of every pair of states, to the right or to the left.

    Where every start is meant at once, a bound to the left is of log E[h|X_t=x]/E[h|X_t=x'].
    """

    walk: Timeline
    to_left: bool

    @property
    def any_start(self) -> bool:
        """Whether laws are unknown, so that columns may be weighted in any way."""
        return self.to_left and self.walk.laws is None

    def program(self, group: IntArray) -> Program | AnyStartProgram:
        """The program of one step for pairs of states in these groups."""
        return (AnyStartProgram if self.any_start else Program)(group, self.walk.size)

    @property
    def spans(self) -> tuple[int, ...]:
        """One node at a time where every step is likely enough, else up to 16."""
        return self.walk.spans

    @property
    def period(self) -> int:
        """After how many nodes steps repeat."""
        return self.walk.period

    def rest(self, nodes: IntArray) -> FloatArray:
        """0 to the right; to the left the log-ratios of the law itself, if it is known."""
        if not self.to_left or self.any_start:
            return np.zeros((len(nodes), self.walk.size, self.walk.size))
        bounds = np.swapaxes(self.walk.tilts(nodes), 1, 2).copy()
        bounds[:, np.arange(self.walk.size), np.arange(self.walk.size)] = 0.0
        return bounds

    def unknown(self, count: int) -> FloatArray:
        """+inf everywhere."""
        return np.full((count, self.walk.size, self.walk.size), np.inf)

    def late_rows(self, span: int, phase: int = 0) -> ComparedRows:
        """The rows of all pairs that lead to late nodes of one phase.

        From any start earlier nodes may have more states, and bounds of late nodes rest on theirs:
        for these all states are possible.
        """
        x, y = self.walk.pairs
        products = self.walk.products[span]
        matrix = products[(phase - span) % len(products) if self.to_left else phase]
        if self.to_left and not self.any_start:
            matrix = matrix * self.walk.late_possible[(phase - span) % self.walk.period][:, None]
        rows = matrix.T if self.to_left else matrix
        return ComparedRows(rows[x], rows[y])

    def uniform(self) -> bool:
        """Whether all nodes have the same rows."""
        settled = not self.to_left or len(self.walk.possible) == 0
        if self.any_start:
            settled = bool(self.walk.possible.all() and self.walk.late_possible.all())
        return self.walk.period == 1 and self.walk.order is None and settled

    def repeats_from(self, toward: int) -> int:
        """The first node from which on steps repeat with the period, going this way."""
        del toward
        return len(self.walk.possible) + self.spans[-1] + 1 if self.to_left else 1

    def fixed(self, level: float) -> FloatArray | None:
        """Bounds, by phase, that no step at this level exceeds; None where there are none.

        Newton's method where matrices do not change, else turns through the period.
        """
        if self.walk.size == 1:
            return np.zeros((self.walk.period, 1, 1))
        if self.to_left and self.walk.limits is None:
            return None
        if self.walk.order is not None:  # the worst node of the series
            nodes = len(self.walk.order) + 1
            found = self.follow(self.rest(np.array([nodes])), nodes, np.full(nodes, level))
            return np.asarray(found.max(axis=0, keepdims=True))
        if self.walk.period == 1:
            return self.homogeneous.solve(level)
        return periodic_bounds(self, level)

    def follow(self, start: FloatArray, first: int, levels: FloatArray) -> FloatArray:
        """Bounds of a stretch of nodes from `first` inwards, (nodes, k, k).

        `start` has those of its first nodes, `levels` what is spent on every one.
        """
        walk, known = self.walk, len(start)
        if walk.size == 1 or len(levels) <= known:
            return np.concatenate([start, np.zeros((max(len(levels) - known, 0), 1, 1))])
        if self._by_ratios(start[-1], levels):
            rows = walk.steps[0].T if self.to_left else walk.steps[0]
            found = sweep_two(rows, np.exp(start[-1]), np.exp(levels[known - 1 :]))
            return np.concatenate([start, np.log(found[1:])])
        nodes = first + (1 if self.to_left else -1) * np.arange(len(levels))
        possible = self.walk.possible_at(nodes) if self.to_left else self._all_possible(len(nodes))
        return sweep(
            *self._rows,
            *self._spans,
            walk.pairs,
            walk.tells,
            start,
            levels,
            possible,
            self._blocks(nodes),
            to_left=self.to_left,
            any_start=self.any_start,
        )

    def _all_possible(self, count: int) -> BoolArray:
        return np.ones((count, self.walk.size), dtype=np.bool_)

    def _blocks(self, nodes: IntArray) -> IntArray:
        """Which rows lead to each node by each span."""
        if self.walk.period == 1 and self.walk.order is None:
            return np.repeat(self._offsets[:, np.newaxis], len(nodes), axis=1)
        begins = (nodes - span if self.to_left else nodes for span in self.spans)
        ways = zip(self.spans, self._offsets.tolist(), begins, strict=True)
        return np.array([offset + self.walk.product_at(span, node) for span, offset, node in ways])

    @cached_property
    def _spans(self) -> tuple[IntArray, FloatArray]:
        """How many nodes each span takes, and what rounding adds to it."""
        return np.array(self.spans), np.array([self.walk.margin(span) for span in self.spans])

    def _by_ratios(self, start: FloatArray, levels: FloatArray) -> bool:
        """Whether two states are swept by ratios: all steps likely, nothing beyond what is met."""
        walk = self.walk
        if walk.size > 2 or walk.spans != (1,) or self.any_start or not self.uniform():
            return False
        met = walk.all_told and float(levels.max(initial=0.0)) < _ORDINARY
        return met and bool(np.abs(start).max() < _LARGEST_BOUND)

    @cached_property
    def _offsets(self) -> IntArray:
        """Where the rows of each span begin."""
        sizes = [len(self.walk.products[span]) for span in self.spans]
        return np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all pairs, (products, pairs, k): p and q, from any start their roots."""
        x, y = self.walk.pairs
        products = np.concatenate([self.walk.products[span] for span in self.spans])
        rows = np.swapaxes(products, 1, 2) if self.to_left else products
        rows = np.sqrt(rows) if self.any_start else rows
        above, below = rows[:, x], rows[:, y]
        return np.ascontiguousarray(above), np.ascontiguousarray(below)

    @cached_property
    def homogeneous(self) -> Homogeneous:
        """The step at late nodes, where matrices do not change."""
        return Homogeneous(self)


@dataclass(frozen=True, eq=False)
class Contracted:
    """tanh(L/4) = tanh(Δ/4)·tanh(α/4), whatever the start and the order of the matrices.

    Attributes:
        diameters: (span, Δ of products of so many matrices), the spans ascending.
        size: the number of states.
    """

    diameters: tuple[tuple[int, float], ...]
    size: int

    @property
    def spans(self) -> tuple[int, ...]:
        """Those that are swept, and one node."""
        return tuple(sorted({1, *(span for span, _ in self.near)}))

    @cached_property
    def near(self) -> tuple[tuple[int, float], ...]:
        """The spans that are swept; longer ones tell of endless series only."""
        return tuple(one for one in self.diameters if one[0] <= _LONGEST_SPAN)

    @property
    def period(self) -> int:
        """Every node is like every other."""
        return 1

    def rest(self, nodes: IntArray) -> FloatArray:
        """Nothing is told."""
        return np.zeros((len(nodes), 1, 1))

    def unknown(self, count: int) -> FloatArray:
        """+inf."""
        return np.full((count, 1, 1), np.inf)

    def repeats_from(self, toward: int) -> int:
        """Every node is like every other."""
        del toward
        return 1

    def uniform(self) -> bool:
        """Every node is like every other."""
        return True

    def follow(self, start: FloatArray, first: int, levels: FloatArray) -> FloatArray:
        """Bounds of a stretch of nodes inwards, (nodes, 1, 1), from those of its first ones.

        The least over the spans; without a diameter, what is beyond tells all it can.
        """
        del first
        found, spent = start[:, 0, 0].tolist(), levels.tolist()
        for place in range(len(found), len(spent)):
            best = found[-1] + spent[place - 1]
            for span, diameter in self.near:
                if span > place:
                    break
                alpha = found[place - span] + spent[place - span]
                best = min(best, _between(spent, place, span) + contracted(diameter, alpha))
            found.append(best * (1 + 2.0**-50))
        return np.array(found[: len(spent)]).reshape(-1, 1, 1)

    def fixed(self, level: float) -> FloatArray | None:
        """The least fixed point of the spans, each for itself."""
        found = [_fixed_point(span, diameter, level) for span, diameter in self.diameters]
        least = min(found, default=math.inf)
        return None if math.isinf(least) else np.full((1, 1, 1), least)

    def felt(self, most: int, bits: int) -> int:
        """How many nodes away an end is felt by a share of 2^-bits, by Birkhoff's coefficients."""
        nodes = [
            span * bits * math.log(2) / -math.log(math.tanh(diameter / 4))
            for span, diameter in self.diameters
            if 0 < math.tanh(diameter / 4) < 1
        ]
        return int(min([*nodes, most]))


Side: TypeAlias = Exact | Contracted
"""How bounds move inwards."""


def _between(spent: list[float], place: int, span: int) -> float:
    """What is paid on the way by a step of so many nodes."""
    return sum(spent[place - span + 1 : place])


def contracted(diameter: float, alpha: float) -> float:
    """4·artanh(tanh(Δ/4)·tanh(α/4)), rounded up.

    >>> round(contracted(2.60269, 0.5), 4)
    0.2851
    """
    if diameter == 0:
        return 0.0
    # 2·log((1 − a)(1 − b)/(a + b) + 1) with a = e^(−α/2), b = e^(−Δ/2): keeps its digits for large
    # ones, since tanh(x/4) = (1 − e^(−x/2))/(1 + e^(−x/2))
    rise, fall = math.exp(-alpha / 2), math.exp(-diameter / 2)
    if rise + fall == 0:
        return min(alpha, diameter)
    value = 2 * math.log1p(math.expm1(-alpha / 2) * math.expm1(-diameter / 2) / (rise + fall))
    return min(value * (1 + 2.0**-48), alpha, diameter)


def _fixed_point(span: int, diameter: float, level: float) -> float:
    """The r with r = (span − 1)·level + contracted(Δ, level + r), from above."""
    most = (span - 1) * level + diameter * (1 + 2.0**-40) + 2.0**-40

    def is_above(bound: float) -> bool:
        image = (span - 1) * level + contracted(diameter, level + bound)
        return image * (1 + 2.0**-46) <= bound

    return bisect(is_above, 0.0, most, _BISECTIONS)[1] * (1 + 2.0**-40)
