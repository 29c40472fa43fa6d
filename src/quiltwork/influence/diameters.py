"""Projective diameters: how far apart the rows of a positive matrix are, at most.

Δ(P) = max log [P(x,z)·P(x',z')/(P(x,z')·P(x',z))]. A matrix of diameter Δ contracts projective
distances by tanh(Δ/4) (Birkhoff). If P has zeros or is nearly degenerate, its powers are used.

Theorem: docs/theory/contraction.md
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, ChainBox, CyclicChain, DatedChain, MarkovChain
from quiltwork.beliefs.structure import boolean_product, class_period
from quiltwork.caching import cached_by_owner
from quiltwork.influence.kernel import product
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.influence.ratios import BoolArray, product_margin, row_ratios

_GOOD_DIAMETER = 4.0
"""Longer products are not tried once the diameter is this small."""
_MOST_STEPS = 1 << 16
_AROUND_CHANGES = 512
"""Steps to either side of a change of clocks in which matrices come in another order."""
_BOX_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_FAR = 36.0
"""Beyond e^36 the result would be rounding error."""
_MOST_IN_SETS = 12
_BOX_WORK = 1 << 24


@cached_by_owner
def diameters(belief: Belief) -> list[tuple[int, float]]:
    """Return (s, Δ of s steps) for s = 1, 2, 4, …, as far as finite, until one is small.

    Cached as long as the belief exists. O(k³) for each s.
    """
    return _diameters(belief)


@singledispatch
def _diameters(belief: Any) -> list[tuple[int, float]]:
    return []


@_diameters.register
def _(belief: MarkovChain) -> list[tuple[int, float]]:
    classes = belief.recurrent_classes
    if len(classes) > 1 or class_period(belief.possible[np.ix_(classes[0], classes[0])]) > 1:
        return []
    return cycle_diameters(np.asarray(belief.transition)[np.newaxis])


@_diameters.register
def _(belief: CyclicChain) -> list[tuple[int, float]]:
    return cycle_diameters(np.asarray(belief.matrices))


@_diameters.register
def _(belief: DatedChain) -> list[tuple[int, float]]:
    turns = np.arange(belief.period + _AROUND_CHANGES) % belief.period
    phases = np.concatenate([turns, *belief.around_changes(_AROUND_CHANGES)])
    return cycle_diameters(np.asarray(belief.matrices)[phases], _AROUND_CHANGES)


def cycle_diameters(matrices: FloatArray, most_steps: int = _MOST_STEPS) -> list[tuple[int, float]]:
    """The largest Δ of s matrices in a row, for any phase of the first. O(p·k³) for each s.

    States that nothing leads to in s steps are left out of the columns: after s steps they are
    impossible for every start.

    >>> [(s, round(float(d), 6)) for s, d in cycle_diameters(np.array([[[0.9, 0.1], [0.4, 0.6]]]))]
    [(1, 2.60269)]
    """
    by_span: list[tuple[int, float]] = []
    power, positive, steps = matrices, matrices > 0, 1
    while steps <= most_steps:
        if (positive == positive.any(axis=1, keepdims=True)).all():
            diameter = _largest_diameter(power, positive, steps)
            if math.isfinite(diameter):
                by_span.append((steps, diameter))
            # a longer span contracts no better per node once the diameter is small
            if diameter <= _GOOD_DIAMETER:
                break
        later = np.roll(np.arange(len(matrices)), -steps)
        power, positive = product(power, power[later]), boolean_product(positive, positive[later])
        steps *= 2
    return by_span


def _largest_diameter(products: FloatArray, positive: BoolArray, steps: int) -> float:
    """The largest diameter of some products, rounded up."""
    # equal rows: exactly 0, which the margins below would hide
    if (products == products[:, :1]).all():
        return 0.0
    ratios = row_ratios(products, None if positive.all() else positive)
    diameter = float((ratios + ratios.transpose(0, 2, 1)).max())
    # a diameter is a sum of two log-ratios, hence twice the margin of a product
    return diameter * (1 + 2.0**-49) + 2 * float(product_margin(steps, products.shape[1]))


@_diameters.register
def _(belief: ChainBox) -> list[tuple[int, float]]:
    """Bounds on s-step probabilities of every chain in the box, one step at a time.

    Rows are also as near as their first steps overlap, since the others are the same for all rows.
    """
    found: list[tuple[int, float]] = []
    low, high, possible = np.array(belief.lower), np.array(belief.upper), belief.upper > 0
    most = min(_BOX_STEPS[-1], max(1, _BOX_WORK // belief.size**3))
    boxes: dict[int, tuple[FloatArray, FloatArray]] = {}
    apart: dict[int, float] = {}
    for steps in range(1, most + 1):
        if steps > 1:
            low, high = _one_step_more(belief, low, high)
            possible = boolean_product(belief.upper > 0, possible)
        if steps not in _BOX_STEPS:
            continue
        reached = possible.any(axis=0)  # nobody is in another state after so many steps
        diameter = box_diameter(low[:, reached], high[:, reached])
        ratios = _box_ratios(low[:, reached], high[:, reached])
        for first, box in boxes.items():
            if apart.get(steps - first, math.inf) <= _FAR:
                ratios = np.minimum(ratios, _overlapping(*box, apart[steps - first]))
        if belief.size <= _MOST_IN_SETS:
            boxes[steps], apart[steps] = (low, high), float(ratios.max())
        diameter = min(diameter, float((ratios + ratios.T).max()))
        if math.isfinite(diameter):
            found.append((steps, diameter))
        if diameter <= _GOOD_DIAMETER / 2:
            break
    return found


def _box_ratios(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return bounds on log P(x,z)/P(x',z) over all z, 0 for x = x'; O(k³)."""
    if not (lower > 2.0**-960).all():
        return np.where(np.eye(len(lower)), 0.0, np.inf)
    high, low = np.log(upper), np.log(lower)
    ratios = np.array([(row - low).max(axis=1) for row in high]) * (1 + 2.0**-49) + 2.0**-40
    return np.where(np.eye(len(lower)), 0.0, np.maximum(ratios, 0.0))


def _overlapping(lower: FloatArray, upper: FloatArray, apart: float) -> FloatArray:
    """Return the largest log p·v/q·v, p and q in rows x and x' of a box, v from 1 to e^apart.

    The worst v is 1 or e^apart, so it is the largest (1 + c·p(S))/(1 + c·q(S)) over sets S, with
    c = e^apart − 1; p(S) is at most upper(S) and what lower leaves to S, q(S) alike. O(k²·2^k).

    Theorem: docs/theory/contraction.md (boxes)

    >>> rows = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> np.exp(_overlapping(rows, rows, math.log(3.0))).round(6)
    array([[1.      , 1.555556],
           [1.833333, 1.      ]])
    """
    size, rounding = len(lower), 8.0 * (len(lower) + 8) * 2.0**-53
    factor = math.expm1(apart)
    sets = (np.arange(2**size)[:, np.newaxis] >> np.arange(size) & 1).astype(np.float64)
    least, most = sets @ lower.T, sets @ upper.T
    p = np.minimum(most, least + (1 - lower.sum(axis=1))) + rounding
    q = np.maximum(least, most - (upper.sum(axis=1) - 1)) - rounding
    p, q = np.minimum(p, 1.0), np.maximum(q, 0.0)
    ratios = [
        np.log1p(factor * (p[:, [x]] - q) / (1 + factor * q)).max(axis=0) for x in range(size)
    ]
    return np.where(np.eye(size), 0.0, np.array(ratios) * (1 + 2.0**-40) + 2.0**-40)


def box_diameter(lower: FloatArray, upper: FloatArray) -> float:
    """Return a bound on Δ of every matrix between the bounds; +inf if one is not positive. O(k³).

    Over x ≠ x' and z ≠ z' each of the four entries has its own worst bound.

    >>> point = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> round(box_diameter(point, point), 6)
    2.60269
    """
    if len(lower) == 1 or ((lower == upper).all() and (lower == lower[0]).all()):
        return 0.0
    if not (lower > 2.0**-960).all():
        return math.inf
    # four logarithms, each within one rounding
    return _largest_cross_ratio(np.log(upper), np.log(lower)) * (1 + 2.0**-49) + 2.0**-40


def _largest_cross_ratio(high: FloatArray, low: FloatArray) -> float:
    """Max over x ≠ x', z ≠ z' of high(x,z) − low(x',z) + high(x',z') − low(x,z'). O(k³)."""
    best = 0.0
    for x in range(len(high) - 1):
        forth, back = high[x] - low[x + 1 :], high[x + 1 :] - low[x]
        f, g = np.argmax(forth, axis=1), np.argmax(back, axis=1)
        rows = np.arange(len(f))
        first = forth[rows, f], back[rows, g]
        forth[rows, f] = back[rows, g] = -np.inf
        second = forth.max(axis=1), back.max(axis=1)
        crossed = np.maximum(first[0] + second[1], second[0] + first[1])
        best = max(best, float(np.where(f == g, crossed, first[0] + first[1]).max()))
    return best


def _one_step_more(
    box: ChainBox, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Extend bounds on s-step probabilities by a first step anywhere in the box. O(k³ log k)."""
    size = box.size
    rounding = 8.0 * (size + 8) * 2.0**-53
    spare = 1 - box.lower.sum(axis=1)
    smallest = _extreme(box, low, np.maximum(spare - rounding, 0), ascending=True)
    largest = _extreme(box, high, np.maximum(spare, 0) + rounding, ascending=False)
    return smallest * (1 - rounding), np.minimum(largest * (1 + rounding), 1.0)


def _extreme(box: ChainBox, values: FloatArray, spare: FloatArray, ascending: bool) -> FloatArray:
    """Least or largest Σ_y p(y)·values(y, z) over rows p of the box, by filling the best
    y first.
    """
    slack = box.upper - box.lower
    result = box.lower @ values
    for z in range(box.size):
        order = np.argsort(values[:, z] if ascending else -values[:, z])
        slack_in_order = slack[:, order]
        filled_before = np.cumsum(slack_in_order, axis=1) - slack_in_order
        filled = np.clip(spare[:, np.newaxis] - filled_before, 0, slack_in_order)
        result[:, z] += filled @ values[order, z]
    return np.asarray(result)
