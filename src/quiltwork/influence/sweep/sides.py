"""One side of a node: what lies beyond it can tell about it, bounded node by node.

A side turns bounds at one node into bounds at the next one inwards. `Exact` keeps one bound per
pair of states: on the right of log E[h|X_t=x]/E[h|X_t=x'], on the left of log M(x)/M(x') with
M(x) = P(X_t=x)·E[h|X_t=x], so that one and the same matrix works at every node. `Contracted` keeps
one number for all pairs and holds for every start and every matrix of a set.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.influence.sweep.any_start import AnyStartProgram
from quiltwork.influence.sweep.fixed import Homogeneous
from quiltwork.influence.sweep.program import ComparedRows, FloatArray, IntArray, Program
from quiltwork.influence.sweep.walks import Walk
from quiltwork.lazy import cached_property

_LONGEST_SPAN = 64


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact program of every pair of states, to the right or to the left.

    Where every start is meant at once, a bound to the left is of log E[h|X_t=x]/E[h|X_t=x'].
    """

    walk: Walk
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

    def rows(self, span: int, nodes: IntArray | None, phase: int = 0) -> ComparedRows:
        """The rows of all pairs that lead to these nodes; None for late nodes of one phase.

        From any start earlier nodes may have more states, and bounds of late nodes rest on theirs:
        for these all states are possible.
        """
        x, y = self.walk.pairs
        products = self.walk.products[span]
        if nodes is None:
            matrices = products[[(phase - span) % len(products) if self.to_left else phase]]
            if self.to_left and not self.any_start:
                late = self.walk.late_possible[[(phase - span) % self.walk.period]]
                matrices = matrices * late[:, :, np.newaxis]
        else:
            begin = nodes - span if self.to_left else nodes
            matrices = products[(begin - 1) % len(products)]
            if self.to_left:
                possible = self.walk.possible_at(np.maximum(begin, 1))
                matrices = matrices * possible[:, :, np.newaxis]
        if self.to_left:
            matrices = np.swapaxes(matrices, 1, 2)
        size = self.walk.size
        return ComparedRows(matrices[:, x].reshape(-1, size), matrices[:, y].reshape(-1, size))

    def uniform(self) -> bool:
        """Whether all nodes have the same rows."""
        settled = not self.to_left or len(self.walk.possible) == 0
        if self.any_start:
            settled = bool(self.walk.possible.all() and self.walk.late_possible.all())
        return self.walk.period == 1 and settled

    def fixed(self, level: float) -> FloatArray | None:
        """Newton's method where matrices do not change, else turns through the period."""
        if self.walk.size == 1:
            return np.zeros((self.walk.period, 1, 1))
        if self.to_left and self.walk.limits is None:
            return None
        if self.walk.period == 1:
            return self.homogeneous.solve(level)
        from quiltwork.influence.sweep.stretches import cyclic_bounds  # which sweeps such sides

        return cyclic_bounds(self, level)

    @cached_property
    def stacked(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all pairs, (spans, phases, pairs, k): p and q, from any start their roots."""
        found = [self._phases(span) for span in self.spans]
        above, below = (np.stack(rows) for rows in zip(*found, strict=True))
        return above, below

    def _phases(self, span: int) -> tuple[FloatArray, FloatArray]:
        x, y = self.walk.pairs
        matrices = self.walk.products[span]
        matrices = np.swapaxes(matrices, 1, 2) if self.to_left else matrices
        size = self.walk.size
        rows = ComparedRows(matrices[:, x].reshape(-1, size), matrices[:, y].reshape(-1, size))
        shape = len(matrices), len(x), size
        above, below = rows.above, rows.below
        if self.any_start:
            above, below = (np.sqrt(entries) for entries in rows.given)
        return above.reshape(shape), below.reshape(shape)

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

    def rest(self, nodes: IntArray) -> FloatArray:
        """Nothing is told."""
        return np.zeros((len(nodes), 1, 1))

    def unknown(self, count: int) -> FloatArray:
        """+inf."""
        return np.full((count, 1, 1), np.inf)

    def step(self, bounds: Sequence[FloatArray], levels: Sequence[FloatArray]) -> FloatArray:
        """The bounds at a node, from those and the levels of the nodes beyond, the nearest first.

        The least over the spans; without a diameter, what is beyond tells all it can. A level of
        +inf belongs to a node that a stretch did not visit: no step begins there.
        """
        best = bounds[0] + levels[0][:, np.newaxis, np.newaxis]
        for span, diameter in self.near:
            if span <= len(bounds):
                gap, level = _between(levels, span)
                alpha = bounds[span - 1] + level[:, np.newaxis, np.newaxis]
                best = np.minimum(best, contracted(diameter, alpha) + gap[:, None, None])
        return np.asarray(best * (1 + 2.0**-50))

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
"""How bounds move inwards, for many stretches of nodes at once."""


def _between(levels: Sequence[FloatArray], span: int) -> tuple[FloatArray, FloatArray]:
    """What is paid on the way, +inf where a stretch began later, and the level at its far end."""
    far = levels[span - 1]
    visited = np.isfinite(far)
    gap = sum(levels[: span - 1], np.where(visited, 0.0, np.inf))
    return np.asarray(gap), np.where(visited, far, 0.0)


def contracted(diameter: float, alpha: FloatArray) -> FloatArray:
    """4·artanh(tanh(Δ/4)·tanh(α/4)), rounded up.

    >>> contracted(2.60269, np.array([0.5])).round(4)
    array([0.2851])
    """
    if diameter == 0:
        return np.zeros_like(alpha)
    # log((a + b)/(a − b))·2 with a = cosh((Δ+α)/4)…, which keeps its digits for large Δ and α
    with np.errstate(over="ignore", invalid="ignore"):
        rise, fall = np.exp(-alpha / 2), math.exp(-diameter / 2)
        value = 2 * np.log1p(_quotient(rise, fall))
    return np.asarray(np.minimum(value * (1 + 2.0**-48), np.minimum(alpha, diameter)))


def _quotient(a: FloatArray, b: float) -> FloatArray:
    """(1 − a)(1 − b)/(a + b): with tanh(x/4) = (1 − e^(−x/2))/(1 + e^(−x/2))."""
    with np.errstate(divide="ignore"):
        return np.asarray((1 - a) * (1 - b) / (a + b))


def _fixed_point(span: int, diameter: float, level: float) -> float:
    """The r with r = (span − 1)·level + contracted(Δ, level + r), from above."""
    low, high = 0.0, (span - 1) * level + diameter * (1 + 2.0**-40) + 2.0**-40
    for _ in range(80):
        middle = (low + high) / 2
        image = (span - 1) * level + float(contracted(diameter, np.array([level + middle]))[0])
        low, high = (low, middle) if image * (1 + 2.0**-46) <= middle else (middle, high)
    return high * (1 + 2.0**-40)
