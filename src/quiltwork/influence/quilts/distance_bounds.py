"""Bounds on the influence at a distance: spectral (Lemma 2.3), contraction, the smallest of all.

Each takes an array of distances and returns two arrays, for a quilt node so far to the left and to
the right: its influence is at most that. They hold for every initial distribution and cost O(k³),
apart from the distances.
"""

from __future__ import annotations

import math

import numpy as np

from quiltwork.beliefs import ChainBox, CyclicChain, DatedChain, MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.errors import UnsupportedError
from quiltwork.influence.diameters import diameters
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.wording import argument

Sides = tuple[FloatArray, FloatArray]


def spectral(chain: MarkovChain, distances: IntArray) -> Sides:
    """Lemma 2.3: log((π_min + e^(−ga/2))/(π_min − e^(−ga/2))), twice on the left.

    g is the eigen-gap of P·P*. Where a < 2·log(1/π_min)/g nothing is claimed (+∞).

    Theorem: docs/theory/spectral-bound.md

    Raises:
        UnsupportedError: unless the chain is irreducible and aperiodic.
    """
    require_mixing(chain)
    return _from_gap(chain, chain.eigengap, distances)


def require_mixing(chain: MarkovChain) -> None:
    """Refuse chains that are not irreducible and aperiodic, in a sentence."""
    if not (chain.is_irreducible and chain.is_aperiodic):
        kind = "aperiodic" if chain.is_irreducible else "irreducible"
        raise UnsupportedError(
            f"The spectral bound holds for irreducible, aperiodic chains, and this one is not "
            f"{kind}; use {argument('method', 'exact')} or 'approx'."
        )


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


def contraction(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, distances: IntArray
) -> Sides:
    """Birkhoff: Δ(P^s)·tanh(Δ(P^s)/4)^(⌊a/s⌋−1), the same on both sides.

    The least over s = 1, 2, 4, … up to the first with a small Δ; for a box, Δ is that of bounds
    on its s-step probabilities.

    Theorem: docs/theory/contraction.md
    """
    side = np.full(len(distances), np.inf)
    for steps, diameter in diameters(belief):
        exponent = np.maximum(distances // steps - 1, 0)
        rate = min(1.0, math.tanh(diameter / 4) * (1 + 2.0**-40))
        bound = diameter * rate**exponent * (1 + exponent * 2.0**-50)
        side = np.minimum(side, np.where(distances >= steps, bound, np.inf))
    return side, side


def smallest(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, distances: IntArray
) -> Sides:
    """The least of the bounds above at each distance."""
    left, right = contraction(belief, distances)
    if isinstance(belief, MarkovChain):
        for bound in (_spectral_if_allowed, sharper_spectral):
            more_left, more_right = bound(belief, distances)
            left, right = np.minimum(left, more_left), np.minimum(right, more_right)
    return left, right


def restrict_to_recurrent(chain: MarkovChain) -> MarkovChain:
    """Return the chain on the states it can ever be in, where these are one closed class.

    The bounds hold for every start within them. Otherwise the chain itself.
    """
    start = np.asarray(chain.support(1))
    for found in chain.recurrent_classes:
        inside = np.zeros(chain.size, dtype=np.bool_)
        inside[found] = True
        if len(found) < chain.size and bool((start <= inside).all()):
            block = np.ix_(found, found)
            return MarkovChain(chain.transition[block], initial="any")
    return chain


def _spectral_if_allowed(chain: MarkovChain, distances: IntArray) -> Sides:
    if chain.is_irreducible and chain.is_aperiodic:
        return spectral(chain, distances)
    return _nothing(distances)


def _nothing(distances: IntArray) -> Sides:
    return np.full(len(distances), np.inf), np.full(len(distances), np.inf)
