"""The f-sweep, slowly: curves on a uniform grid of log γ, every split tried, (*) by its definition.

A curve is an array over γ = e^(n·step), n = −N..N, at or above H_γ of some pair of laws. Nothing of
the package enters, and nothing is rounded on purpose: this is what `evidence/checks/f_sweep.py`
attacks, and what the package's own engine is compared with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import ndtr

Array = np.ndarray
Curves = Array  # (k, k, 2N + 1)


@dataclass(frozen=True)
class Grid:
    """γ = e^(n·step) for |n| ≤ most."""

    step: float
    most: int

    @property
    def gamma(self) -> Array:
        return np.exp(self.step * np.arange(-self.most, self.most + 1))

    def hockey_stick(self, p: Array, q: Array) -> Array:
        """H_γ of two laws on finitely many outcomes."""
        return np.maximum(p[None] - self.gamma[:, None] * q[None], 0).sum(axis=1)

    def gaussian(self, mu: float) -> Array:
        """H_γ of N(μ, 1) against N(0, 1)."""
        if mu == 0:
            return self.nothing
        gamma, e = self.gamma, np.log(self.gamma)
        both = ndtr(mu / 2 - e / mu) - gamma * ndtr(-mu / 2 - e / mu)
        return np.maximum(both, self.nothing)

    @property
    def nothing(self) -> Array:
        """H_γ of equal laws."""
        return np.maximum(1 - self.gamma, 0)

    def compose(self, a: Array, b: Array) -> Array:
        """min over γ₁γ₂ = γ of a(γ₁) + γ₁ b(γ₂), over all splits on the grid."""
        n = np.arange(len(a))
        rest = n[:, None] - n[None] + self.most
        inside = np.where(rest < 0, 1.0, b[np.clip(rest, 0, len(a) - 1)])
        return (a[None] + self.gamma[None] * inside).min(axis=1)

    def both_orders(self, a: Array, b: Array) -> Array:
        return np.minimum(self.compose(a, b), self.compose(b, a))

    def at(self, curve: Array, gamma: Array) -> Array:
        """The chord; beyond the last value constant, below the first what is always true."""
        inside = np.interp(gamma, self.gamma, curve)
        return np.where(gamma < self.gamma[0], 1.0, inside)


def joined(grid: Grid, levels: Curves, r: Curves) -> Curves:
    """min(g∘r, r∘g), pair by pair."""
    found = np.empty_like(r)
    for z, w in np.ndindex(r.shape[:2]):
        found[z, w] = grid.nothing if z == w else grid.both_orders(levels[z, w], r[z, w])
    return found


def step_of(
    grid: Grid, kernel: Array, joint: Curves, possible: Sequence[bool] | None = None
) -> Curves:
    """Upper bounds of (*) for every pair of rows: product coupling and reference states."""
    k = len(kernel)
    r = np.ones((k, k, len(grid.gamma)))
    for x, y in itertools.permutations(range(k), 2):
        if possible is None or (possible[x] and possible[y]):
            bounds = [by_coupling(grid, kernel[x], kernel[y], joint)]
            bounds += [by_reference(grid, kernel[x], kernel[y], joint, z0) for z0 in range(k)]
            r[x, y] = np.min(bounds, axis=0)
    return closed(grid, r)


def closed(grid: Grid, r: Curves) -> Curves:
    """Below γ = 1 what the reversed pair says, where that is less."""
    mirrored = 1 - grid.gamma + grid.gamma * np.swapaxes(r, 0, 1)[:, :, ::-1]
    k = np.arange(len(r))
    least = np.minimum(r, np.maximum(mirrored, grid.nothing))
    least[k, k] = grid.nothing
    return least


def by_coupling(grid: Grid, p: Array, q: Array, joint: Curves) -> Array:
    found = np.empty(len(grid.gamma))
    for n, gamma in enumerate(grid.gamma):
        c = p - gamma * q
        above, below = np.maximum(c, 0), np.maximum(-c, 0)
        eta, b = above.sum(), below.sum()
        found[n] = eta
        if eta > 0 and b > 0:
            pairs = itertools.product(np.flatnonzero(above), np.flatnonzero(below))
            coupled = sum(
                above[z] * below[w] / b * grid.at(joint[z, w], np.array(b / eta)) for z, w in pairs
            )
            found[n] = min(eta, coupled)
    return found


def by_reference(grid: Grid, p: Array, q: Array, joint: Curves, z0: int) -> Array:
    """The largest value over t = u(z0), which is one of the corners."""
    gamma = grid.gamma
    corners, most, least = [np.array([0.0, 1.0])], {}, {}
    for z in range(len(p)):
        if z != z0:
            up, down = joint[z, z0], joint[z0, z]
            t = -np.diff(up) / np.diff(gamma)
            u = -np.diff(down) / np.diff(gamma)
            corners += [t, down[1:] + gamma[1:] * u, down, (1 - up) / gamma]
    t = np.unique(np.clip(np.concatenate(corners), 0, 1))
    for z in range(len(p)):
        if z != z0:
            most[z] = np.minimum((joint[z, z0] + gamma * t[:, None]).min(axis=1), 1)
            least[z] = np.maximum(((t[:, None] - joint[z0, z]) / gamma).max(axis=1), 0)
    found = np.empty(len(gamma))
    for n, g in enumerate(gamma):
        c = p - g * q
        total = c[z0] * t
        for z in most:
            total = total + c[z] * (most[z] if c[z] > 0 else least[z])
        found[n] = min(total.max(), np.maximum(c, 0).sum())
    return found


def program(grid: Grid, p: Array, q: Array, joint: Curves, gamma: float) -> float:
    """(*) itself, with the constraints of the grid: the least that its bounds may say."""
    k, rows, limits = len(p), [], []
    for z, w in itertools.permutations(range(k), 2):
        for g, limit in zip(grid.gamma, joint[z, w], strict=True):
            row = np.zeros(k)
            row[z], row[w] = 1, -g
            rows.append(row)
            limits.append(limit)
    found = linprog(-(p - gamma * q), A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * k)
    return float(-found.fun)


def right_of(grid: Grid, kernels: Sequence[Array], levels: Sequence[Curves]) -> list[Curves]:
    """r_t for every node: kernels[t] leads from t to t + 1, levels[t] are those of t."""
    k = len(levels[0])
    nothing = np.broadcast_to(grid.nothing, (k, k, len(grid.gamma)))
    found = [nothing]
    for kernel, level in zip(reversed(kernels), reversed(levels[1:]), strict=True):
        found.append(step_of(grid, kernel, joined(grid, level, found[-1])))
    return found[::-1]


def left_of(
    grid: Grid, laws: Sequence[Array], kernels: Sequence[Array], levels: Sequence[Curves]
) -> list[Curves]:
    """l_t for every node; a state that cannot occur has no bound, rather than one of 0."""
    k = len(levels[0])
    here = np.broadcast_to(grid.nothing, (k, k, len(grid.gamma))).copy()
    here[_impossible(laws[0])] = 1.0
    found = [here]
    for t, kernel in enumerate(kernels):
        after = laws[t + 1]
        rows = (laws[t][:, None] * kernel).T
        rows = np.divide(rows, after[:, None], out=np.zeros_like(rows), where=after[:, None] > 0)
        joint = joined(grid, levels[t], found[-1])
        joint[_impossible(laws[t])] = 1.0
        found.append(step_of(grid, rows, joint, (after > 0).tolist()))
    return found


def _impossible(law: Array) -> Array:
    without = law == 0
    return (without[:, None] | without[None]) & ~np.eye(len(law), dtype=bool)


def leak(grid: Grid, level: Curves, left: Curves, right: Curves) -> Curves:
    """The least over all six orders of g∘r∘l, for every pair."""
    found = np.ones_like(right)
    for x, y in itertools.permutations(range(len(right)), 2):
        parts = level[x, y], right[x, y], left[x, y]
        for a, b, c in itertools.permutations(parts):
            found[x, y] = np.minimum(found[x, y], grid.compose(grid.compose(a, b), c))
    return found


def span(grid: Grid, spread: Array, between: Array, joint: Array) -> Array:
    """Several steps at once, one curve for all pairs; `spread` is η of the product of matrices."""
    gamma = grid.gamma
    found = np.ones(len(gamma))
    for n, g in enumerate(gamma):
        for first, cost in zip(gamma, between, strict=True):
            if first >= 1 and g / first >= 1:
                eta = float(grid.at(spread, np.array(g / first)))
                rest = grid.at(joint, np.array((g - first * (1 - eta)) / eta)) if eta > 0 else 0.0
                found[n] = min(found[n], (1 - eta) * cost + eta * rest)
    return found


def spread_of(grid: Grid, diameter: float) -> Array:
    """The largest η_γ of two rows whose cross-ratios are at most e^diameter."""
    if math.isinf(diameter):
        return np.ones(len(grid.gamma))
    top = np.maximum(math.exp(diameter / 2) - np.sqrt(grid.gamma), 0) ** 2
    return np.minimum(top / math.expm1(diameter), 1.0) if diameter > 0 else grid.nothing


def scalar_step(grid: Grid, spread: Array, joint: Array) -> Array:
    """η_γ·joint(1 + (γ − 1)/η_γ), for γ ≥ 1; below, what the reversed pair says."""
    found = np.zeros(len(grid.gamma))
    for n, (gamma, eta) in enumerate(zip(grid.gamma, spread, strict=True)):
        if gamma >= 1 and eta > 0:
            found[n] = eta * grid.at(joint, np.array(1 + (gamma - 1) / eta))
    mirrored = 1 - grid.gamma + grid.gamma * found[::-1]
    return np.where(grid.gamma < 1, mirrored, found)
