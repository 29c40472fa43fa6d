"""People who depend on each other: from the level asked for to the level of the noise.

Theorem: influence-curve
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any


def substitution_level(beliefs: Any, people: int, epsilon: Fraction) -> Fraction:
    """Return the largest dp_epsilon, for substituting one person, that keeps `beliefs` at ε.

    Under `Clusters` it is ε divided by the largest cluster; under independence it is ε.
    """
    from quiltwork.beliefs import Clusters
    from quiltwork.influence import influence_curve

    members = beliefs if isinstance(beliefs, Sequence) else [beliefs]
    length = None if all(isinstance(member, Clusters) for member in members) else people
    return Fraction(influence_curve(beliefs, length).dp_epsilon(epsilon))
