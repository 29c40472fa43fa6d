"""Bounds on influence by distance: spectral (Lemma 2.3), contraction, the smallest of all.

Each takes an array of distances and returns two arrays, the influence of a quilt node that far to
the left and to the right. They hold for every initial distribution and cost O(k³), apart from the
distances.
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

BothSides = tuple[FloatArray, FloatArray]


def spectral(chain: MarkovChain, distances: IntArray) -> BothSides:
    """Lemma 2.3: log((π_min + e^(−ga/2))/(π_min − e^(−ga/2))), twice on the left.

    g is the eigen-gap of P·P*. Where a < 2·log(1/π_min)/g nothing is claimed (+∞).

    Theorem: docs/theory/spectral-bound.md

    Raises:
        UnsupportedError: unless the chain is irreducible and aperiodic.
    """
    require_mixing(chain)
    return _from_gap(chain, chain.eigengap, distances)


def require_mixing(chain: MarkovChain) -> None:
    """Refuse chains that are not irreducible and aperiodic."""
    if not (chain.is_irreducible and chain.is_aperiodic):
        kind = "aperiodic" if chain.is_irreducible else "irreducible"
        raise UnsupportedError(
            f"The spectral bound needs an irreducible, aperiodic chain, and this one is not "
            f"{kind}; use {argument('method', 'exact')} or 'approx'."
        )


def sharper_spectral(chain: MarkovChain, distances: IntArray) -> BothSides:
    """The spectral bound with g = −2·log σ₂, which is larger and holds for every
    irreducible chain.
    """
    if not chain.is_irreducible or chain.second_singular_value >= 1:
        return _nothing(distances)
    gap = -2 * math.log(chain.second_singular_value)
    # a smaller gap gives a larger bound
    return _from_gap(chain, gap * (1 - 2.0**-48), distances)


def _from_gap(chain: MarkovChain, gap: float, distances: IntArray) -> BothSides:
    """The spectral bound for a given gap."""
    if chain.size == 1:
        return np.zeros(len(distances)), np.zeros(len(distances))
    least = float(chain.stationary.min()) * (1 - relative_error(chain.size))
    # exp of a long product rounds relatively to its argument: 2^-40 covers all distances in use
    decay = np.exp(-gap * distances / 2) * (1 + 2.0**-40)
    converged = decay < least
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log1p(2 * decay / (least - decay)) * (1 + 2.0**-40)
    right = np.where(converged, bound, np.inf)
    return 2 * right, right


def contraction(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, distances: IntArray
) -> BothSides:
    """Birkhoff's bound Δ(P^s)·tanh(Δ(P^s)/4)^(⌊a/s⌋−1), the same on both sides.

    The least over s = 1, 2, 4, … up to the first with a small Δ; for a box, Δ is that of bounds on
    its s-step probabilities.

    Theorem: docs/theory/contraction.md
    """
    least = np.full(len(distances), np.inf)
    for steps, diameter in diameters(belief):
        exponent = np.maximum(distances // steps - 1, 0)
        rate = min(1.0, math.tanh(diameter / 4) * (1 + 2.0**-40))
        by_span = diameter * rate**exponent * (1 + exponent * 2.0**-50)
        least = np.minimum(least, np.where(distances >= steps, by_span, np.inf))
    return least, least


def smallest(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, distances: IntArray
) -> BothSides:
    """The least of the bounds above at each distance."""
    left, right = contraction(belief, distances)
    if isinstance(belief, MarkovChain):
        for bound in (_spectral_if_allowed, sharper_spectral):
            more_left, more_right = bound(belief, distances)
            left, right = np.minimum(left, more_left), np.minimum(right, more_right)
    return left, right


def restrict_to_recurrent(chain: MarkovChain) -> MarkovChain:
    """Return the chain on the recurrent class that contains its start, if there is one.

    The bounds hold for every start within the class. Otherwise the chain itself is returned.
    """
    start = np.asarray(chain.support(1))
    for members in chain.recurrent_classes:
        recurrent = np.zeros(chain.size, dtype=np.bool_)
        recurrent[members] = True
        if len(members) < chain.size and bool((start <= recurrent).all()):
            block = np.ix_(members, members)
            return MarkovChain(chain.transition[block], initial="any")
    return chain


def _spectral_if_allowed(chain: MarkovChain, distances: IntArray) -> BothSides:
    """The spectral bound, or no bound if its conditions fail."""
    if chain.is_irreducible and chain.is_aperiodic:
        return spectral(chain, distances)
    return _nothing(distances)


def _nothing(distances: IntArray) -> BothSides:
    """No bound: +∞ at every distance."""
    return np.full(len(distances), np.inf), np.full(len(distances), np.inf)
