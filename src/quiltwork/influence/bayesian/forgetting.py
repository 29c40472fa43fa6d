"""Hidden chains against adversaries who know rows: how fast hidden states are forgotten.

Known observed values put 0/1 diagonals between the hidden matrices. Those at the ends of a product
leave its cross-ratios unchanged; those in between do not, so the diameter of s steps is the largest
over all values that may be known in between, (k+1)^(s−1) products. It is finite if s steps reach
the same hidden states from everywhere, for any known values: for memory of s states with positive
probabilities. Long durations keep ages distinguishable for as long as a stay is known to last.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

import math

import numpy as np

from quiltwork.beliefs import HiddenChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.influence.ratios import product_margin
from quiltwork.influence.sweep import Sweepable
from quiltwork.influence.sweep.leakage import Sweep
from quiltwork.influence.sweep.step import ContractionSide
from quiltwork.influence.timeline import timeline_of

_MOST_PRODUCTS = 1 << 10
_MOST_NUMBERS = 1 << 22
_SMALLEST = 1e-25


def sweep_of_hidden(belief: HiddenChain, length: int) -> Sweepable:
    """Return a sweep of the observed values that holds for any rows known to an adversary.

    Raises:
        UnsupportedError: if no small number of steps forgets the hidden state.
    """
    diameters = tuple(known_diameters(belief))
    if not diameters:
        raise UnsupportedError(
            f"Bayesian DP is not proved under {belief.summary()}: an adversary who knows rows can "
            "keep its hidden states apart over all computed steps. Use a chain of order 1 or 2 "
            "with smoothing, or calibrate, which protects against adversaries who know no row."
        )
    shown = np.asarray(belief.shown)
    side = ContractionSide(diameters, belief.inner.size)
    return Sweep(timeline_of(belief.inner, length, shown), side, side, length)


def known_diameters(belief: HiddenChain) -> list[tuple[int, float]]:
    """Return (s, the largest Δ of s steps for any values known in between), as far as finite.

    Cost: O(n³·(k+1)^(s−1)).

    >>> two = [[0.9, 0.1, 0, 0], [0, 0, 0.3, 0.7], [0.8, 0.2, 0, 0], [0, 0, 0.4, 0.6]]
    >>> steps, diameter = known_diameters(HiddenChain(two, [0, 1, 0, 1]))[0]
    >>> steps, round(diameter, 3)
    (2, 3.45)
    """
    matrix = np.asarray(belief.inner.transition)
    # smaller entries could underflow in a product and look impossible
    if matrix[matrix > 0].min() < _SMALLEST:  # products could underflow
        return []
    shows = [np.asarray(belief.shown) == state for state in range(belief.size)]
    masked = [matrix, *(np.where(observed[:, None], matrix, 0.0) for observed in shows)]
    products, steps, diameters = [matrix], 1, []
    while True:
        largest = max(_diameter(observed, steps) for observed in products)
        if math.isfinite(largest):
            diameters.append((steps, largest))
        more = len(products) * len(masked)
        if more > _MOST_PRODUCTS or more * matrix.size > _MOST_NUMBERS:
            return diameters
        products, steps = [observed @ step for observed in products for step in masked], steps + 1


def _diameter(product: FloatArray, steps: int) -> float:
    """The largest cross-ratio of rows that can occur; +inf if they reach different columns."""
    rows = product[(product > 0).any(axis=1)]
    if not len(rows):
        return 0.0
    able = rows > 0
    if not (able == able[0]).all():
        return math.inf
    logs = np.log(rows[:, able[0]])
    apart = logs[:, None, :] - logs[None, :, :]
    largest = float((apart.max(axis=2) - apart.min(axis=2)).max())
    # logarithms and differences round relatively, products of matrices absolutely
    return largest * (1 + 2.0**-49) + 2 * float(product_margin(steps, len(product)))
