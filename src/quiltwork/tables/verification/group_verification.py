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
"""Above so many coalitions, a group counts as undecided while groups are being made."""

Names: TypeAlias = tuple[CodedTable, Callable[[int], tuple[Any, ...]]]
"""The coded table with its labels, and a function that returns a group's published texts."""


def groups_withstand(counts: SparseCounts, constraint: Constraint, m: int) -> Flags:
    """Return which groups are proven to withstand every coalition of at most m providers.

    Parts are evaluated one after the other, cheap ones first, each for the groups that are left.
    """
    private = np.ones(counts.groups, dtype=np.bool_)
    doubts: list[tuple[Ints, Constraint]] = []
    # EG-monotonic parts have cheap bounds; they exclude groups before costly parts see them.
    for part in sorted(constraint.parts, key=lambda part: not part.eg_monotonic):
        remaining = np.flatnonzero(private)
        if not len(remaining):
            return private
        status = part.bound(subset(counts, remaining), m)
        private[remaining[status == BROKEN]] = False
        doubts.append((remaining[status == OPEN], part))
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
    """Verify counted groups; for callers that verify one table repeatedly."""
    finding = first_breach(counts, np.arange(counts.groups), constraint, m, method, limit)
    if finding.refused is not None:
        raise finding.refused
    return verdict_of(names, finding, m, method, constraint)


def first_breach(
    counts: SparseCounts,
    groups: Ints,
    constraint: Constraint,
    m: int,
    method: AnyMethod,
    limit: int,
    left: int | None = None,
) -> Finding:
    """Verify groups in order, and return the first breach. The coalition is in codes of providers.

    With `left`, the checks available for all groups, it stops at the first group not proven. One
    search may then take a third of what is left, less if many groups wait, and always its share of
    the limit; checks count by their cost.
    """
    chosen = subset(counts, groups)
    statuses = [
        part.bound(chosen, m) if method == "exact" else np.zeros(chosen.groups, dtype=np.int8)
        for part in constraint.parts
    ]
    checks, cost = int(sum((status != 0).sum() for status in statuses)), 0
    no_breach = Finding(None, None, None, checks)
    doubtful = np.any([status != SAFE for status in statuses], axis=0)
    waiting = int(doubtful.sum())
    for at in np.flatnonzero(doubtful).tolist():
        g, group = int(groups[at]), chosen.cut(at)
        allowed, weight = limit, 1
        if left is not None:
            weight = _weight(group, constraint)
            share = (left - cost) // (3 + waiting // 3)
            allowed = max(max(share, limit // counts.groups // 5) // weight, 1)
            waiting -= 1
        unproven = [p for p, s in zip(constraint.parts, statuses, strict=True) if s[at] != SAFE]
        try:
            finding = find_breach(group, Conjunction(tuple(unproven)), m, method, allowed)
        except UnsupportedError as error:  # another group may still be breached, which decides
            if no_breach.refused is None:
                no_breach = replace(no_breach, settled=False, group=g, refused=error)
            if left is None:
                continue
            cost += weight * allowed if number_of_coalitions(group, m) <= allowed else 0
            return replace(no_breach, cost=cost)
        # Naming the coalition of a group that is known to be breached is no further check.
        checks -= any(status[at] == BROKEN for status in statuses)
        checks, cost = checks + finding.checks, cost + weight * finding.checks
        if finding.coalition is not None or not finding.settled:
            providers = None
            if finding.coalition is not None:
                providers = tuple(group.providers[list(finding.coalition)].tolist())
            return replace(finding, coalition=providers, checks=checks, group=g, cost=cost)
    return replace(no_breach, checks=checks, cost=cost)


def _weight(group: Group, constraint: Constraint) -> int:
    """Return the cost of trying one coalition, in steps of `covered_by_few`."""
    if not any(part.needs_coalitions(group) for part in constraint.parts):
        return 1
    # Linear in the values and providers of the group, as the arrays for one coalition are.
    return 1 + len(group.values) // 42 + group.size // 170


def verdict_of(
    names: Names, finding: Finding, m: int, method: AnyMethod, constraint: Constraint
) -> Verdict:
    """Return the finding as a verdict, with labels."""
    if finding.group < 0:
        return Verdict(True, (), (), finding.checks, m, method, str(constraint))
    encoded, texts_of = names
    verdict = Verdict(
        False, (), texts_of(finding.group), finding.checks, m, method, str(constraint)
    )
    if finding.coalition is None or finding.left is None:
        return replace(verdict, settled=False)
    labels = encoded.classes
    return replace(
        verdict,
        coalition=tuple(encoded.providers[code] for code in finding.coalition),
        broken=str(finding.part),
        left={labels[v]: n for v, n in finding.left.as_dict().items()},
        left_size=finding.left.size,
        outsiders=finding.outsiders,
    )
