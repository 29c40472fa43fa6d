"""Is one group m-private, and who breaches it if not?

Each part of a constraint is searched alone: EG-monotonic ones by branch and bound over coalitions,
others over every set between what a coalition leaves and the whole group.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.constraints.secret_counts import SecretCounts
from quiltwork.tables.group import Group, Weights
from quiltwork.tables.verification.branching import breach
from quiltwork.tables.verification.every_set import breach_between
from quiltwork.tables.verification.lattice import spaces
from quiltwork.tables.verification.search import Method, search

LIMIT = 200_000
"""Checks within one group after which an exact verification gives up."""

_MOST_SHRUNK = 100
"""Members of a coalition that are tried one by one for whether they are needed."""

AnyMethod: TypeAlias = Literal["exact", Method]


@dataclass(frozen=True)
class Breach:
    """A breached group: who, which part of the constraint, and what is left."""

    coalition: tuple[int, ...]
    part: Constraint
    left: SecretCounts
    outsiders: bool


@dataclass(frozen=True)
class GroupOutcome:
    """What was found in one group: a breach, or none, or an end without an answer."""

    breach: Breach | None
    checks: int
    settled: bool = True


def group_breach(
    group: Group,
    constraint: Constraint,
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> GroupOutcome:
    """Look for a breach of one group."""
    if method == "exact":
        return exact_breach(group, constraint.parts, m, limit)
    return _searched(group, constraint, m, method, limit)


def group_is_private(group: Group, constraint: Constraint, m: int, limit: int = LIMIT) -> bool:
    """Tell whether a group is proven to withstand every coalition of at most m providers.

    >>> from quiltwork.tables.constraints import KAnonymity
    >>> group_is_private(Group.from_counts([[2, 1], [1, 1]]), KAnonymity(2), m=1)
    True
    """
    found = group_breach(group, constraint, m, limit=limit)
    return found.breach is None and found.settled


def exact_breach(group: Group, parts: tuple[Constraint, ...], m: int, limit: int) -> GroupOutcome:
    """Check part after part: a conjunction is breached if and only if one of them is."""
    checks, settled = 0, True
    refused: UnsupportedError | None = None
    for part in parts:
        try:
            if part.eg_monotonic:
                outcome, between = breach(group, part, m, limit), None
            else:
                outcome, between = breach_between(group, part, m, limit)
        except UnsupportedError as error:  # a breach of another part is an answer all the same
            refused = refused or error
            continue
        checks += outcome.checks
        settled = settled and outcome.settled
        if outcome.coalition is not None:
            return GroupOutcome(_shrunk(group, part, m, outcome.coalition, between), checks)
    if refused is not None:
        raise refused
    return GroupOutcome(None, checks, settled)


def _searched(
    group: Group, constraint: Constraint, m: int, method: Method, limit: int
) -> GroupOutcome:
    outcome = search(group, constraint, m, method, limit)
    if outcome.coalition is None:
        return GroupOutcome(None, outcome.checks, outcome.settled)
    left = group.left(outcome.coalition)
    part = next(part for part in constraint.parts if not part.holds(left))
    return GroupOutcome(_shrunk(group, part, m, outcome.coalition, None), outcome.checks)


def _shrunk(
    group: Group, part: Constraint, m: int, coalition: tuple[int, ...], between: Weights | None
) -> Breach:
    """Leave out members without whom the rest still breach; one is named if any may collude."""
    outsiders = not part.holds(group.left(()))
    if between is not None:
        return Breach(coalition, part, group.histogram(between), outsiders)
    members = list(coalition)
    if len(members) <= _MOST_SHRUNK:
        for member in coalition[::-1]:
            rest = [other for other in members if other != member]
            if rest and not part.holds(group.left(rest)):
                members = rest
    if not members and next(spaces(group, m)).level > 0:
        members = [int(np.argmax(group.weights.sum(axis=1)))] if group.held is None else [0]
    return Breach(tuple(members), part, group.left(members), outsiders)
