"""The second paper's examples and figures, computed: 2, 3, Example 2.2, Section 6.1, footnote 4.

Figures 4 and 5 are in `databases`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.counts.alpha_levels import parse_alpha
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.consumers.loss_functions import power
from quiltwork.counts.geometric_mechanism import GeometricMechanism
from quiltwork.counts.optimality.exact_matrix import FractionMatrix, compose, deterministic
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer


def figure_2() -> FractionMatrix:
    """Return the mechanism of Figure 2: G at n = 5, α = 1/2, remapped for its consumer.

    >>> [str(entry) for entry in figure_2()[0]]
    ['2/3', '0', '1/4', '1/24', '1/48', '1/48']
    """
    mechanism = GeometricMechanism(5, alpha=Fraction(1, 2))
    mapping = mechanism.remap(figure_2_consumer()).table.tolist()
    return compose(mechanism.matrix(exact=True).tolist(), deterministic(mapping))


def figure_2_consumer() -> Consumer:
    """Return the consumer of Figure 2: prior (1/4, 0, 1/4, 0, 1/4, 1/4), loss |i−r|^1.5."""
    quarter = Fraction(1, 4)
    return Consumer([quarter, 0, quarter, 0, quarter, quarter], power(Fraction(3, 2)))


@dataclass(frozen=True)
class TwoReadings:
    """An expected loss read at face value, and after a remap."""

    face_value: Fraction
    remapped: Fraction


def example_2_2(n: int, alpha: Number) -> TwoReadings:
    """Return the losses of Example 2.2 for odd n: prior ½ on 0 and on n, binary loss.

    At face value every unbounded answer but the count itself is wrong, those outside 0..n too.
    The remap reads answers from (n+1)/2 on as n, others as 0.

    >>> example_2_2(5, Fraction(1, 2))
    TwoReadings(face_value=Fraction(2, 3), remapped=Fraction(1, 12))
    """
    if integer(n, "n", 1) % 2 == 0:
        raise InvalidInputError(f"Example 2.2 is about odd n, not {n!r}.")
    level = parse_alpha(alpha)
    mechanism = GeometricMechanism(n, alpha=level)
    face = 1 - mechanism.probability(0, 0, unbounded=True)
    half = (n + 1) // 2
    at_least_half = sum((mechanism.probability(0, r) for r in range(half, n + 1)), Fraction(0))
    return TwoReadings(face, at_least_half)


def laplace_comparison(alpha: float) -> tuple[float, float]:
    """Return (geometric, Laplace): the least losses on counts {0, 1}, prior ½ each (Section 6.1).

    Both are remapped optimally. The Laplace consumer reads answers above ½ as 1 and errs if the
    noise exceeds ½; the ratio of the two losses has no bound as α falls.

    >>> laplace_comparison(0.25)
    (0.2, 0.25)
    """
    consumer = Consumer([0.5, 0.5])
    geometric = GeometricMechanism(1, alpha=alpha).remap(consumer).expected_loss
    epsilon = -math.log(alpha)
    return geometric, math.exp(-epsilon / 2) / 2
