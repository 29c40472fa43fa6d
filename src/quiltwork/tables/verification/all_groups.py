"""Which of many groups withstand every coalition: the one answer that cutting and verifying use.

First `quick_bounds`, for all groups and coalitions at once; then, for what is left open, group by
group (`one_group`). What stays open is not private. Cost: a few sorts of the entries, and
O(coalitions · entries) for the groups in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity
from quiltwork.tables.group import SparseCounts, subset
from quiltwork.tables.verification.branching import number_of_coalitions
from quiltwork.tables.verification.corners import DECIDED
from quiltwork.tables.verification.one_group import group_is_private, needs_trying
from quiltwork.tables.verification.quick_bounds import BROKEN, OPEN, Status, bound

Flags = NDArray[np.bool_]

MOST_COALITIONS = 5_000
"""Coalitions of one group that are worth trying while groups are made."""
_CELLS = 4_000_000


def groups_withstand(counts: SparseCounts, constraint: Constraint, m: int) -> Flags:
    """Tell which groups are proven to withstand every coalition of at most m providers.

    Part after part, the cheap ones first, each for the groups that are left.
    """
    private = np.ones(counts.groups, dtype=np.bool_)
    doubts: list[tuple[NDArray[np.int64], Constraint]] = []
    for part in sorted(constraint.parts, key=lambda part: not part.eg_monotonic):
        left = np.flatnonzero(private)
        if not len(left):
            return private
        status = decide_together(subset(counts, left), part, m)
        private[left[status == BROKEN]] = False
        doubts.append((left[status == OPEN], part))
    for groups, part in doubts:
        for group in groups[private[groups]].tolist():
            private[group] = _withstands(counts, group, part, m)
    return private


def _withstands(counts: SparseCounts, number: int, part: Constraint, m: int) -> bool:
    group = counts.cut(number)
    if needs_trying(group, part) and number_of_coalitions(group, m) > MOST_COALITIONS:
        return False
    try:
        return group_is_private(group, part, m)
    except UnsupportedError:  # too many sets to try
        return False


def decide_together(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return SAFE or BROKEN for groups that bounds decide, else OPEN."""
    if isinstance(part, (KAnonymity, LDiversity)):
        return bound(counts, part, m)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    if isinstance(part, DECIDED):  # as tables of group × value
        step = max(1, _CELLS // max(counts.values, 1))
        for first in range(0, counts.groups, step):
            some = np.arange(first, min(first + step, counts.groups))
            status[some] = bound(subset(counts, some), part, m)
    return status
