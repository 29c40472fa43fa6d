"""The exponential mechanism with exact integer sampling.

P(i) ∝ e^(rate·u_i) is compared with random bits through integer enclosures, so the probabilities
are exact and nothing overflows. Cost: one enclosure per distinct utility.

Theorem: docs/theory/exact-sampling.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from quiltwork.errors import InvalidInputError
from quiltwork.exact import positive_fraction, to_fraction
from quiltwork.noise import enclosure
from quiltwork.noise.bits import WORD_BITS, word
from quiltwork.noise.enclosure import Enclosure
from quiltwork.noise.finite_law import Thresholds

_FIRST_WORDS = 2


def exponential_mechanism(utilities: Sequence[object], rate: object) -> int:
    """Choose an index with probability proportional to e^(rate·utility), exactly.

    With utilities of sensitivity Δ, rate = ε/(2Δ) makes the choice ε-private.

    Raises:
        InvalidInputError: if there are no utilities, or one is not finite.

    >>> exponential_mechanism([3, 1, 2], 1000)
    0
    """
    thresholds = choice_thresholds(utilities, rate)
    prefix, bits = 0, 0
    for _ in range(_FIRST_WORDS):
        prefix, bits = (prefix << WORD_BITS) | word(), bits + WORD_BITS
    while (outcome := thresholds.outcome(prefix, bits)) is None:
        prefix, bits = (prefix << WORD_BITS) | word(), bits + WORD_BITS
    return outcome


def choice_thresholds(utilities: Sequence[object], rate: object) -> Thresholds:
    """The cumulative probabilities of the choice, in the order of the utilities."""
    if len(utilities) == 0:
        raise InvalidInputError("The list of utilities is empty: pass at least one.")
    speed = positive_fraction(rate, "rate")
    exact = [to_fraction(utility, f"utility {i}") for i, utility in enumerate(utilities)]
    # weights relative to the best: no exponential overflows
    best = max(exact)
    gaps = [speed * (best - utility) for utility in exact]
    weights: dict[int, tuple[list[int], list[int]]] = {}

    def prefix_sums(bits: int) -> tuple[list[int], list[int]]:
        if bits not in weights:
            lows, highs = [0], [0]
            for gap in gaps:
                lo, hi = enclosure.exp_minus(gap, bits)
                lows.append(lows[-1] + lo)
                highs.append(highs[-1] + hi)
            weights[bits] = lows, highs
        return weights[bits]

    def enclose(j: int, bits: int) -> Enclosure:
        working = bits + len(gaps).bit_length() + 8
        lows, highs = prefix_sums(working)
        below, above = (
            (lows[j + 1], highs[j + 1]),
            (lows[-1] - lows[j + 1], highs[-1] - highs[j + 1]),
        )
        return (
            (below[0] << bits) // (below[0] + above[1]),
            -(-(below[1] << bits) // (below[1] + above[0])),
        )

    return Thresholds(len(gaps) - 1, enclose)


def expected_shortfall(scale: Fraction, states: int) -> float:
    """Bound the expected gap between the count of the chosen state and the largest: scale·ln k.

    With p the choice's distribution, scale·ln Σ e^(u/scale) = E[u] + scale·H(p), which is at least
    max u; and H(p) ≤ ln k.
    """
    return float(scale) * math.log(states)
