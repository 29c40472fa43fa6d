"""Bounds that no further step exceeds: certified fixed points of the exact side.

The step F is monotone, so any r with F(r) ≤ r bounds every node by induction from the end. Where
matrices do not change, r is found by Newton's method with the trees' shares as Jacobian, in a few
iterations however slowly the chain mixes. It looks for r = F(r) + a little, so that where it
arrives a step stays below and the last iteration is the check.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.influence.kernel import iterate, product, solve_linear
from quiltwork.influence.sweep.program import BoolArray, Bounds, FloatArray, IntArray, closed

if TYPE_CHECKING:
    from quiltwork.influence.sweep.step import Exact

_NEWTON = 64
_STUCK = 2.0**-26
_LITTLE = 2.0**-39
_MOST = 2.0**-8
_PATIENCE = 8
_FAR = 200.0
_SPARSE = 150
_FEW_ENTRIES = 8
"""From so many pairs of states on equations are solved by iteration: a row has k − 1 entries."""
_ITERATIONS = 200
_CYCLES, _PLAIN = 3, 24
_FIRST_NODES = 256
_MOST_TURNS = 64
_FIRST_RAISE, _LAST_RAISE = -36, -8
_LONG_PERIOD, _LONG_RAISE = 256, -20


@dataclass(frozen=True, eq=False)
class Tangent:
    """One step of Newton's method: where it leads, how that moves with the level, how far it is."""

    ahead: FloatArray
    rate: FloatArray
    moved: float


class Homogeneous:
    """The step of one side of a homogeneous chain, on the vector of all pairs of states.

    Trees and the last solution are kept: the next level is mostly close to the last one. So there
    is one for every question (`Sweep.fresh`): equal questions get equal answers, whatever was asked
    before.
    """

    def __init__(self, side: Exact) -> None:
        self.side, self.walk = side, side.walk
        self.x, self.y = side.walk.pairs
        self.rows = {span: side.late_rows(span) for span in side.spans}
        self.tells = self.walk.tells[self.x, self.y]
        self.rest = side.rest(np.array([1 << 40]))[0][self.x, self.y]
        number = np.zeros((self.walk.size, self.walk.size), dtype=np.int64)
        number[self.x, self.y] = np.arange(len(self.x))
        self.number = number
        late = side.walk.limits
        self._kernel = late[0] if side.to_left and late is not None else 1.0
        group = np.zeros(len(self.x), dtype=np.int64)
        self.programs = {span: side.program(group) for span in side.spans}
        self._last: tuple[float, FloatArray] | None = None

    def step(self, level: float, r: FloatArray) -> tuple[Bounds, IntArray]:
        """F(r) at a level, with its slopes; and how many nodes each bound paid for in between."""
        limits = np.zeros((1, self.walk.size, self.walk.size))
        limits[0, self.x, self.y] = level * self.tells + r
        best: Bounds | None = None
        gaps = np.zeros(len(self.x), dtype=np.int64)
        for span in self.side.spans:
            found = self.programs[span].solve(self.rows[span], limits)
            values = found.values + ((span - 1) * level + self.walk.margin(span))
            found = Bounds(values, found.slope, found.high, found.low)
            if best is not None:
                gaps[found.values < best.values] = span - 1
            best = found if best is None else best.least(found)
        assert best is not None  # noqa: S101  (a span of one node is always there)
        return best, gaps

    def jacobian(self, found: Bounds, still: BoolArray) -> Any:
        """How each pair's bound moves with each pair's: (pairs, pairs), 0 for rows that stand."""
        slope = np.where(still[:, np.newaxis], 0.0, found.slope)
        rows = np.broadcast_to(np.arange(len(self.x))[:, None], slope.shape)
        columns = self.number[found.high, found.low]
        if len(self.x) >= _SPARSE:
            from scipy.sparse import csr_array

            entries = (slope.ravel(), (rows.ravel(), columns.ravel()))
            return csr_array(entries, shape=(len(self.x), len(self.x)))
        result = np.zeros((len(self.x), len(self.x)))
        np.add.at(result, (rows, columns), slope)
        return result

    def tangent(self, level: float, r: FloatArray) -> Tangent:
        """Newton's step from r to where a step stays a little below, and how that moves with the
        level.
        """
        infinite = ~np.isfinite(r)
        found, gaps = self.step(level, r)
        jacobian = self.jacobian(found, infinite)
        with np.errstate(invalid="ignore"):
            gain = np.where(infinite, 0.0, found.values - r)
        by_level = np.where(infinite, 0.0, _times(jacobian, self.tells.astype(np.float64)) + gaps)
        above = np.where(infinite, 0.0, gain + _LITTLE)
        step, rate = _solve(jacobian, np.stack([above, by_level], axis=1)).T
        ahead = np.maximum(r + step, self.rest)
        return Tangent(ahead, rate, float(np.abs(gain).max(initial=0.0)))

    def start(self, level: float) -> FloatArray:
        """Bounds that small levels lead to: all that is lost on the way is the rows' overlap.

        No pair of states is told apart better than by way of others.
        """
        rows = self.rows[self.side.spans[-1]]
        p = rows.above * self._kernel
        q = rows.below * self._kernel
        with np.errstate(divide="ignore", invalid="ignore"):
            p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
        shared = np.nan_to_num(np.minimum(p, q).sum(axis=1))
        alone = self.rest + level * (1 - shared) / np.where(shared, shared, 2.0**-7)
        limits = np.zeros((1, self.walk.size, self.walk.size))
        limits[0, self.x, self.y] = alone
        return np.asarray(np.maximum(closed(limits)[0, self.x, self.y], self.rest))

    def guess(self, level: float, r: FloatArray) -> None:
        """Begin the next solution from these bounds, found by other means."""
        self._last = level, r

    def solve(self, level: float) -> FloatArray | None:
        """Bounds up to a certificate: (1, k, k), None where there are none."""
        found = self._solved(level)
        if found is None:
            return None
        result = np.zeros((1, self.walk.size, self.walk.size))
        result[0, self.x, self.y] = found
        return result

    def _solved(self, level: float) -> FloatArray | None:
        """Newton's method from the last solution, or from little."""
        starts = [self.start(level)]
        if self._last is not None and self._last[0] > 0 and self._serves(level, *self._last):
            with np.errstate(invalid="ignore"):
                guess = self.rest + (self._last[1] - self.rest) * (level / self._last[0])
            starts.insert(0, np.where(np.isnan(guess), np.inf, guess))
        for start in starts:
            if (found := self._newton(level, start)) is not None:
                self._last = level, found
                return found
        return None

    def _serves(self, level: float, last: float, r: FloatArray) -> bool:
        """Whether to begin from a solution: what had no bound at a high level has one at a low."""
        return level >= last or bool(np.isfinite(r[np.isfinite(self.rest)]).all())

    def _newton(self, level: float, r: FloatArray) -> FloatArray | None:
        """Bounds that a step stays below by about `little`, which is the certificate.

        Where several trees are as good as each other, another one may lead upwards than the one
        whose slopes were taken: after some turns more is asked for.
        """
        infinite = ~np.isfinite(r)
        last, little, worse = np.inf, _LITTLE, 0
        alike = self.side.uniform()
        for turn in range(_NEWTON):
            r = np.where(infinite, np.inf, r)
            found, _ = self.step(level, r)
            with np.errstate(invalid="ignore"):
                gain = np.where(infinite, 0.0, found.values - r)
            moved = np.abs(gain).max(initial=0.0)
            if (found.values <= r).all() and moved <= 4 * little:
                return r
            if turn % _PATIENCE == _PATIENCE - 1 and moved < _STUCK:
                little *= 64
            if little > _MOST:
                return None
            above = np.where(infinite, 0.0, gain + little)
            ahead = r + _solve(self.jacobian(found, infinite), above)
            wild = not np.isfinite(ahead[~infinite]).all() or ahead[~infinite].max() > _FAR
            stuck = last / 2 < moved < _STUCK and moved > 4 * little
            r = found.values + little if wild or stuck else np.maximum(ahead, self.rest)
            worse += moved > last
            if worse == _CYCLES and alike and not infinite.any():  # trees take turns: come closer
                worse += 1  # once
                for _ in range(_PLAIN):
                    r = np.maximum(self.step(level, r)[0].values, self.rest)
            last = moved
            infinite |= ~(r < _FAR)
        return None

    def felt(self, level: float, most: int, bits: int) -> int:
        """How many nodes away an end is felt by a share of 2^-bits, about; at most `most`."""
        r = self._solved(level)
        if r is None:
            return most
        bounds, gaps = self.step(level, r)
        both = np.isfinite(r) & np.isfinite(self.rest)
        jacobian = self.jacobian(bounds, ~both)
        rise = np.zeros(len(r))
        rise[both] = r[both] - self.rest[both]
        nodes, stride, least = 0, 1, 2.0**-bits * rise.max(initial=0.0)
        while nodes < most and (rise := _times(jacobian, rise)).max(initial=0.0) > least:
            nodes += stride
            if nodes == 8 * stride and len(rise) < _SPARSE:
                jacobian, stride = product(jacobian, jacobian), 2 * stride
        return min((nodes + stride) * (int(gaps.max(initial=0)) + 1), most)


def _times(jacobian: Any, vector: FloatArray) -> FloatArray:
    """A matrix times a vector, summed in an order that does not depend on the machine."""
    if isinstance(jacobian, np.ndarray):
        return product(jacobian, vector[:, np.newaxis])[:, 0]
    return np.asarray(jacobian @ vector)


def periodic_bounds(side: Exact, level: float) -> FloatArray | None:
    """Bounds, by phase, that no step at this level exceeds where matrices change; None if unknown.

    A sweep of some nodes, then of twice as many, comes close to what repeats. From there one turn
    begins a little higher: if it ends no higher than it began, its bounds hold for ever, since each
    comes from those before it.
    """
    period, toward = side.walk.period, 1 if side.to_left else -1
    node, off = (1 << 40) // period * period + 1, ~np.eye(side.walk.size, dtype=np.bool_)
    ahead, power = min(_FIRST_NODES, period), _FIRST_RAISE
    if period >= _LONG_PERIOD:  # which what is added at its beginning does not outlive
        power = _LONG_RAISE
    again = True
    bounds = side.rest(np.array([node - toward * ahead]))
    while True:
        if ahead:
            bounds = side.follow(bounds, node - toward * ahead, np.full(ahead + 1, level))[-1:]
        raised = bounds + off * 2.0**power
        turn = side.follow(raised, node, np.full(period + 1, level))
        if (turn[-1] <= raised[0]).all():
            return np.asarray(turn[(toward * np.arange(period)) % period])
        both = np.isfinite(turn[-1]) & np.isfinite(raised[0])
        moved = np.abs(turn[-1][both] - raised[0][both]).max(initial=0.0)
        bounds = turn[-1:]
        if moved > 2.0 ** (power + 1) and again:  # not yet where it stays
            again, ahead = False, 0
        elif moved > 2.0 ** (power + 1):  # longer sweeps
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
    """(I − J)⁻¹ times one or several columns; NaN where there is none."""
    if isinstance(jacobian, np.ndarray):
        return solve_linear(np.eye(len(right)) - jacobian, right)
    jacobian.eliminate_zeros()
    if jacobian.nnz <= _FEW_ENTRIES * len(right):
        return _factored(jacobian, right)
    columns = [iterate(jacobian, one, _ITERATIONS) for one in np.atleast_2d(right.T)]
    solved = [one for one in columns if one is not None]
    if len(solved) < len(columns):
        return _factored(jacobian, right)
    return np.array(solved).T.reshape(right.shape)


def _factored(jacobian: Any, right: FloatArray) -> FloatArray:
    """The same by elimination: durations leave few entries, and iterations do not settle there."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    try:
        factors = splu(csc_array(eye_array(len(right)) - jacobian))
    except RuntimeError:  # singular
        return np.full(right.shape, np.nan)
    return np.asarray(factors.solve(right), dtype=np.float64)
