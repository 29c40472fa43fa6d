"""Drawing from a finite distribution given in exact fractions, with the system's randomness.

Theorem: exact-sampling
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from quiltwork.noise.bits import WORD_BITS, word
from quiltwork.noise.enclosure import of_fraction
from quiltwork.noise.table import SamplingTable, Thresholds


def draw_index(probabilities: Sequence[Fraction]) -> int:
    """Return an index with exactly these probabilities, which add up to 1.

    >>> draw_index([Fraction(0), Fraction(1), Fraction(0)])
    1
    """
    sums = [min(total, Fraction(1)) for total in accumulate(probabilities)][:-1]
    inside = [j for j, total in enumerate(sums) if 0 < total < 1]
    if not inside:
        return next(j for j, probability in enumerate(probabilities) if probability > 0)
    edges = sorted({sums[j] for j in inside})
    thresholds = Thresholds(
        len(edges), lambda j, bits: of_fraction(edges[j], bits), edges.__getitem__
    )
    outcome = SamplingTable(thresholds, WORD_BITS).outcome(word(), word)
    below = edges[outcome - 1] if outcome else Fraction(0)
    return next(j for j, total in enumerate([*sums, Fraction(1)]) if total > below)
