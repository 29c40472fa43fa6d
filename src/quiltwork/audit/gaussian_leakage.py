"""Exact leakage of one number with Gaussian noise: the least ε at which δ is kept.

Given the state of a time point, the answer is a mixture of Gaussians around the statistic's values.
The excess of one mixture over e^ε times another lies between the roots of their difference; a
Gaussian kernel is variation diminishing, so there are at most as many roots as sign changes of the
weights. If a grid shows fewer, Taylor bounds rule out further roots cell by cell, and what a pair
of roots could still hide is added. The noise is continuous; rounding to a grid is post-processing
and leaks no more. Cost: the laws of the statistic, then a few passes over values and time points.

Theorem: docs/theory/exact-leakage.md (Gaussian noise)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_down
from quiltwork.roots import bisect

_POINTS_PER_SIGMA = 16
"""The grid on which roots are bracketed, per standard deviation."""
_DEGREE = 8
"""Of the Taylor polynomials; at 1/32 of a standard deviation their remainder is below 1e-16."""
_REFINEMENTS = 24
"""How often a cell is halved: what it hides falls with the third power of its width."""
_MOST_CELLS = 4096
"""Cells refined at once; beyond them the bound on what they hide is taken as it is."""
_BLOCK = 256
"""Cells bounded at once, together with the values near them."""
_ENTRIES = 2**20
"""Entries of a matrix of places and values, for memory."""
_FAR = 12.0
"""Standard deviations beyond the last value at which a density is below rounding errors."""
_HALVINGS = 60
_UP = 1 + 2.0**-40
_ROUNDING = 2.0**-46
"""A bound on the rounding error of sums of weights, as a share of their mass."""
_LARGEST = 700.0
"""The largest ε whose e^ε is a float."""


def gaussian_leakage(laws: Laws, delta: float) -> float:
    """Return the least ε, rounded up, that keeps δ at every node; inf if it exceeds 700.

    Raises:
        UnsupportedError: for several numbers, and for states too rare for floats.
        TooLargeError: if the law is out of reach.
    """
    if len(laws.statistic.sizes) > 1:
        raise UnsupportedError(
            "With noise='gaussian' the exact leakage is for one number; audit one cell, or use "
            "calibrate, which bounds the leakage of all cells."
        )
    if not laws.in_floats:
        raise UnsupportedError(
            "A state is so rare that its law underflows floats, and the exact leakage with "
            "noise='gaussian' needs floats. Use noise='geometric', or calibrate for a bound."
        )
    # Rounded down: less noise than was added leaks at least as much.
    sigma = float_down(laws.statistic.scales[0])
    if not sigma:
        raise UnsupportedError("Without noise no ε keeps δ; give the scale of the noise added.")
    epsilon = 0.0
    for p, q in _pairs(laws):
        if excess(p, q, sigma, epsilon) > delta:
            epsilon = _least(p, q, sigma, delta, epsilon)
    return epsilon


def _pairs(laws: Laws) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the laws given two states of a node; middle nodes first, since they leak the most."""
    for block in laws.blocks(logs=False):
        middle = (laws.nodes.start + laws.nodes.stop) / 2
        for node in np.argsort(np.abs(block.nodes - middle), kind="stable").tolist():
            states = np.flatnonzero(block.possible[node]).tolist()
            for a in states:
                yield from (
                    (block.weights[:, node, a], block.weights[:, node, b]) for b in states if a != b
                )


def _least(p: FloatArray, q: FloatArray, sigma: float, delta: float, epsilon: float) -> float:
    low, high = epsilon, max(2 * epsilon, 0.5)
    while excess(p, q, sigma, high) > delta:
        if high >= _LARGEST:
            return math.inf
        low, high = high, min(2 * high, _LARGEST)
    # The upper end always keeps δ, so the result is safe wherever the search stops.
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        kept = excess(p, q, sigma, middle) <= delta
        low, high = (low, middle) if kept else (middle, high)
    return high * _UP


def excess(p: FloatArray, q: FloatArray, sigma: float, epsilon: float) -> float:
    """Return the hockey-stick divergence at e^ε of two laws on 0, 1, … with Gaussian noise σ.

    Rounded up: ∫ (p(y) − e^ε·q(y))⁺ dy, the least δ for this ε.
    """
    gamma = math.exp(epsilon)
    weights = p - gamma * q
    support = np.flatnonzero(weights)
    if not len(support) or not (weights > 0).any():
        return 0.0
    weights, values = weights[support], support.astype(np.float64)
    signs = np.sign(weights)
    changes = int(np.count_nonzero(signs[1:] != signs[:-1]))
    # All weights are positive, so the positive part is everything.
    if not changes:
        return min(1.0, float(weights.sum()) * _UP)
    mass = float(p.sum())
    roots, hidden = _roots(weights, values, sigma, changes, _ROUNDING * mass)
    total = 0.0
    for left, right in pairwise([-math.inf, *roots, math.inf]):
        inside = float(weights @ _between(values, left, right, sigma))
        total += max(inside, 0.0)
    # Each root adds the rounding errors of two tails; the bound has room for sixteen.
    return total + hidden + _ROUNDING * mass * max(1.0, len(roots) / 16)


def _between(values: FloatArray, left: float, right: float, sigma: float) -> FloatArray:
    """Return P(left < v + σN ≤ right) for each value v, in the tail where nothing cancels."""
    from scipy.special import ndtr

    low, high = (left - values) / sigma, (right - values) / sigma
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def _roots(
    weights: FloatArray, values: FloatArray, sigma: float, changes: int, tolerance: float
) -> tuple[list[float], float]:
    """Return sign changes of Σ w·φ((y − v)/σ), and a bound on the excess that others hide.

    Merging intervals of both signs can only lower the sum of their positive parts, by at most the
    integral over the parts of the other sign.
    """
    # Beyond 12σ what is positive, or follows something positive, has less than 1e-30 of the mass.
    begin, end = values[0] - _FAR * sigma, values[-1] + _FAR * sigma
    # A Gaussian kernel never adds sign changes: one in the weights is at most one in the
    # integrand, and bisection needs no grid.
    cells = 1 if changes == 1 else math.ceil((end - begin) / sigma * _POINTS_PER_SIGMA) + 1
    grid = np.linspace(begin, end, cells + 1)
    signs = _signs(weights, values, sigma, grid)
    hidden = 0.0
    if changes > max(1, _count_changes(signs)):
        hidden, finer = _refine(weights, values, sigma, grid, tolerance)
        grid = np.concatenate([grid, finer])
        signs = np.concatenate([signs, _signs(weights, values, sigma, finer)])
        order = np.argsort(grid, kind="stable")
        grid, signs = grid[order], signs[order]
    # A grid point can be a root itself; without it the neighbours bracket the sign change.
    grid, signs = grid[signs != 0], signs[signs != 0]
    roots = []
    for at in np.flatnonzero(signs[1:] != signs[:-1]).tolist():

        def passes(y: float, before: float = float(signs[at])) -> bool:
            return float(_signs(weights, values, sigma, np.array([y]))[0]) != before

        roots.append(bisect(passes, float(grid[at]), float(grid[at + 1]), _HALVINGS)[0])
    return roots, hidden


def _count_changes(signs: FloatArray) -> int:
    signs = signs[signs != 0]
    return int(np.count_nonzero(signs[1:] != signs[:-1]))


def _refine(
    weights: FloatArray, values: FloatArray, sigma: float, grid: FloatArray, tolerance: float
) -> tuple[float, FloatArray]:
    """Return a bound on the excess between signs on a grid, and points added to lower it.

    The bound is at most `tolerance` unless the limits on cells and halvings are reached.
    """
    middles, radius = (grid[1:] + grid[:-1]) / 2, float(grid[1] - grid[0]) / 2
    share = tolerance / len(middles)
    hidden, added = 0.0, []
    for halvings in range(_REFINEMENTS + 1):
        bounds = _hidden(weights, values, sigma, middles, radius)
        # A cell's part of the tolerance is its part of the width, so that the parts add up to it.
        split = bounds > share * 0.5**halvings
        if halvings == _REFINEMENTS or np.count_nonzero(split) > _MOST_CELLS:
            split[:] = False
        hidden += float(bounds[~split].sum())
        if not split.any():
            break
        added.append(middles[split])
        radius /= 2
        middles = (middles[split, None] + np.array([-radius, radius])).ravel()
    return hidden, np.concatenate(added) if added else grid[:0]


def _hidden(
    weights: FloatArray, values: FloatArray, sigma: float, middles: FloatArray, radius: float
) -> FloatArray:
    """Bound, for each cell, the integral where the sign is not that of the cell's ends.

    Nothing is hidden where the mixture has no root or is monotone. Elsewhere such a part lies
    between two roots, so with a second derivative of at most B it is at most B·width³/12, and at
    most the width times the largest value. All three come from a Taylor polynomial; its remainder
    is bounded by Cramér's inequality, |He_n(z)|·exp(−z²/4) ≤ 1.0865·√n!.
    """
    if len(middles) > _BLOCK:
        blocks = np.split(middles, range(_BLOCK, len(middles), _BLOCK))
        return np.concatenate([_hidden(weights, values, sigma, b, radius) for b in blocks])
    # Farther values add less than e^-50 to any term, whatever their weight.
    reach = sigma * 2 * math.sqrt(60 + math.log1p(float(np.abs(weights).sum())))
    begin, end = np.searchsorted(values, [middles[0] - reach, middles[-1] + reach]).tolist()
    weights, values = weights[begin:end], values[begin:end]
    # One unit is σ.
    r = radius / sigma * (1 + 2.0**-40)
    z = (middles[:, None] - values) / sigma
    bell = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    last, before = np.ones_like(z), np.zeros_like(z)
    coefficients = []
    for k in range(_DEGREE + 1):
        coefficients.append(np.abs((last * bell) @ weights) / math.factorial(k))
        last, before = z * last - k * before, last
    near = np.maximum(np.abs(z) - r, 0)
    n = _DEGREE + 1
    top = 0.4335 * math.sqrt(math.factorial(n)) * (np.exp(-(near**2) / 4) @ np.abs(weights))
    # Rounding errors of powers grow with z², those of sums with the number of terms.
    sizes = bell * (1 + z**2) * (2.0**-50 * (4 + len(values)))

    def derivative(d: int, first: int) -> FloatArray:
        """Bound the terms from `first` on of the d-th derivative, with remainder and rounding."""
        terms = sum(math.perm(k, d) * r ** (k - d) * coefficients[k] for k in range(first, n))
        remainder = top * r ** (n - d) / math.factorial(n - d)
        rounding = (sizes * (1 + np.abs(z)) ** d) @ np.abs(weights)
        return np.asarray(terms + remainder + rounding)

    value, slope, bend = derivative(0, 1), derivative(1, 2), derivative(2, 2)
    clear = (coefficients[0] > value) | (coefficients[1] > slope)
    largest = coefficients[0] + value
    bound = np.minimum(2 * r * largest, (2 * r) ** 3 / 12 * bend)
    return np.asarray(np.where(clear, 0.0, bound))


def _signs(weights: FloatArray, values: FloatArray, sigma: float, places: FloatArray) -> FloatArray:
    """Return the signs of Σ w·φ((y − v)/σ) at places y."""
    rows = max(1, _ENTRIES // len(values))
    if len(places) > rows:
        blocks = np.split(places, range(rows, len(places), rows))
        return np.concatenate([_signs(weights, values, sigma, block) for block in blocks])
    powers = -(((places[:, None] - values) / sigma) ** 2) / 2
    # Over the largest term, since far out all of them underflow; the sign stays the same.
    powers -= powers.max(axis=1, keepdims=True, initial=-math.inf)
    return np.asarray(np.sign(np.exp(powers) @ weights))
