"""People who depend on each other: from the level asked for to the level of the noise.

Theorem: influence-curve
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from quiltwork.errors import InvalidInputError

_NOTHING_SECRET = Fraction(1000)  # beliefs that leave nothing open: practically no noise


def substitution_level(beliefs: Any, people: int, epsilon: Fraction) -> Fraction:
    """Return the largest dp_epsilon, for substituting one person, that keeps `beliefs` at ε.

    Under `Clusters` it is ε divided by the largest cluster; under independence it is ε. At ε = 0
    nothing is told, whatever anybody believes.

    Raises:
        InvalidInputError: if the beliefs are about another number of people.
    """
    from quiltwork.influence import influence_curve

    own = number_of_people(beliefs)
    if own not in (None, people):
        raise InvalidInputError(f"The belief is about {own} people, the count about {people}.")
    if epsilon == 0:
        return Fraction(0)
    level = influence_curve(beliefs, people).dp_epsilon(epsilon)
    return _NOTHING_SECRET if math.isinf(level) else Fraction(level)


def number_of_people(beliefs: Any) -> int | None:
    """Return how many people clusters and networks are about; None for chains of any length."""
    from quiltwork.beliefs import as_beliefs

    lengths = [belief.length for belief in as_beliefs(beliefs)]
    return next((length for length in lengths if length is not None), None)


def belief_digest(beliefs: Any) -> str:
    """Return the SHA-256 of the beliefs' JSON, as releases record it."""
    from quiltwork.beliefs import as_beliefs
    from quiltwork.series.releases.document import digest

    return digest(as_beliefs(beliefs))
