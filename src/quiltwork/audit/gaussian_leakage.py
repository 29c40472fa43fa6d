"""Exact leakage of one number with Gaussian noise: the least ε at which δ is kept.

Given the state of a time point, the answer is a mixture of Gaussians around the statistic's values.
The excess of one mixture over e^ε times another lies between the roots of their difference; a
Gaussian kernel is variation diminishing, so there are at most as many roots as sign changes of the
weights. The noise is continuous; rounding to a grid is post-processing and leaks no more. Cost: the
laws of the statistic, then a few passes over values and time points.

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
    total = 0.0
    for left, right in pairwise(_roots(weights, values, sigma, changes)):
        inside = float(weights @ _between(values, left, right, sigma))
        total += max(inside, 0.0)
    return total + _ROUNDING * float(p.sum())


def _between(values: FloatArray, left: float, right: float, sigma: float) -> FloatArray:
    """Return P(left < v + σN ≤ right) for each value v, in the tail where nothing cancels."""
    from scipy.special import ndtr

    low, high = (left - values) / sigma, (right - values) / sigma
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def _roots(weights: FloatArray, values: FloatArray, sigma: float, changes: int) -> list[float]:
    """Return −∞, the sign changes of Σ w·φ((y − v)/σ), and ∞."""
    begin, end = values[0] - _FAR * sigma, values[-1] + _FAR * sigma
    spread = (end - begin) / sigma
    # A Gaussian kernel never adds sign changes: one in the weights is at most one in the
    # integrand, and bisection needs no grid.
    count = 2 if changes == 1 else math.ceil(spread * _POINTS_PER_SIGMA) + 2
    grid = np.linspace(begin, end, count)
    signs = np.array([_sign(weights, values, sigma, y) for y in grid.tolist()])
    roots = []
    for at in np.flatnonzero(signs[1:] * signs[:-1] < 0).tolist():

        def passes(y: float, before: float = float(signs[at])) -> bool:
            return _sign(weights, values, sigma, y) != before

        roots.append(bisect(passes, float(grid[at]), float(grid[at + 1]), _HALVINGS)[0])
    return [-math.inf, *roots, math.inf]


def _sign(weights: FloatArray, values: FloatArray, sigma: float, y: float) -> float:
    powers = -(((y - values) / sigma) ** 2) / 2
    # Over the largest term, since far out all of them underflow; the sign stays the same.
    return float(np.sign(weights @ np.exp(powers - powers.max())))
