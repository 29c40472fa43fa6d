"""Bounds on the influence at a distance: spectral (Lemma 2.3), contraction, the smallest of all.

Each takes an array of distances and returns two arrays, for a quilt node so far to the left and to
the right: its influence is at most that. They hold for every initial distribution and cost O(k³),
apart from the distances.
"""

from __future__ import annotations

import math

import numpy as np

from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.beliefs.structure import boolean_product, class_period, recurrent_classes
from quiltwork.errors import UnsupportedError
from quiltwork.influence.protocol import FloatArray, IntArray
from quiltwork.influence.ratios import UNIT_ROUNDOFF, BoolArray, product_margin, row_ratios

Sides = tuple[FloatArray, FloatArray]

_GOOD_DIAMETER = 4.0


def spectral(chain: MarkovChain, distances: IntArray) -> Sides:
    """Lemma 2.3: log((π_min + e^(−ga/2))/(π_min − e^(−ga/2))), twice on the left.

    g is the eigen-gap of P·P*. Where a < 2·log(1/π_min)/g nothing is claimed (+∞).

    Theorem: docs/theory/spectral-bound.md

    Raises:
        UnsupportedError: unless the chain is irreducible and aperiodic.
    """
    if not (chain.is_irreducible and chain.is_aperiodic):
        kind = "aperiodic" if chain.is_irreducible else "irreducible"
        raise UnsupportedError(
            f"The spectral bound holds for irreducible, aperiodic chains, and this one is not "
            f"{kind}; use method='exact' or 'approx'."
        )
    return _from_gap(chain, chain.eigengap, distances)


def sharper_spectral(chain: MarkovChain, distances: IntArray) -> Sides:
    """The same with g = −2·log σ₂, which is larger and holds for every irreducible chain."""
    if not chain.is_irreducible or chain.second_singular_value >= 1:
        return _nothing(distances)
    gap = -2 * math.log(chain.second_singular_value)
    return _from_gap(chain, gap * (1 - 2.0**-48), distances)


def _from_gap(chain: MarkovChain, gap: float, distances: IntArray) -> Sides:
    if chain.size == 1:
        return np.zeros(len(distances)), np.zeros(len(distances))
    least = float(chain.stationary.min()) * (1 - relative_error(chain.size))
    decay = np.exp(-gap * distances / 2) * (1 + 2.0**-40)
    allowed = decay < least
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log1p(2 * decay / (least - decay)) * (1 + 2.0**-40)
    side = np.where(allowed, bound, np.inf)
    return 2 * side, side


def contraction(belief: MarkovChain | ChainBox, distances: IntArray) -> Sides:
    """Birkhoff: Δ(P^s)·tanh(Δ(P^s)/4)^(⌊a/s⌋−1), the same on both sides.

    s = 1, 2, 4, … until Δ is finite and small; a box uses s = 1 and upper·upper/(lower·lower).

    Theorem: docs/theory/contraction.md
    """
    side = np.full(len(distances), np.inf)
    for steps, diameter in _diameters(belief, int(distances.max(initial=0))):
        exponent = np.maximum(distances // steps - 1, 0)
        rate = min(1.0, math.tanh(diameter / 4) * (1 + 2.0**-40))
        bound = diameter * rate**exponent * (1 + exponent * 2.0**-50)
        side = np.minimum(side, np.where(distances >= steps, bound, np.inf))
    return side, side


def smallest(belief: MarkovChain | ChainBox, distances: IntArray) -> Sides:
    """The least of the bounds above at each distance."""
    left, right = contraction(belief, distances)
    if isinstance(belief, MarkovChain):
        for bound in (_spectral_if_allowed, sharper_spectral):
            more_left, more_right = bound(belief, distances)
            left, right = np.minimum(left, more_left), np.minimum(right, more_right)
    return left, right


def _spectral_if_allowed(chain: MarkovChain, distances: IntArray) -> Sides:
    if chain.is_irreducible and chain.is_aperiodic:
        return spectral(chain, distances)
    return _nothing(distances)


def _nothing(distances: IntArray) -> Sides:
    return np.full(len(distances), np.inf), np.full(len(distances), np.inf)


def _diameters(belief: MarkovChain | ChainBox, reach: int) -> list[tuple[int, float]]:
    if isinstance(belief, ChainBox):
        diameter = box_diameter(belief.lower, belief.upper)
        return [(1, diameter)] if math.isfinite(diameter) else []
    matrix = belief.transition
    if not _some_power_is_positive(matrix > 0):
        return []
    found: list[tuple[int, float]] = []
    power, positive, steps = matrix, matrix > 0, 1
    while steps <= reach:
        if positive.all():
            diameter = projective_diameter(power, steps)
            if math.isfinite(diameter):
                found.append((steps, diameter))
            if diameter <= _GOOD_DIAMETER:
                break
        power, positive = power @ power, boolean_product(positive, positive)
        steps *= 2
    return found


def _some_power_is_positive(step: BoolArray) -> bool:
    return len(recurrent_classes(step)[0]) == len(step) and class_period(step) == 1


def projective_diameter(matrix: FloatArray, steps: int = 1) -> float:
    """Return Δ = max log [P(x,z)·P(x',z')/(P(x,z')·P(x',z))] of a positive matrix, rounded up.

    O(k³). `steps` is the number of products behind the matrix. Equal rows give exactly 0.

    >>> round(projective_diameter(np.array([[0.9, 0.1], [0.4, 0.6]])), 6)
    2.60269
    """
    if (matrix == matrix[0]).all():
        return 0.0
    ratios = row_ratios(matrix[np.newaxis], None)[0]
    diameter = float((ratios + ratios.T).max())
    margin = 2 * float(product_margin(steps, len(matrix)))
    return diameter * (1 + 2.0**-49) + margin


def box_diameter(lower: FloatArray, upper: FloatArray) -> float:
    """Return a bound on Δ for every matrix between the bounds: +inf if a lower bound is 0. O(k³).

    Over z ≠ z' and x ≠ x' each entry is at its own worst bound.
    """
    size = len(lower)
    if size == 1:
        return 0.0
    if (lower == upper).all():
        return projective_diameter(lower) if (lower > 0).all() else math.inf
    if not (lower > 0).all():
        return math.inf
    return _largest_cross_ratio(np.log(upper), np.log(lower)) + 64 * UNIT_ROUNDOFF * size


def _largest_cross_ratio(high: FloatArray, low: FloatArray) -> float:
    """Max over x ≠ x', z ≠ z' of high(x,z) − low(x',z) + high(x',z') − low(x,z'). O(k³)."""
    best = 0.0
    rows = np.arange(len(high))
    for x in range(len(high) - 1):
        forth, back = high[x] - low[x + 1 :], high[x + 1 :] - low[x]
        f, g = np.argmax(forth, axis=1), np.argmax(back, axis=1)
        these = rows[: len(f)]
        first = forth[these, f], back[these, g]
        forth[these, f] = back[these, g] = -np.inf
        second = forth.max(axis=1), back.max(axis=1)
        crossed = np.maximum(first[0] + second[1], second[0] + first[1])
        best = max(best, float(np.where(f == g, crossed, first[0] + first[1]).max()))
    return best * (1 + 2.0**-49)
