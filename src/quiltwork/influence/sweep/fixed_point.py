"""Certified fixed points of the exact side: bounds that no further step exceeds.

The step F is monotone, so any r with F(r) ≤ r bounds every node, by induction from the end. For a
homogeneous chain r comes from Newton's method with the trees' shares as Jacobian, in a few
iterations however slowly the chain mixes. The method solves r = F(r) + a small amount, so that at
the solution one step stays below r: the last iteration is also the certificate.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from quiltwork.influence.kernel import iterate, product, solve_linear
from quiltwork.influence.sweep.program import (
    AnyStartProgram,
    BoolArray,
    Bounds,
    FloatArray,
    IntArray,
    RatioProgram,
    RowPairs,
    metric_closure,
)
from quiltwork.influence.timeline import Timeline

_NEWTON = 64
"""Newton iterations at most."""
_STUCK = 2.0**-26
"""Residual below which slow progress means that several trees are equally good."""
_LITTLE, _MOST = 2.0**-39, 2.0**-8
"""How far above F(r) the solution is sought at first, and at most."""
_PATIENCE = 8
"""Iterations before more room above F(r) is allowed."""
_FAR = 200.0
"""Bounds above this count as infinite: no level of interest leaks so much."""
_SPARSE = 150
"""From this many pairs of states on, equations are solved by iteration: a row has k − 1 entries."""
_FEW_ENTRIES = 8
_ITERATIONS = 200
_CYCLES, _PLAIN = 3, 24
"""After so many increases of the residual, so many plain steps are taken instead."""
_FIRST_NODES = 256
_MOST_TURNS = 64
_FIRST_RAISE, _LAST_RAISE = -36, -8
"""Binary exponents of how much a turn of the period is raised before it is certified."""
_LONG_PERIOD, _LONG_RAISE = 256, -20


class SolvableSide(Protocol):
    """A side whose fixed point is sought: `step.ExactSide`."""

    @property
    def timeline(self) -> Timeline:
        """The chain."""

    @property
    def to_left(self) -> bool:
        """Whether the side lies to the left of a node."""

    @property
    def spans(self) -> tuple[int, ...]:
        """The numbers of nodes of one step."""

    def boundary_value(self, nodes: IntArray) -> FloatArray:
        """The bound at the end of a series."""

    def late_rows(self, span: int) -> RowPairs:
        """The rows of all pairs that lead to later nodes."""

    def program(self, group: IntArray) -> RatioProgram | AnyStartProgram:
        """The program of one step."""

    def uniform(self) -> bool:
        """Whether all nodes have the same rows."""

    def follow(self, start: FloatArray, first: int, levels: FloatArray) -> FloatArray:
        """Bounds of a stretch of nodes, from those of its first ones."""


@dataclass(frozen=True, eq=False)
class Tangent:
    """One Newton step: the new bounds, their derivative by the level, and the residual."""

    bounds: FloatArray
    rate: FloatArray
    residual: float


class HomogeneousStep:
    """The step of one side of a homogeneous chain, on the vector of all pairs of states.

    Trees and the last solution are cached, since the next level is mostly close to the last one.
    There is one instance per calibration (`Sweep.without_cache`), so that equal problems get equal
    answers whatever was computed before.
    """

    def __init__(self, side: SolvableSide) -> None:
        self.side, self.timeline = side, side.timeline
        self.x, self.y = side.timeline.pairs
        self.rows = {span: side.late_rows(span) for span in side.spans}
        self.distinguishable = self.timeline.distinguishable[self.x, self.y]
        self.boundary_value = side.boundary_value(np.array([1 << 40]))[0][self.x, self.y]
        number = np.zeros((self.timeline.size, self.timeline.size), dtype=np.int64)
        number[self.x, self.y] = np.arange(len(self.x))
        self.number = number
        late = side.timeline.limits
        self._kernel = late[0] if side.to_left and late is not None else 1.0
        group = np.zeros(len(self.x), dtype=np.int64)
        self.programs = {span: side.program(group) for span in side.spans}
        self._last: tuple[float, FloatArray] | None = None

    def step(self, level: float, r: FloatArray) -> tuple[Bounds, IntArray]:
        """F(r) at a level with its slopes, and the number of nodes that each bound jumps over."""
        limits = np.zeros((1, self.timeline.size, self.timeline.size))
        limits[0, self.x, self.y] = level * self.distinguishable + r
        best: Bounds | None = None
        gaps = np.zeros(len(self.x), dtype=np.int64)
        for span in self.side.spans:
            bounds = self.programs[span].solve(self.rows[span], limits)
            values = bounds.values + ((span - 1) * level + self.timeline.margin(span))
            bounds = Bounds(values, bounds.slope, bounds.high, bounds.low)
            if best is not None:
                # nodes jumped over are paid for at the level, which Newton differentiates
                gaps[bounds.values < best.values] = span - 1
            best = bounds if best is None else best.least(bounds)
        assert best is not None  # noqa: S101  (a span of one node is always there)
        return best, gaps

    def jacobian(self, bounds: Bounds, fixed: BoolArray) -> Any:
        """The Jacobian of all pairs' bounds, (pairs, pairs); rows in `fixed` are 0."""
        slope = np.where(fixed[:, np.newaxis], 0.0, bounds.slope)
        rows = np.broadcast_to(np.arange(len(self.x))[:, None], slope.shape)
        columns = self.number[bounds.high, bounds.low]
        if len(self.x) >= _SPARSE:
            from scipy.sparse import csr_array

            entries = (slope.ravel(), (rows.ravel(), columns.ravel()))
            return csr_array(entries, shape=(len(self.x), len(self.x)))
        result = np.zeros((len(self.x), len(self.x)))
        np.add.at(result, (rows, columns), slope)
        return result

    def tangent(self, level: float, r: FloatArray) -> Tangent:
        """One Newton step from r, with the derivative by the level."""
        infinite = ~np.isfinite(r)
        bounds, gaps = self.step(level, r)
        jacobian = self.jacobian(bounds, infinite)
        with np.errstate(invalid="ignore"):
            gain = np.where(infinite, 0.0, bounds.values - r)
        by_level = np.where(
            infinite, 0.0, _times(jacobian, self.distinguishable.astype(np.float64)) + gaps
        )
        residual = np.where(infinite, 0.0, gain + _LITTLE)
        step, rate = _solve(jacobian, np.stack([residual, by_level], axis=1)).T
        ahead = np.maximum(r + step, self.boundary_value)
        return Tangent(ahead, rate, float(np.abs(gain).max(initial=0.0)))

    def start(self, level: float) -> FloatArray:
        """Initial bounds, exact to first order in the level: each node loses the overlap of the
        rows.

        The metric closure makes no pair further apart than a path through other states.
        """
        rows = self.rows[self.side.spans[-1]]
        p = rows.above * self._kernel
        q = rows.below * self._kernel
        with np.errstate(divide="ignore", invalid="ignore"):
            p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
        overlap = np.nan_to_num(np.minimum(p, q).sum(axis=1))
        first_order = self.boundary_value + level * (1 - overlap) / np.where(
            overlap, overlap, 2.0**-7
        )
        limits = np.zeros((1, self.timeline.size, self.timeline.size))
        limits[0, self.x, self.y] = first_order
        return np.asarray(
            np.maximum(metric_closure(limits)[0, self.x, self.y], self.boundary_value)
        )

    def guess(self, level: float, r: FloatArray) -> None:
        """Start the next solution from these bounds."""
        self._last = level, r

    def solve(self, level: float) -> FloatArray | None:
        """The certified fixed point, (1, k, k); None if there is none."""
        solution = self._solved(level)
        if solution is None:
            return None
        result = np.zeros((1, self.timeline.size, self.timeline.size))
        result[0, self.x, self.y] = solution
        return result

    def _solved(self, level: float) -> FloatArray | None:
        """Newton's method from the last solution, or from first-order bounds."""
        starts = [self.start(level)]
        if self._last is not None and self._last[0] > 0 and self._serves(level, *self._last):
            with np.errstate(invalid="ignore"):
                guess = self.boundary_value + (self._last[1] - self.boundary_value) * (
                    level / self._last[0]
                )
            # bounds are about proportional to the level: a good start saves iterations
            starts.insert(0, np.where(np.isnan(guess), np.inf, guess))
        for start in starts:
            if (solution := self._newton(level, start)) is not None:
                self._last = level, solution
                return solution
        return None

    def _serves(self, level: float, last: float, r: FloatArray) -> bool:
        """Whether the last solution is a valid start: at a lower level more pairs have a finite
        bound.
        """
        return level >= last or bool(np.isfinite(r[np.isfinite(self.boundary_value)]).all())

    def _newton(self, level: float, r: FloatArray) -> FloatArray | None:
        """Solve r = F(r) + `room`; the last step, which stays below r, is the certificate.

        Where several trees are equally good, another tree may rise above the one whose slopes were
        used; after some iterations more room is allowed.
        """
        infinite = ~np.isfinite(r)
        last_residual, room, increases = np.inf, _LITTLE, 0
        alike = self.side.uniform()
        for turn in range(_NEWTON):
            r = np.where(infinite, np.inf, r)
            bounds, _ = self.step(level, r)
            with np.errstate(invalid="ignore"):
                gain = np.where(infinite, 0.0, bounds.values - r)
            residual = np.abs(gain).max(initial=0.0)
            if (bounds.values <= r).all() and residual <= 4 * room:
                return r
            if turn % _PATIENCE == _PATIENCE - 1 and residual < _STUCK:
                room *= 64
            if room > _MOST:
                return None
            above = np.where(infinite, 0.0, gain + room)
            ahead = r + _solve(self.jacobian(bounds, infinite), above)
            wild = not np.isfinite(ahead[~infinite]).all() or ahead[~infinite].max() > _FAR
            stuck = last_residual / 2 < residual < _STUCK and residual > 4 * room
            r = bounds.values + room if wild or stuck else np.maximum(ahead, self.boundary_value)
            increases += residual > last_residual
            if (
                increases == _CYCLES and alike and not infinite.any()
            ):  # trees take turns: come closer
                increases += 1  # once
                for _ in range(_PLAIN):
                    r = np.maximum(self.step(level, r)[0].values, self.boundary_value)
            last_residual = residual
            # a pair that grows this far has no finite fixed point
            infinite |= ~(r < _FAR)
        return None

    def boundary_reach(self, level: float, most: int, bits: int) -> int:
        """About how many nodes away an end moves bounds by a share of 2^-bits; at most `most`."""
        r = self._solved(level)
        if r is None:
            return most
        bounds, gaps = self.step(level, r)
        finite = np.isfinite(r) & np.isfinite(self.boundary_value)
        jacobian = self.jacobian(bounds, ~finite)
        effect = np.zeros(len(r))
        effect[finite] = r[finite] - self.boundary_value[finite]
        nodes, stride, least = 0, 1, 2.0**-bits * effect.max(initial=0.0)
        while nodes < most and (effect := _times(jacobian, effect)).max(initial=0.0) > least:
            nodes += stride
            if nodes == 8 * stride and len(effect) < _SPARSE:
                jacobian, stride = product(jacobian, jacobian), 2 * stride
        return min((nodes + stride) * (int(gaps.max(initial=0)) + 1), most)


def _times(jacobian: Any, vector: FloatArray) -> FloatArray:
    """A matrix times a vector, summed in an order that does not depend on the machine."""
    if isinstance(jacobian, np.ndarray):
        return product(jacobian, vector[:, np.newaxis])[:, 0]
    return np.asarray(jacobian @ vector)


def periodic_fixed_point(side: SolvableSide, level: float) -> FloatArray | None:
    """Bounds by phase that no step at this level exceeds, for periodic matrices; None if unknown.

    A sweep of some nodes, then of twice as many, approaches the periodic limit. Then one turn
    starts slightly raised: if it ends no higher than it started, its bounds hold for ever, since
    each comes from those before it.
    """
    period, toward = side.timeline.period, 1 if side.to_left else -1
    node, off_diagonal = (
        (1 << 40) // period * period + 1,
        ~np.eye(side.timeline.size, dtype=np.bool_),
    )
    ahead, power = min(_FIRST_NODES, period), _FIRST_RAISE
    if period >= _LONG_PERIOD:  # a raise at the start of a long turn has faded by its end
        power = _LONG_RAISE
    retry = True
    bounds = side.boundary_value(np.array([node - toward * ahead]))
    while True:
        if ahead:
            bounds = side.follow(bounds, node - toward * ahead, np.full(ahead + 1, level))[-1:]
        raised = bounds + off_diagonal * 2.0**power
        turn = side.follow(raised, node, np.full(period + 1, level))
        if (turn[-1] <= raised[0]).all():
            return np.asarray(turn[(toward * np.arange(period)) % period])
        both = np.isfinite(turn[-1]) & np.isfinite(raised[0])
        residual = np.abs(turn[-1][both] - raised[0][both]).max(initial=0.0)
        bounds = turn[-1:]
        if residual > 2.0 ** (power + 1) and retry:  # not converged: one more turn
            retry, ahead = False, 0
        elif residual > 2.0 ** (power + 1):  # warm up over more nodes
            ahead = 2 * max(ahead, period)
            ahead -= ahead % period
            if ahead > _MOST_TURNS * period:
                return None
        else:
            power += 2
            ahead = 0
            if power >= _LAST_RAISE:
                return None


def _solve(jacobian: Any, right: FloatArray) -> FloatArray:
    """(I − J)⁻¹ times one or several columns; NaN if the matrix is singular."""
    if isinstance(jacobian, np.ndarray):
        return solve_linear(np.eye(len(right)) - jacobian, right)
    jacobian.eliminate_zeros()
    if jacobian.nnz <= _FEW_ENTRIES * len(right):
        return _factored(jacobian, right)
    columns = [iterate(jacobian, column, _ITERATIONS) for column in np.atleast_2d(right.T)]
    solved = [column for column in columns if column is not None]
    if len(solved) < len(columns):
        return _factored(jacobian, right)
    return np.array(solved).T.reshape(right.shape)


def _factored(jacobian: Any, right: FloatArray) -> FloatArray:
    """The same by sparse elimination: durations leave few entries, and iterations diverge there."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    try:
        factors = splu(csc_array(eye_array(len(right)) - jacobian))
    except RuntimeError:  # singular
        return np.full(right.shape, np.nan)
    return np.asarray(factors.solve(right), dtype=np.float64)
