"""Search for a coalition that breaches one group: `find_breach`.

Each part of a constraint is searched alone. Where it `needs_coalitions`, every coalition of the
largest size is tried, in arrays, up to a limit. For constraints that are not EG monotonic, every
set between what the coalition leaves and the whole group counts (Definition 2.1 in full), as a
coalition may breach them by removing only some of its own records. Constraints with a search for
the worst histogram between two decide that directly; for others, and what stays in doubt, every set
is tried. What needs more than the limit is undecided, or refused.

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
from quiltwork.tables.verification.verdict import not_private_as_one_group

_SETS_EACH = 10
"""The most sub-boxes per coalition, on average, that are evaluated in arrays."""
LIMIT = 200_000
"""The number of checks within one group after which a verification gives up."""
_MOST_SHRUNK = 100
"""Larger coalitions are not shrunk to the members that are needed."""
AnyMethod: TypeAlias = Literal["exact", Method]


@dataclass(frozen=True)
class Finding:
    """The result of a verification in codes; `verdict_of` adds the labels.

    Attributes:
        coalition: positions of the providers that breach it; None if none was found.
        part: the part of the constraint that they breach.
        left: what remains of the group then.
        checks: the number of sets of records that were checked.
        settled: False if the search reached its limit; then nothing is known.
        outsiders: whether the group fails even for someone who is not a provider.
        group: its number, where several were verified; −1 if all of them are private.
        refused: the error, if the group could not be verified at all.
        cost: the checks of searches, weighted by their cost.
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
    """Search for a coalition that breaches one group.

    Exact methods search part after part: a conjunction is breached if and only if a part is.

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
            # Cheapest first: no coalitions, then coalitions, then sets between them and the whole.
            if not part.needs_coalitions(group):
                members = part.breach(group, m, checks.count)
            elif part.eg_monotonic:
                members = _try_coalitions(group, part, m, checks)
            else:
                members, between = _try_sets_between(group, part, m, checks)
        except LimitReached:
            # A later part may still be breached, which would decide.
            done, settled = done + checks.done - 1, False
            continue
        except UnsupportedError as error:  # another part may still be breached, which decides
            refused = refused or error
            continue
        done += checks.done
        if members is not None:
            return _finding(group, (part,), m, members, done, between)
    if refused is not None:
        raise refused
    return Finding(None, None, None, done, settled)


def _try_coalitions(
    group: Group, part: Constraint, m: int, checks: Checks
) -> tuple[int, ...] | None:
    """Try coalitions until one breaches."""
    for _, members in coalitions(group, m):
        # Before the work: a portion is evaluated as a whole.
        if checks.done + len(members) > checks.limit:
            checks.done += 1
            raise LimitReached
        checks.done += len(members)
        breaching = np.flatnonzero(part.violated(group, weights_left(group, members)))
        if len(breaching):
            return _listed(members[breaching[0]])
    return None


def _try_sets_between(
    group: Group, part: Constraint, m: int, checks: Checks
) -> tuple[tuple[int, ...] | None, Weights | None]:
    """Find a coalition and a violating set of what it leaves and more, as weights by kind."""
    tried, limit = 0, checks.limit
    for number, members in coalitions(group, m):
        # Outsiders first: a group that fails as it is needs no coalition.
        if not checks.done:
            checks.done = 1
            if not part.holds(group.left(())):
                return _listed(members[0]), group.total
        if number > limit:
            raise _too_many(part, number, 1, limit)
        remaining = weights_left(group, members)
        doubtful: list[int] = list(range(len(remaining)))
        corners = violations_of_group(group, part, remaining)
        if corners is not None:
            checks.done += corners.looked
            hits = np.flatnonzero(corners.violated)
            if len(hits):
                first = hits[0]
                return _listed(members[first]), corners.point[first]
            doubtful = np.flatnonzero(~corners.safe).tolist()
            if checks.done > _SETS_EACH * limit:
                raise _too_many(part, number, _SETS_EACH, limit)
        for i in doubtful:
            removable = [n for n in (group.total - remaining[i]).tolist() if n]
            sets = 2 ** len(removable) if part.corners_suffice else prod(n + 1 for n in removable)
            checks.done, tried = checks.done + sets, tried + sets
            if tried > limit:
                raise _too_many(part, number, sets, limit)
            violating = violating_set(group, part, remaining[i])
            if violating is not None:
                return _listed(members[i]), violating
    return None, None


def violating_set(group: Group, part: Constraint, kept: Weights) -> Weights | None:
    """Return weights between `kept` and the whole group that violate; None if there are none.

    If corners suffice, only sets with all or none of the removed records of each kind are tried.
    """
    removable = (group.total - kept).tolist()
    steps = [sorted({0, n}) if part.corners_suffice else range(n + 1) for n in removable]
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
        f"and the whole group must be checked. One group has {coalitions:,} coalitions{each}, "
        f"more than the limit of {limit:,}. Raise limit, lower m, or use a constraint that is EG "
        "monotonic, such as LDiversity."
    )


def group_is_private(group: Group, constraint: Constraint, m: int, limit: int = LIMIT) -> bool:
    """Return whether a group is proven to withstand every coalition of at most m providers.

    >>> from quiltwork.tables.constraints import KAnonymity
    >>> group_is_private(Group.from_counts([[2, 1], [1, 1]]), KAnonymity(2), m=1)
    True
    """
    finding = find_breach(group, constraint, m, limit=limit)
    return finding.coalition is None and finding.settled


def refuse_whole(group: Group, rows: int, constraint: Constraint, m: int) -> NoReturn:
    """Raise the error for a table that is not proven private even as one group."""
    if group_is_private(group, constraint, m):
        raise UnsupportedError(
            f"{constraint} has too many coalitions to try in every group that is cut. Lower m, or "
            "use k-anonymity and distinct l-diversity, which need no coalitions tried."
        )
    raise not_private_as_one_group(rows, m, constraint)


def _finding(
    group: Group,
    parts: tuple[Constraint, ...],
    m: int,
    coalition: tuple[int, ...] | None,
    checks: int,
    between: Weights | None = None,
) -> Finding:
    """Return the finding on a coalition, reduced to the members that are needed.

    At least one member is kept if any may collude. `between` are the violating weights, if they are
    more than what the coalition leaves.
    """
    if coalition is None:
        return Finding(None, None, None, checks)
    members = list(coalition)
    left = group.left(members) if between is None else group.histogram(between)
    part = next(part for part in parts if not part.holds(left))
    if between is None:
        # Greedy: one minimal coalition is named; others may exist.
        for member in members[::-1] if len(members) <= _MOST_SHRUNK else ():
            rest = [other for other in members if other != member]
            if rest and not part.holds(group.left(rest)):
                members = rest
        if not members and next(spaces(group, m)).level > 0:
            members = [int(np.argmax(group.weights.sum(axis=1)))] if group.held is None else [0]
        left = group.left(members)
    outsiders = not part.holds(group.left(()))
    return Finding(tuple(members), part, left, checks, outsiders=outsiders)
