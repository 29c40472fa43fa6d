"""Exact leakage of one number with Gaussian noise: the least ε at which δ is kept.

Given the state of a time point the answer is a mixture of Gaussians around the statistic's values.
What one mixture has more than e^ε times another lies between places where their difference crosses
0; there are no more of them than sign changes of its weights (a Gaussian kernel only smooths). The
noise is the continuous law, of which rounding to a grid leaks no more. Cost: the laws of the
statistic, then a few passes over values and time points.

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

_PLACES = 16
"""Places per standard deviation at which crossings are looked for."""
_FAR = 12.0
_HALVINGS = 60
_UP = 1 + 2.0**-40
_LOST = 2.0**-46
"""What sums of weights may have lost to rounding, as a share of their mass."""
_LARGEST = 700.0


def gaussian_leakage(laws: Laws, delta: float) -> float:
    """The least ε, rounded up, with which δ is kept at every node; inf where no float is enough.

    Raises:
        UnsupportedError: for several numbers, and for states too rare for floats.
        TooLargeError: if the law is out of reach.
    """
    if len(laws.statistic.sizes) > 1:
        raise UnsupportedError(
            "With noise='gaussian' the exact leakage is that of one number; ask about one cell, "
            "or calibrate, which bounds what all of them tell."
        )
    if not laws.in_floats:
        raise UnsupportedError(
            "A state is so rare here that floats lose its law; the exact leakage with "
            "noise='gaussian' is for states that are not."
        )
    sigma = float_down(laws.statistic.scales[0])
    if not sigma:
        raise UnsupportedError("Without noise there is no ε that keeps δ; give the noise added.")
    epsilon = 0.0
    for one, other in _pairs(laws):
        if excess(one, other, sigma, epsilon) > delta:
            epsilon = _least(one, other, sigma, delta, epsilon)
    return epsilon


def _pairs(laws: Laws) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The laws given two states of a node, those of the middle nodes first: they leak the most."""
    for block in laws.blocks(logs=False):
        middle = (laws.nodes.start + laws.nodes.stop) / 2
        for node in np.argsort(np.abs(block.nodes - middle), kind="stable").tolist():
            states = np.flatnonzero(block.possible[node]).tolist()
            for a in states:
                yield from (
                    (block.weights[:, node, a], block.weights[:, node, b]) for b in states if a != b
                )


def _least(one: FloatArray, other: FloatArray, sigma: float, delta: float, epsilon: float) -> float:
    low, high = epsilon, max(2 * epsilon, 0.5)
    while excess(one, other, sigma, high) > delta:
        if high >= _LARGEST:
            return math.inf
        low, high = high, min(2 * high, _LARGEST)
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        kept = excess(one, other, sigma, middle) <= delta
        low, high = (low, middle) if kept else (middle, high)
    return high * _UP


def excess(one: FloatArray, other: FloatArray, sigma: float, epsilon: float) -> float:
    """H of two laws of integers 0, 1, … with Gaussian noise of this σ, at γ = e^ε; rounded up."""
    gamma = math.exp(epsilon)
    weights = one - gamma * other
    kept = np.flatnonzero(weights)
    if not len(kept) or not (weights > 0).any():
        return 0.0
    weights, values = weights[kept], kept.astype(np.float64)
    signs = np.sign(weights)
    changes = int(np.count_nonzero(signs[1:] != signs[:-1]))
    if not changes:
        return min(1.0, float(weights.sum()) * _UP)
    ends = _crossings(weights, values, sigma, changes)
    total = 0.0
    for left, right in pairwise(ends):
        inside = float(weights @ _between(values, left, right, sigma))
        total += max(inside, 0.0)
    return total + _LOST * float(one.sum())


def _between(values: FloatArray, left: float, right: float, sigma: float) -> FloatArray:
    """P(left < v + σN ≤ right), from the side where nothing cancels."""
    from scipy.special import ndtr

    low, high = (left - values) / sigma, (right - values) / sigma
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def _crossings(weights: FloatArray, values: FloatArray, sigma: float, changes: int) -> list[float]:
    """Where Σ w·φ((y − v)/σ) changes its sign, between −∞ and ∞."""
    begin, end = values[0] - _FAR * sigma, values[-1] + _FAR * sigma
    spread = (end - begin) / sigma
    places = np.linspace(begin, end, 2 if changes == 1 else math.ceil(spread * _PLACES) + 2)
    signs = np.array([_sign(weights, values, sigma, place) for place in places.tolist()])
    found = []
    for at in np.flatnonzero(signs[1:] * signs[:-1] < 0).tolist():

        def passes(place: float, before: float = float(signs[at])) -> bool:
            return _sign(weights, values, sigma, place) != before

        found.append(bisect(passes, float(places[at]), float(places[at + 1]), _HALVINGS)[0])
    return [-math.inf, *found, math.inf]


def _sign(weights: FloatArray, values: FloatArray, sigma: float, place: float) -> float:
    powers = -(((place - values) / sigma) ** 2) / 2
    return float(np.sign(weights @ np.exp(powers - powers.max())))
