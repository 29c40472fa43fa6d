"""Private counts of people, and what it takes to protect people who depend on each other.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.exact import unseen_integer

_NOTHING_SECRET = Fraction(1000)  # beliefs that leave nothing open: practically no noise


def read_count(count: object, n: int, ledger: object) -> int:
    """Return a private count as an integer in 0..n, never showing it.

    Where a ledger pays, one above n counts as n: an error would tell about it for free.
    """
    value = unseen_integer(count, "count")
    if value > n and ledger is None:
        raise InvalidInputError(f"count must lie in 0..n = 0..{n}; is n right?")
    return min(value, n)


def substitution_level(beliefs: Any, people: int, epsilon: Fraction) -> Fraction:
    """Return the largest dp_epsilon, for substituting one person, that keeps `beliefs` at ε.

    Under `Clusters` it is ε divided by the largest cluster; under independence it is ε. At ε = 0
    nothing is told, whatever anybody believes.
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
    from quiltwork.beliefs.digests import digest

    return digest(as_beliefs(beliefs))
