"""Is one group m-private, and who breaches it if not? `find_breach`.

Each part of a constraint is asked alone. Where it `needs_coalitions`, every coalition of the
largest size is tried, in arrays, up to a limit. For constraints that are not EG monotonic every set
between what it leaves and the whole group counts (Definition 2.1 in full), as a coalition may
breach them by taking away only some of its own records: those that can tell their worst histogram
between two decide it so; any other, and what stays in doubt, is tried on every set. What takes more
than the limit is undecided, or refused.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal, NoReturn, TypeAlias

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.tables.codes.group import Group, Weights
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.constraints.corners import violations_of_group
from quiltwork.tables.verification.coalitions import (
    Checks,
    Flags,
    LimitReached,
    coalitions,
    spaces,
    weights_left,
)
from quiltwork.tables.verification.paper_searches import Method, search
from quiltwork.tables.verification.verdict import never_private

_SETS_EACH = 10
"""Sets of each coalition that are looked at in arrays, on average, at most."""
LIMIT = 200_000
"""Checks within one group after which an exact verification gives up."""
_MOST_SHRUNK = 100
"""Members of a coalition that are tried one by one for whether they are needed."""
AnyMethod: TypeAlias = Literal["exact", Method]


@dataclass(frozen=True)
class Finding:
    """What a verification found; `verdict_of` puts labels on it.

    Attributes:
        coalition: positions of the providers that breach it; None if none was found.
        part: the part of the constraint that they breach.
        left: what is left of the group then.
        checks: how many sets of records were checked.
        settled: False if the search hit its limit: then nothing is known.
        outsiders: whether the group fails already for someone who is no provider.
        group: its number, where several were asked; −1 where all of them are private.
        refused: why nothing is known of it, if that is so.
        cost: the checks of searches by what they cost.
    """

    coalition: tuple[int, ...] | None
    part: Constraint | None
    left: SecretCounts | None
    checks: int
    settled: bool = True
    outsiders: bool = False
    group: int = -1
    refused: UnsupportedError | None = None
    cost: int = 0


def find_breach(
    group: Group,
    constraint: Constraint,
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> Finding:
    """Look for a breach of one group.

    Exactly, part after part: a conjunction is breached if and only if one of them is.

    Raises:
        UnsupportedError: if no part is breached, and one has too many sets to try.
    """
    if method != "exact":
        checks = Checks(group, constraint, limit)
        try:
            members = search(group, constraint, m, method, checks)
        except LimitReached:
            return Finding(None, None, None, checks.done - 1, settled=False)
        return _finding(group, constraint.parts, m, members, checks.done)
    done, settled = 0, True
    refused: UnsupportedError | None = None
    for part in constraint.parts:
        checks, between = Checks(group, part, limit), None
        try:
            if not part.needs_coalitions(group):
                members = part.breach(group, m, checks.count)
            elif part.eg_monotonic:
                members = _tried(group, part, m, checks)
            else:
                members, between = _tried_between(group, part, m, checks)
        except LimitReached:
            done, settled = done + checks.done - 1, False
            continue
        except UnsupportedError as error:  # a breach of another part is an answer all the same
            refused = refused or error
            continue
        done += checks.done
        if members is not None:
            return _finding(group, (part,), m, members, done, between)
    if refused is not None:
        raise refused
    return Finding(None, None, None, done, settled)


def _tried(group: Group, part: Constraint, m: int, checks: Checks) -> tuple[int, ...] | None:
    """Try coalitions until one breaches."""
    for _, members in coalitions(group, m):
        if checks.done + len(members) > checks.limit:
            checks.done += 1
            raise LimitReached
        checks.done += len(members)
        hit = np.flatnonzero(part.violated(group, weights_left(group, members)))
        if len(hit):
            return _listed(members[hit[0]])
    return None


def _tried_between(
    group: Group, part: Constraint, m: int, checks: Checks
) -> tuple[tuple[int, ...] | None, Weights | None]:
    """Look for a coalition and a set in between that violates, as weights by kind."""
    tried, limit = 0, checks.limit
    for number, members in coalitions(group, m):
        if not checks.done:
            checks.done = 1
            if not part.holds(group.left(())):
                return _listed(members[0]), group.total
        if number > limit:
            raise _too_many(part, number, 1, limit)
        kept = weights_left(group, members)
        doubtful: list[int] = list(range(len(kept)))
        found = violations_of_group(group, part, kept)
        if found is not None:
            checks.done += found.looked
            hit = np.flatnonzero(found.violated)
            if len(hit):
                first = hit[0]
                return _listed(members[first]), found.point[first]
            doubtful = np.flatnonzero(~found.safe).tolist()
            if checks.done > _SETS_EACH * limit:
                raise _too_many(part, number, _SETS_EACH, limit)
        for i in doubtful:
            may_go = [n for n in (group.total - kept[i]).tolist() if n]
            sets = 2 ** len(may_go) if part.corners_suffice else prod(n + 1 for n in may_go)
            checks.done, tried = checks.done + sets, tried + sets
            if tried > limit:
                raise _too_many(part, number, sets, limit)
            violating = violating_set(group, part, kept[i])
            if violating is not None:
                return _listed(members[i]), violating
    return None, None


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


def group_is_private(group: Group, constraint: Constraint, m: int, limit: int = LIMIT) -> bool:
    """Tell whether a group is proven to withstand every coalition of at most m providers.

    >>> from quiltwork.tables.constraints import KAnonymity
    >>> group_is_private(Group.from_counts([[2, 1], [1, 1]]), KAnonymity(2), m=1)
    True
    """
    found = find_breach(group, constraint, m, limit=limit)
    return found.coalition is None and found.settled


def refuse_whole(group: Group, rows: int, constraint: Constraint, m: int) -> NoReturn:
    """Say why a table is not private as one group, or why that is not known."""
    if group_is_private(group, constraint, m):
        raise UnsupportedError(
            f"{constraint} has too many coalitions to try in every group that is cut; lower m, or "
            "take k-anonymity and distinct l-diversity, which need no trying."
        )
    raise never_private(rows, m, constraint)


def _finding(
    group: Group,
    parts: tuple[Constraint, ...],
    m: int,
    coalition: tuple[int, ...] | None,
    checks: int,
    between: Weights | None = None,
) -> Finding:
    """Say what a coalition breaches, with as few members as still do; one if any may collude.

    `between` are the weights that violate, if they are more than what the coalition leaves.
    """
    if coalition is None:
        return Finding(None, None, None, checks)
    members = list(coalition)
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
    return Finding(tuple(members), part, left, checks, outsiders=outsiders)
