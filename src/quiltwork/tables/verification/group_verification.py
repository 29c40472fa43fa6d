"""Which groups withstand every coalition, and the verdict on a table of them.

`groups_withstand` answers for many groups at once; cutting and verifying both use it.
`verify_counts` names the first breach as well. A constraint's bounds decide nearly every group, for
all coalitions at once (`Constraint.bound`); the others are searched one by one (`breach_search`).
A group that stays undecided counts as not private.
Cost: a few sorts of the entries, and O(coalitions · entries) for each group in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.codes.group import Group, Ints, SparseCounts, subset
from quiltwork.tables.constraints.coalition_bounds import BROKEN, OPEN, SAFE, Flags
from quiltwork.tables.constraints.constraint import Conjunction, Constraint
from quiltwork.tables.verification.breach_search import (
    LIMIT,
    AnyMethod,
    Finding,
    find_breach,
    group_is_private,
)
from quiltwork.tables.verification.coalitions import number_of_coalitions
from quiltwork.tables.verification.verdict import Verdict

MOST_COALITIONS = 5_000
"""Coalitions of one group that are worth trying while groups are made."""

Names: TypeAlias = tuple[CodedTable, Callable[[int], tuple[Any, ...]]]
"""The labels of providers and sensitive values, and what says the texts of a group."""


def groups_withstand(counts: SparseCounts, constraint: Constraint, m: int) -> Flags:
    """Tell which groups are proven to withstand every coalition of at most m providers.

    Part after part, the cheap ones first, each for the groups that are left.
    """
    private = np.ones(counts.groups, dtype=np.bool_)
    doubts: list[tuple[Ints, Constraint]] = []
    for part in sorted(constraint.parts, key=lambda part: not part.eg_monotonic):
        left = np.flatnonzero(private)
        if not len(left):
            return private
        status = part.bound(subset(counts, left), m)
        private[left[status == BROKEN]] = False
        doubts.append((left[status == OPEN], part))
    for groups, part in doubts:
        for group in groups[private[groups]].tolist():
            private[group] = _withstands(counts, group, part, m)
    return private


def _withstands(counts: SparseCounts, number: int, part: Constraint, m: int) -> bool:
    group = counts.cut(number)
    if part.needs_coalitions(group) and number_of_coalitions(group, m) > MOST_COALITIONS:
        return False
    try:
        return group_is_private(group, part, m)
    except UnsupportedError:  # too many sets to try
        return False


def verify_counts(
    names: Names,
    counts: SparseCounts,
    constraint: Constraint,
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> Verdict:
    """Verify counted groups, for callers who ask about one table often."""
    found = first_breach(counts, np.arange(counts.groups), constraint, m, method, limit)
    if found.refused is not None:
        raise found.refused
    return verdict_of(names, found, m, method, constraint)


def first_breach(
    counts: SparseCounts,
    groups: Ints,
    constraint: Constraint,
    m: int,
    method: AnyMethod,
    limit: int,
    left: int | None = None,
) -> Finding:
    """Ask groups in order; with `left`, checks for all of them, stop at the first not proven.

    One search may then take a third of what is left, less if many groups wait, and always its
    share of the limit. What is tried counts by what it costs. The coalition is of providers' codes.
    """
    some = subset(counts, groups)
    statuses = [
        part.bound(some, m) if method == "exact" else np.zeros(some.groups, dtype=np.int8)
        for part in constraint.parts
    ]
    checks, cost = int(sum((status != 0).sum() for status in statuses)), 0
    first = Finding(None, None, None, checks)
    doubtful = np.any([status != SAFE for status in statuses], axis=0)
    waiting = int(doubtful.sum())
    for at in np.flatnonzero(doubtful).tolist():
        g, group = int(groups[at]), some.cut(at)
        most, weight = limit, 1
        if left is not None:
            weight = _weight(group, constraint)
            share = (left - cost) // (3 + waiting // 3)
            most = max(max(share, limit // counts.groups // 5) // weight, 1)
            waiting -= 1
        unsafe = [p for p, s in zip(constraint.parts, statuses, strict=True) if s[at] != SAFE]
        try:
            found = find_breach(group, Conjunction(tuple(unsafe)), m, method, most)
        except UnsupportedError as error:  # a breach of another group is an answer all the same
            if first.refused is None:
                first = replace(first, settled=False, group=g, refused=error)
            if left is None:
                continue
            cost += weight * most if number_of_coalitions(group, m) <= most else 0
            return replace(first, cost=cost)
        # Naming the coalition of a group that is known to be breached is no further check.
        checks -= any(status[at] == BROKEN for status in statuses)
        checks, cost = checks + found.checks, cost + weight * found.checks
        if found.coalition is not None or not found.settled:
            who = None
            if found.coalition is not None:
                who = tuple(group.providers[list(found.coalition)].tolist())
            return replace(found, coalition=who, checks=checks, group=g, cost=cost)
    return replace(first, checks=checks, cost=cost)


def _weight(group: Group, constraint: Constraint) -> int:
    """Return what trying one coalition costs, in steps of `covered_by_few`."""
    if not any(part.needs_coalitions(group) for part in constraint.parts):
        return 1
    return 1 + len(group.values) // 42 + group.size // 170


def verdict_of(
    names: Names, found: Finding, m: int, method: AnyMethod, constraint: Constraint
) -> Verdict:
    """Put labels on what was found."""
    if found.group < 0:
        return Verdict(True, (), (), found.checks, m, method, str(constraint))
    encoded, texts_of = names
    open_ = Verdict(False, (), texts_of(found.group), found.checks, m, method, str(constraint))
    if found.coalition is None or found.left is None:
        return replace(open_, settled=False)
    labels = encoded.classes
    return replace(
        open_,
        coalition=tuple(encoded.providers[code] for code in found.coalition),
        broken=str(found.part),
        left={labels[v]: n for v, n in found.left.as_dict().items()},
        left_size=found.left.size,
        outsiders=found.outsiders,
    )
