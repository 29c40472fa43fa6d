"""Is one group m-private, and who breaches it if not?

Each part of a constraint is asked alone. k-anonymity and distinct l-diversity need no trying where
each record is known to one provider and has one value (`searches`). Otherwise every coalition of
the largest size is tried, in arrays, up to a limit. For constraints that are not EG monotonic every
set between what it leaves and the whole group counts (Definition 2.1 in full), as a coalition may
breach them by taking away only some of its own records: entropy and recursive diversity and
t-closeness are decided by `corners`; any other, and what stays in doubt, is tried on every set.
What takes more than the limit is undecided, or refused.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb, prod
from typing import Literal, NoReturn, TypeAlias

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity, SecretCounts
from quiltwork.tables.group import Group, Weights
from quiltwork.tables.verification.corners import DECIDED, Flags, violations_of_group
from quiltwork.tables.verification.searches import (
    Method,
    SearchOutcome,
    plain_breach,
    search,
    spaces,
)
from quiltwork.tables.verification.verdict import never_private

_PORTION = 256
_SETS_EACH = 10
"""Sets of each coalition that are looked at in arrays, on average, at most."""
LIMIT = 200_000
"""Checks within one group after which an exact verification gives up."""
_MOST_SHRUNK = 100
"""Members of a coalition that are tried one by one for whether they are needed."""
AnyMethod: TypeAlias = Literal["exact", Method]


def needs_trying(group: Group, part: Constraint) -> bool:
    """Tell whether coalitions have to be tried, one by one."""
    if group.contributors is not None or group.held is not None:
        return True
    return not isinstance(part, KAnonymity) and not (
        isinstance(part, LDiversity) and group.kinds is None
    )


def breach_tried(group: Group, part: Constraint, m: int, limit: int) -> SearchOutcome:
    """Try coalitions until one breaches."""
    if not part.eg_monotonic:
        return breach_between(group, part, m, limit)
    checks = 0
    for _, members in _coalitions(group, m):
        if checks + len(members) > limit:
            return SearchOutcome(None, checks, settled=False)
        checks += len(members)
        hit = np.flatnonzero(_violating(group, part, _kept(group, members)))
        if len(hit):
            return SearchOutcome(_listed(members[hit[0]]), checks)
    return SearchOutcome(None, checks)


def _violating(group: Group, part: Constraint, kept: Weights) -> Flags:
    """Tell which rows, weights by kind, violate an EG-monotonic constraint."""
    if isinstance(part, KAnonymity):
        return np.asarray(kept.sum(axis=1) < part.k)
    if isinstance(part, LDiversity):
        values = kept if group.kinds is None else kept @ group.kinds
        return np.asarray(np.count_nonzero(values, axis=1) < part.l)
    return np.array([not part.holds(group.histogram(row)) for row in kept])


def breach_between(group: Group, part: Constraint, m: int, limit: int) -> SearchOutcome:
    """Look for a coalition and a set in between that violates."""
    checks = tried = 0
    for number, members in _coalitions(group, m):
        if not checks:
            checks = 1
            if not part.holds(group.left(())):
                return SearchOutcome(_listed(members[0]), checks, between=group.total)
        if number > limit:
            raise _too_many(part, number, 1, limit)
        kept = _kept(group, members)
        doubtful: list[int] = list(range(len(kept)))
        if isinstance(part, DECIDED):
            found = violations_of_group(group, part, kept)
            checks += found.looked
            hit = np.flatnonzero(found.violated)
            if len(hit):
                first = hit[0]
                return SearchOutcome(_listed(members[first]), checks, between=found.point[first])
            doubtful = np.flatnonzero(~found.safe).tolist()
            if checks > _SETS_EACH * limit:
                raise _too_many(part, number, _SETS_EACH, limit)
        for i in doubtful:
            may_go = [n for n in (group.total - kept[i]).tolist() if n]
            sets = 2 ** len(may_go) if part.corners_suffice else prod(n + 1 for n in may_go)
            checks, tried = checks + sets, tried + sets
            if tried > limit:
                raise _too_many(part, number, sets, limit)
            violating = violating_set(group, part, kept[i])
            if violating is not None:
                return SearchOutcome(_listed(members[i]), checks, between=violating)
    return SearchOutcome(None, checks)


def violating_set(group: Group, part: Constraint, kept: Weights) -> Weights | None:
    """Return weights between `kept` and the whole group that violate; None if there are none.

    Where corners suffice, those with all or none of the records of each kind.
    """
    known = (group.total - kept).tolist()
    steps = [sorted({0, n}) if part.corners_suffice else range(n + 1) for n in known]
    for added in product(*steps):
        candidate = kept + np.array(added, dtype=np.int64)
        if not part.holds(group.histogram(candidate)):
            return candidate
    return None


def _coalitions(group: Group, m: int) -> Iterator[tuple[int, Flags]]:
    """Yield how many coalitions there are, and some of them as rows: who is in it.

    Those who know most come first.
    """
    if group.held is None:
        power = (-group.weights.sum(axis=1)).tolist()
    else:
        power = _kept(group, np.eye(group.size, dtype=np.bool_)).sum(axis=1).tolist()
    for space in spaces(group, m):
        teams = combinations(sorted(space.candidates, key=power.__getitem__), space.level)
        number = comb(len(space.candidates), space.level)
        while chosen := list(islice(teams, _PORTION)):
            members = np.zeros((len(chosen), group.size), dtype=np.bool_)
            members[np.arange(len(chosen))[:, None], np.array(chosen, dtype=np.int64)] = True
            yield number, members


def _kept(group: Group, members: Flags) -> Weights:
    """Return, for each coalition, the weights of those whom nobody in it knows."""
    known = members if group.held is None else (members @ group.held.T)
    taken = known.astype(np.float64) @ group.weights.astype(np.float64)  # exact, and many times
    kept: Weights = group.total - taken.astype(np.int64)  # faster than a product of integers
    return kept


def _listed(members: Flags) -> tuple[int, ...]:
    return tuple(np.flatnonzero(members).tolist())


def _too_many(part: Constraint, coalitions: int, sets: int, limit: int) -> UnsupportedError:
    each = f" with up to {sets:,} sets each" if sets > 1 else ""
    return UnsupportedError(
        f"{part} can fail when records are added, so every set between what a coalition leaves "
        f"and the whole group counts: one group has {coalitions:,} coalitions{each}, above the "
        f"limit of {limit:,}. Raise limit, lower m, or take a constraint that is EG monotonic, "
        "such as LDiversity."
    )


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
    """Look for a breach of one group.

    Exactly, part after part: a conjunction is breached if and only if one of them is.
    """
    if method != "exact":
        outcome = search(group, constraint, m, method, limit)
        return _found(group, constraint.parts, m, outcome, outcome.checks)
    checks, settled = 0, True
    refused: UnsupportedError | None = None
    for part in constraint.parts:
        tried = breach_tried if needs_trying(group, part) else plain_breach
        try:
            outcome = tried(group, part, m, limit)
        except UnsupportedError as error:  # a breach of another part is an answer all the same
            refused = refused or error
            continue
        checks += outcome.checks
        settled = settled and outcome.settled
        if outcome.coalition is not None:
            return _found(group, (part,), m, outcome, checks)
    if refused is not None:
        raise refused
    return GroupOutcome(None, checks, settled)


def group_is_private(group: Group, constraint: Constraint, m: int, limit: int = LIMIT) -> bool:
    """Tell whether a group is proven to withstand every coalition of at most m providers.

    >>> from quiltwork.tables.constraints import KAnonymity
    >>> group_is_private(Group.from_counts([[2, 1], [1, 1]]), KAnonymity(2), m=1)
    True
    """
    found = group_breach(group, constraint, m, limit=limit)
    return found.breach is None and found.settled


def refuse_whole(group: Group, rows: int, constraint: Constraint, m: int) -> NoReturn:
    """Say why a table is not private as one group, or why that is not known."""
    if group_is_private(group, constraint, m):
        raise UnsupportedError(
            f"{constraint} has too many coalitions to try in every group that is cut; lower m, or "
            "take k-anonymity and distinct l-diversity, which need no trying."
        )
    raise never_private(rows, m, constraint)


def _found(
    group: Group, parts: tuple[Constraint, ...], m: int, outcome: SearchOutcome, checks: int
) -> GroupOutcome:
    """Say what a coalition breaches, with as few members as still do; one if any may collude."""
    if outcome.coalition is None:
        return GroupOutcome(None, checks, outcome.settled)
    members, between = list(outcome.coalition), outcome.between
    left = group.left(members) if between is None else group.histogram(between)
    part = next(part for part in parts if not part.holds(left))
    if between is None:
        for member in members[::-1] if len(members) <= _MOST_SHRUNK else ():
            rest = [other for other in members if other != member]
            if rest and not part.holds(group.left(rest)):
                members = rest
        if not members and next(spaces(group, m)).level > 0:
            members = [int(np.argmax(group.weights.sum(axis=1)))] if group.held is None else [0]
        left = group.left(members)
    outsiders = not part.holds(group.left(()))
    return GroupOutcome(Breach(tuple(members), part, left, outsiders), checks)
