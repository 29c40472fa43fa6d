"""Testing declared monotonicity: random records that contradict it.

A declaration is a promise that pruning and shortcuts rely on. `refute` looks for a counterexample;
not finding one is no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from quiltwork.arguments import choice
from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import Constraint, SecretCounts, as_constraint

_MOST = 100_000  # trials, values and rows

Property: TypeAlias = Literal["eg", "generalization"]


@dataclass(frozen=True)
class Refutation:
    """Records that contradict a monotonicity.

    Attributes:
        satisfied: the sensitive values, as codes, of a set that satisfies the constraint.
        added: those of the records that are added (EG), or of another set that satisfies it too
            (generalization).
    """

    satisfied: tuple[int, ...]
    added: tuple[int, ...]

    @property
    def violating(self) -> tuple[int, ...]:
        """The union, which violates the constraint."""
        return self.satisfied + self.added


def refute(
    constraint: Constraint,
    which: Property = "eg",
    values: int = 3,
    largest: int = 8,
    trials: int = 2000,
    seed: int = 0,
) -> Refutation | None:
    """Look for records that contradict EG or generalization monotonicity; None if none was found.

    Sets of one to `largest` records with `values` sensitive values, small ones first. t-closeness
    must be bound to a table with as many values.

    Raises:
        InvalidInputError: if the property is unknown.

    >>> from quiltwork.tables.constraints import EntropyLDiversity
    >>> refute(EntropyLDiversity(2))
    Refutation(satisfied=(0, 1), added=(1,))
    """
    constraint = as_constraint(constraint)
    choice(which, get_args(Property), "The property")
    integer(values, "values", 1, _MOST)
    integer(largest, "largest", 1, _MOST)
    rng = np.random.default_rng(integer(seed, "seed", 0))
    for trial in range(integer(trials, "trials", 1, _MOST)):
        size = 1 + trial * largest // trials
        satisfied = _codes(rng, size, values)
        if not constraint.holds(SecretCounts.of(satisfied)):
            continue
        added = _codes(rng, int(rng.integers(1, size + 1)), values)
        if which == "generalization" and not constraint.holds(SecretCounts.of(added)):
            continue
        if not constraint.holds(SecretCounts.of(satisfied + added)):
            return Refutation(satisfied, _fewest(constraint, satisfied, added, which))
    return None


def _codes(rng: np.random.Generator, size: int, values: int) -> tuple[int, ...]:
    weights = rng.dirichlet(np.ones(values))
    return tuple(sorted(rng.choice(values, size, p=weights).tolist()))


def _fewest(
    constraint: Constraint, satisfied: tuple[int, ...], added: tuple[int, ...], which: Property
) -> tuple[int, ...]:
    """Leave out added records that the contradiction does not need."""
    if which == "generalization":
        return added
    for i in range(len(added) - 1, -1, -1):
        fewer = added[:i] + added[i + 1 :]
        if fewer and not constraint.holds(SecretCounts.of(satisfied + fewer)):
            added = fewer
    return added
