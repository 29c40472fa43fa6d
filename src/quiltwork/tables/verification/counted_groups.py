"""Counted groups, asked in the order of the rows until one is breached: `first_breach`.

Groups are decided together where that is possible (`Constraint.bound`); what is left open, and what
is breached and needs a name, is searched group by group.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.coalition_bounds import BROKEN, SAFE
from quiltwork.tables.constraints.constraint import Conjunction, Constraint
from quiltwork.tables.encoding import CodedTable
from quiltwork.tables.group import Group, SparseCounts, subset
from quiltwork.tables.verification.coalitions import number_of_coalitions
from quiltwork.tables.verification.group_search import LIMIT, AnyMethod, Finding, find_breach
from quiltwork.tables.verification.verdict import Verdict

Names: TypeAlias = tuple[CodedTable, Callable[[int], tuple[Any, ...]]]
"""The labels of providers and sensitive values, and what says the texts of a group."""


def verify_counts(
    names: Names,
    counts: SparseCounts,
    constraint: Constraint,
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> Verdict:
    """Verify counted groups, for callers who ask about one table often."""
    every = np.arange(counts.groups)
    found = first_breach(names, counts, every, constraint, m, method, limit)
    if found.refused is not None:
        raise found.refused
    return found.verdict


class FirstBreach(NamedTuple):
    """The verdict on some groups, and the first that does not pass (−1: none).

    `refused` says why nothing is known of it, if that is so; `searched` is how many checks were
    those of searches.
    """

    verdict: Verdict
    group: int
    refused: UnsupportedError | None = None
    searched: int = 0


def first_breach(
    names: Names,
    counts: SparseCounts,
    groups: NDArray[np.int64],
    constraint: Constraint,
    m: int,
    method: AnyMethod,
    limit: int,
    left: int | None = None,
) -> FirstBreach:
    """Ask groups in order; with `left`, checks for all of them, stop at the first not proven.

    One search may then take a third of what is left, less if many groups wait, and always its
    share of the limit. What is tried counts by what it costs.
    """
    some = subset(counts, groups)
    statuses = [
        part.bound(some, m) if method == "exact" else np.zeros(some.groups, dtype=np.int8)
        for part in constraint.parts
    ]
    checks, searched = int(sum((status != 0).sum() for status in statuses)), 0
    verdict = Verdict(True, (), (), checks, m, method, str(constraint))
    doubtful = np.any([status != SAFE for status in statuses], axis=0)
    first = FirstBreach(verdict, -1)
    waiting = int(doubtful.sum())
    for at in np.flatnonzero(doubtful).tolist():
        g, group = int(groups[at]), some.cut(at)
        most, weight = limit, 1
        if left is not None:
            weight = _weight(group, constraint)
            share = (left - searched) // (3 + waiting // 3)
            most = max(max(share, limit // counts.groups // 5) // weight, 1)
            waiting -= 1
        unsafe = [p for p, s in zip(constraint.parts, statuses, strict=True) if s[at] != SAFE]
        try:
            found = find_breach(group, Conjunction(tuple(unsafe)), m, method, most)
        except UnsupportedError as error:  # a breach of another group is an answer all the same
            if first.refused is None:
                first = FirstBreach(replace(verdict, private=False, settled=False), g, error)
            if left is None:
                continue
            searched += weight * most if number_of_coalitions(group, m) <= most else 0
            break
        # Naming the coalition of a group that is known to be breached is no further check.
        checks -= any(status[at] == BROKEN for status in statuses)
        checks, searched = checks + found.checks, searched + weight * found.checks
        if found.coalition is not None or not found.settled:
            named = replace(verdict, private=False, group=names[1](g), checks=checks)
            return FirstBreach(_named(named, found, group, names[0]), g, searched=searched)
    if first.refused is not None:
        return first._replace(searched=searched)
    return FirstBreach(replace(verdict, checks=checks), -1, searched=searched)


def _weight(group: Group, constraint: Constraint) -> int:
    """Return what trying one coalition costs, in steps of `covered_by_few`."""
    if not any(part.needs_coalitions(group) for part in constraint.parts):
        return 1
    return 1 + len(group.values) // 42 + group.size // 170


def _named(verdict: Verdict, found: Finding, group: Group, encoded: CodedTable) -> Verdict:
    """Put labels on what was found."""
    if found.coalition is None or found.left is None:
        return replace(verdict, settled=False)
    labels = encoded.sensitive_values
    who = group.providers[list(found.coalition)].tolist()
    left: dict[Any, int] = {labels[v]: n for v, n in found.left.as_dict().items()}
    return replace(
        verdict,
        coalition=tuple(encoded.providers[code] for code in who),
        broken=str(found.part),
        left=left,
        left_size=found.left.size,
        outsiders=found.outsiders,
    )
