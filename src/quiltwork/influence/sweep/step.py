"""One side of a node: a bound on what all releases beyond it reveal, carried inwards node by node.

`ExactSide` keeps one bound per pair of states: on the right of log E[h|X_t=x]/E[h|X_t=x'], on the
left of log M(x)/M(x') with M(x) = P(X_t=x)·E[h|X_t=x], so that the same matrix serves every node.
`ContractionSide` keeps one number for all pairs; it holds for every start and every matrix of a
set. Both follow a stretch of nodes inwards from bounds at its first ones.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.kernel import sweep, sweep_two
from quiltwork.influence.sweep.fixed_point import HomogeneousStep, periodic_fixed_point
from quiltwork.influence.sweep.program import (
    AnyStartProgram,
    BoolArray,
    FloatArray,
    IntArray,
    RatioProgram,
    RowPairs,
)
from quiltwork.influence.timeline import Timeline
from quiltwork.roots import bisect

_LONGEST_SPAN, _BISECTIONS = 64, 80
_ORDINARY = 64.0
"""With levels below this, e^level times a ratio does not overflow (`_by_ratios`)."""
_LARGEST_BOUND = 300.0
"""The same for the bounds that a stretch starts from."""


@dataclass(frozen=True, eq=False)
class ExactSide:
    """The exact program of every pair of states, to the right or to the left.

    For every start at once, a bound to the left is of log E[h|X_t=x]/E[h|X_t=x'].
    """

    timeline: Timeline
    to_left: bool

    @property
    def any_start(self) -> bool:
        """Whether the initial law is unknown, so that columns may be weighted in any way."""
        return self.to_left and self.timeline.laws is None

    def program(self, group: IntArray) -> RatioProgram | AnyStartProgram:
        """The program of one step for pairs of states in these groups."""
        return (AnyStartProgram if self.any_start else RatioProgram)(group, self.timeline.size)

    @property
    def spans(self) -> tuple[int, ...]:
        """Steps of one node where every move is likely enough, else up to 16 nodes."""
        return self.timeline.spans

    @property
    def period(self) -> int:
        """The number of nodes after which steps repeat."""
        return self.timeline.period

    def boundary_value(self, nodes: IntArray) -> FloatArray:
        """The bound at the end of a series: 0 to the right; to the left the log-ratios of a known
        law.
        """
        if not self.to_left or self.any_start:
            return np.zeros((len(nodes), self.timeline.size, self.timeline.size))
        bounds = np.swapaxes(self.timeline.prior_log_ratios(nodes), 1, 2).copy()
        bounds[:, np.arange(self.timeline.size), np.arange(self.timeline.size)] = 0.0
        return bounds

    def unbounded(self, count: int) -> FloatArray:
        """The bound +inf everywhere."""
        return np.full((count, self.timeline.size, self.timeline.size), np.inf)

    def late_rows(self, span: int, phase: int = 0) -> RowPairs:
        """The rows of all pairs that lead to later nodes of one phase.

        From any start, earlier nodes may have more possible states, and bounds of later nodes rest
        on
        theirs: all states count as possible there.
        """
        x, y = self.timeline.pairs
        products = self.timeline.products[span]
        matrix = products[(phase - span) % len(products) if self.to_left else phase]
        if self.to_left and not self.any_start:
            matrix = (
                matrix * self.timeline.late_possible[(phase - span) % self.timeline.period][:, None]
            )
        rows = matrix.T if self.to_left else matrix
        return RowPairs(rows[x], rows[y])

    def uniform(self) -> bool:
        """Whether all nodes have the same rows."""
        settled = not self.to_left or len(self.timeline.possible) == 0
        if self.any_start:
            settled = bool(self.timeline.possible.all() and self.timeline.late_possible.all())
        return self.timeline.period == 1 and self.timeline.order is None and settled

    def repeats_from(self, toward: int) -> int:
        """The first node from which steps repeat with the period, in this direction."""
        del toward
        return len(self.timeline.possible) + self.spans[-1] + 1 if self.to_left else 1

    def fixed(self, level: float) -> FloatArray | None:
        """A fixed point, by phase: bounds that no step at this level exceeds; None if there is
        none.

        Newton's method where matrices do not change, else turns through the period.
        """
        if self.timeline.size == 1:
            return np.zeros((self.timeline.period, 1, 1))
        if self.to_left and self.timeline.limits is None:
            return None
        if self.timeline.order is not None:  # the worst node of the series
            nodes = len(self.timeline.order) + 1
            bounds = self.follow(
                self.boundary_value(np.array([nodes])), nodes, np.full(nodes, level)
            )
            return np.asarray(bounds.max(axis=0, keepdims=True))
        if self.timeline.period == 1:
            return self.homogeneous.solve(level)
        return periodic_fixed_point(self, level)

    def follow(self, start: FloatArray, first: int, levels: FloatArray) -> FloatArray:
        """Bounds of a stretch of nodes from `first` inwards, (nodes, k, k).

        `start` holds the bounds of its first nodes, `levels` the spent level of every node.
        """
        timeline, known_nodes = self.timeline, len(start)
        if timeline.size == 1 or len(levels) <= known_nodes:
            return np.concatenate([start, np.zeros((max(len(levels) - known_nodes, 0), 1, 1))])
        # two states need no exponential per node
        if self._by_ratios(start[-1], levels):
            rows = timeline.steps[0].T if self.to_left else timeline.steps[0]
            ratios = sweep_two(rows, np.exp(start[-1]), np.exp(levels[known_nodes - 1 :]))
            return np.concatenate([start, np.log(ratios[1:])])
        nodes = first + (1 if self.to_left else -1) * np.arange(len(levels))
        possible = (
            self.timeline.possible_at(nodes) if self.to_left else self._all_possible(len(nodes))
        )
        return sweep(
            *self._rows,
            *self._spans,
            timeline.pairs,
            timeline.distinguishable,
            start,
            levels,
            possible,
            self._blocks(nodes),
            to_left=self.to_left,
            any_start=self.any_start,
        )

    def _all_possible(self, count: int) -> BoolArray:
        return np.ones((count, self.timeline.size), dtype=np.bool_)

    def _blocks(self, nodes: IntArray) -> IntArray:
        """The index of the rows that lead to each node by each span."""
        if self.timeline.period == 1 and self.timeline.order is None:
            return np.repeat(self._offsets[:, np.newaxis], len(nodes), axis=1)
        begins = (nodes - span if self.to_left else nodes for span in self.spans)
        ways = zip(self.spans, self._offsets.tolist(), begins, strict=True)
        return np.array(
            [offset + self.timeline.product_at(span, node) for span, offset, node in ways]
        )

    @cached_property
    def _spans(self) -> tuple[IntArray, FloatArray]:
        """The number of nodes of each span, and its rounding margin."""
        return np.array(self.spans), np.array([self.timeline.margin(span) for span in self.spans])

    def _by_ratios(self, start: FloatArray, levels: FloatArray) -> bool:
        """Whether two states can be swept by ratios: all moves likely, no overflow, no impossible
        state.
        """
        timeline = self.timeline
        if timeline.size > 2 or timeline.spans != (1,) or self.any_start or not self.uniform():
            return False
        simple = timeline.fully_observed and float(levels.max(initial=0.0)) < _ORDINARY
        return simple and bool(np.abs(start).max() < _LARGEST_BOUND)

    @cached_property
    def _offsets(self) -> IntArray:
        """The first index of the rows of each span."""
        sizes = [len(self.timeline.products[span]) for span in self.spans]
        return np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all pairs, (products, pairs, k): p and q, for any start their
        square roots.
        """
        x, y = self.timeline.pairs
        products = np.concatenate([self.timeline.products[span] for span in self.spans])
        rows = np.swapaxes(products, 1, 2) if self.to_left else products
        rows = np.sqrt(rows) if self.any_start else rows
        above, below = rows[:, x], rows[:, y]
        return np.ascontiguousarray(above), np.ascontiguousarray(below)

    @cached_property
    def homogeneous(self) -> HomogeneousStep:
        """The step at late nodes, where matrices do not change."""
        return HomogeneousStep(self)


@dataclass(frozen=True, eq=False)
class ContractionSide:
    """tanh(L/4) = tanh(Δ/4)·tanh(α/4), for every start and any order of the matrices.

    Attributes:
        diameters: (span, Δ of products of so many matrices), the spans ascending.
        size: the number of states.
    """

    diameters: tuple[tuple[int, float], ...]
    size: int

    @property
    def spans(self) -> tuple[int, ...]:
        """The spans that are swept, and one node."""
        return tuple(sorted({1, *(span for span, _ in self.near)}))

    @cached_property
    def near(self) -> tuple[tuple[int, float], ...]:
        """The spans that are swept; longer ones serve fixed points only."""
        return tuple(entry for entry in self.diameters if entry[0] <= _LONGEST_SPAN)

    @property
    def period(self) -> int:
        """Every node is like every other."""
        return 1

    def boundary_value(self, nodes: IntArray) -> FloatArray:
        """0: nothing is released beyond the end."""
        return np.zeros((len(nodes), 1, 1))

    def unbounded(self, count: int) -> FloatArray:
        """The bound +inf."""
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

        The least over the spans; without a finite diameter, everything spent beyond counts in full.
        """
        del first
        bounds, spent = start[:, 0, 0].tolist(), levels.tolist()
        for step in range(len(bounds), len(spent)):
            best = bounds[-1] + spent[step - 1]
            for span, diameter in self.near:
                if span > step:
                    break
                alpha = bounds[step - span] + spent[step - span]
                best = min(best, _between(spent, step, span) + contracted(diameter, alpha))
            # a sum of at most 64 levels, and one addition
            bounds.append(best * (1 + 2.0**-50))
        return np.array(bounds[: len(spent)]).reshape(-1, 1, 1)

    def fixed(self, level: float) -> FloatArray | None:
        """The fixed point at a level: the least over the spans; None if no span has one."""
        bounds = [_fixed_point(span, diameter, level) for span, diameter in self.diameters]
        least = min(bounds, default=math.inf)
        return None if math.isinf(least) else np.full((1, 1, 1), least)

    def boundary_reach(self, most: int, bits: int) -> int:
        """The distance at which an end moves bounds by a share of 2^-bits, by Birkhoff's
        coefficients.
        """
        nodes = [
            span * bits * math.log(2) / -math.log(math.tanh(diameter / 4))
            for span, diameter in self.diameters
            if 0 < math.tanh(diameter / 4) < 1
        ]
        return int(min([*nodes, most]))


Side: TypeAlias = ExactSide | ContractionSide
"""The recursion of one side."""


def _between(spent: list[float], step: int, span: int) -> float:
    """The level spent on the nodes that a step of `span` nodes jumps over."""
    return sum(spent[step - span + 1 : step])


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
    # both exponentials underflow: the smaller of the two arguments is a bound
    if rise + fall == 0:
        return min(alpha, diameter)
    value = 2 * math.log1p(math.expm1(-alpha / 2) * math.expm1(-diameter / 2) / (rise + fall))
    # a contraction exceeds neither argument
    return min(value * (1 + 2.0**-48), alpha, diameter)


def _fixed_point(span: int, diameter: float, level: float) -> float:
    """The fixed point r = (span − 1)·level + contracted(Δ, level + r), from above."""
    most = (span - 1) * level + diameter * (1 + 2.0**-40) + 2.0**-40

    def is_above(bound: float) -> bool:
        image = (span - 1) * level + contracted(diameter, level + bound)
        return image * (1 + 2.0**-46) <= bound

    return bisect(is_above, 0.0, most, _BISECTIONS)[1] * (1 + 2.0**-40)
