"""Which of many groups withstand every coalition: the one answer that cutting and verifying use.

Asked in this order, each for what the one before leaves open: `quick_bounds`, for all groups and
coalitions at once; `every_coalition`, where these are few, for all groups together; then group by
group (`one_group`), by branch and bound or, for constraints that can fail when records are added,
every set between what a coalition leaves and the whole group. What stays open is not private.
Cost: a few sorts of the entries, and O(coalitions · entries) for the groups in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.constraints.distributions import TCloseness
from quiltwork.tables.constraints.sizes import KAnonymity, LDiversity
from quiltwork.tables.group import (
    SparseCounts,
    by_value,
    headcount,
    narrow,
    one_value_each,
    subset,
)
from quiltwork.tables.verification.corners import DECIDED, find_violations
from quiltwork.tables.verification.every_coalition import Coalitions
from quiltwork.tables.verification.one_group import group_is_private
from quiltwork.tables.verification.quick_bounds import BROKEN, OPEN, SAFE, Status, bound

_CELLS = 4_000_000

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


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
        status = decide_together(subset(counts, left), part, m)
        private[left[status == BROKEN]] = False
        open_ = left[status == OPEN]
        if isinstance(part, DECIDED) and len(open_):
            few = Coalitions(subset(counts, open_), m).few
            private[open_[~few]] = False  # too many to try: undecided
            open_ = open_[few]
        doubts.append((open_, part))
    for groups, part in doubts:
        for group in groups[private[groups]].tolist():
            private[group] = _withstands(counts, group, part, m)
    return private


def _withstands(counts: SparseCounts, group: int, part: Constraint, m: int) -> bool:
    try:
        return group_is_private(counts.cut(group), part, m)
    except UnsupportedError:  # too many sets to try
        return False


def decide_together(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return SAFE or BROKEN for groups that bounds or few coalitions decide, else OPEN."""
    if not isinstance(part, (KAnonymity, LDiversity, *DECIDED)):
        return np.full(counts.groups, OPEN, dtype=np.int8)
    if isinstance(part, DECIDED) and not isinstance(part, TCloseness) and not len(counts.kinds):
        counts = narrow(counts)
    step = counts.groups
    if isinstance(part, DECIDED):  # as tables of group × value
        step = max(1, _CELLS // max(counts.values, 1))
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    for first in range(0, counts.groups, step):
        some = np.arange(first, min(first + step, counts.groups))
        status[some] = bound(subset(counts, some), part, m)
        left = some[status[some] == OPEN]
        if len(left):
            status[left] = _try_coalitions(subset(counts, left), part, m)
    return status


def _try_coalitions(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Decide groups with few coalitions by trying all of them."""
    if isinstance(part, KAnonymity):
        counts = headcount(counts)
    coalitions = Coalitions(counts, m)
    wanted = coalitions.few.copy()
    status = np.where(wanted, SAFE, OPEN).astype(np.int8)
    if not wanted.any():
        return status
    total, simple = by_value(counts), one_value_each(counts)
    for rows in coalitions.remains(wanted):
        if isinstance(part, KAnonymity):
            status[rows.group[rows.kept[:, 0] < part.k]] = BROKEN
        elif isinstance(part, LDiversity):
            status[rows.group[np.count_nonzero(rows.kept, axis=1) < part.l]] = BROKEN
        else:  # every set between what is left and the whole; people of two values allow fewer
            found = find_violations(part, rows.kept, total[rows.group], rows.group, len(status))
            status[~found.safe & (status == SAFE)] = OPEN
            status[(found.box >= 0) & simple] = BROKEN
        wanted &= status != BROKEN
        if not wanted.any():
            break
    return status
