"""Privacy fitness scores (Definition 3.1): how far a set of records fulfils a constraint.

The score orders coalitions by attack power and chooses between search methods; no verdict
depends on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, to_fraction
from quiltwork.tables.constraints.constraint import Constraint, SecretCounts, agreeing
from quiltwork.tables.group import Group

VERIFICATION_ALPHA = 0.3
"""Table II: the weight of diversity when coalitions are ordered."""

ANONYMIZATION_ALPHA = 0.8
"""Table II: the weight of diversity when splits are chosen."""


def score(
    constraint: Constraint, records: SecretCounts, alpha: Number = VERIFICATION_ALPHA
) -> float:
    """Return (1−α)·F₁ + α·(mean of the other parts' F), below 1 if the constraint is violated.

    For k-anonymity and l-diversity this is equation (1) of the paper; after it, the paper's
    max(1−ε, F) must be a min.

    >>> from quiltwork.tables.constraints import KAnonymity, LDiversity
    >>> score(KAnonymity(2) & LDiversity(2), SecretCounts.of([0, 0, 0]), alpha=0.5)
    0.9999999999999999
    """
    weight = to_fraction(alpha, "alpha")
    if not 0 < weight < 1:
        raise InvalidInputError(f"alpha must lie between 0 and 1, not {alpha!r}.")
    first, *others = (part.fitness(records) for part in constraint.parts)
    if not others:
        return agreeing(first, constraint.holds(records))
    mean = (1 - float(weight)) * first + float(weight) * (sum(others) / len(others))
    return agreeing(mean, constraint.holds(records))


def provider_scores(
    group: Group, constraint: Constraint, alpha: Number = VERIFICATION_ALPHA
) -> NDArray[np.float64]:
    """Return the score of what each provider knows: its attack power."""
    return np.array([score(constraint, group.known([i]), alpha) for i in range(group.size)])
