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

from quiltwork.influence.sweep.program import BoolArray, Bounds, FloatArray, IntArray, closed

if TYPE_CHECKING:
    from quiltwork.influence.sweep.sides import Exact

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
_SETTLES = 128


@dataclass(frozen=True, eq=False)
class Tangent:
    """One step of Newton's method: where it leads, how that moves with the level, how far it is."""

    ahead: FloatArray
    rate: FloatArray
    moved: float


class Homogeneous:
    """The step of one side of a homogeneous chain, on the vector of all pairs of states.

    Trees and the last solution are kept: the next level is mostly close to the last one.
    """

    def __init__(self, side: Exact) -> None:
        self.side, self.walk = side, side.walk
        self.x, self.y = side.walk.pairs
        group = np.zeros(len(self.x), dtype=np.int64)
        self.programs = {span: side.program(group) for span in side.spans}
        self.rows = {span: side.rows(span, None) for span in side.spans}
        self.tells = self.walk.tells[self.x, self.y]
        self.rest = side.rest(np.array([1 << 40]))[0][self.x, self.y]
        number = np.zeros((self.walk.size, self.walk.size), dtype=np.int64)
        number[self.x, self.y] = np.arange(len(self.x))
        self.number = number
        late = side.walk.limits
        self._kernel = late[0] if side.to_left and late is not None else 1.0
        self._last: tuple[float, FloatArray] | None = None
        self.settles = _SETTLES
        """After so many steps of a level bounds have settled, as far as was seen."""

    def forget(self) -> None:
        """Begin as if nothing had been asked before, so that equal questions get equal answers."""
        group = np.zeros(len(self.x), dtype=np.int64)
        self.programs = {span: self.side.program(group) for span in self.side.spans}
        self._last = None

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
        by_level = np.where(infinite, 0.0, jacobian @ self.tells.astype(np.float64) + gaps)
        above = np.where(infinite, 0.0, gain + _LITTLE)
        step, rate = _solve(jacobian, np.stack([above, by_level], axis=1)).T
        ahead = np.maximum(r + step, self.rest)
        return Tangent(ahead, rate, float(np.abs(gain).max(initial=0.0)))

    def guess(self, level: float, r: FloatArray) -> None:
        """Begin the next solution from these bounds, found by other means."""
        self._last = level, r

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

    def solve(self, level: float) -> FloatArray | None:
        """Newton's method from the last solution, or from little, up to a certificate."""
        starts = [self.start(level)]
        if self._last is not None and self._last[0] > 0 and self._serves(level, *self._last):
            with np.errstate(invalid="ignore"):
                guess = self.rest + (self._last[1] - self.rest) * (level / self._last[0])
            starts.insert(0, np.where(np.isnan(guess), np.inf, guess))
        for start in starts:
            found = self._newton(level, start)
            if found is not None:
                self._last = level, found
                result = np.zeros((1, self.walk.size, self.walk.size))
                result[0, self.x, self.y] = found
                return result
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
        if (self._last is None or self._last[0] != level) and self.solve(level) is None:
            return most
        assert self._last is not None  # noqa: S101  (solved just now, or guessed before)
        r = self._last[1]
        bounds, gaps = self.step(level, r)
        both = np.isfinite(r) & np.isfinite(self.rest)
        jacobian = self.jacobian(bounds, ~both)
        rise = np.zeros(len(r))
        rise[both] = r[both] - self.rest[both]
        nodes, stride, least = 0, 1, 2.0**-bits * rise.max(initial=0.0)
        while nodes < most and (rise := jacobian @ rise).max(initial=0.0) > least:
            nodes += stride
            if nodes == 8 * stride and len(rise) < _SPARSE:
                jacobian, stride = jacobian @ jacobian, 2 * stride
        return min((nodes + stride) * (int(gaps.max(initial=0)) + 1), most)


def _solve(jacobian: Any, right: FloatArray) -> FloatArray:
    """(I − J)⁻¹ times one or several columns; NaN where there is none."""
    if not isinstance(jacobian, np.ndarray):
        jacobian.eliminate_zeros()
        if jacobian.nnz <= _FEW_ENTRIES * len(right):
            return _factored(jacobian, right)
        from scipy.sparse.linalg import LinearOperator, bicgstab

        step = LinearOperator(jacobian.shape, matvec=lambda v: v - jacobian @ v, dtype=np.float64)
        columns = [
            bicgstab(step, one, rtol=1e-10, atol=1e-14, maxiter=_ITERATIONS)
            for one in np.atleast_2d(right.T)
        ]
        if all(failed == 0 for _, failed in columns):
            return np.array([one for one, _ in columns]).T.reshape(right.shape)
        return _factored(jacobian, right)
    try:
        return np.asarray(np.linalg.solve(np.eye(len(right)) - jacobian, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)


def _factored(jacobian: Any, right: FloatArray) -> FloatArray:
    """The same by elimination: durations leave few entries, and iterations do not settle there."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    try:
        factors = splu(csc_array(eye_array(len(right)) - jacobian))
    except RuntimeError:  # singular
        return np.full(right.shape, np.nan)
    return np.asarray(factors.solve(right), dtype=np.float64)
