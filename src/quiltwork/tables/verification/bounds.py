"""Which of many groups withstand every coalition: the one answer that cutting and verifying use.

First what a constraint's bounds say about every coalition of all groups at once, which decides
nearly every group. Then, for what is left open, group by group (`search`). What stays open is
not private. Cost: a few sorts of the entries, and O(coalitions · entries) for the groups in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.codes.group import SparseCounts, subset
from quiltwork.tables.constraints.coalition_bounds import BROKEN, OPEN, Flags
from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.verification.coalitions import number_of_coalitions
from quiltwork.tables.verification.search import group_is_private

MOST_COALITIONS = 5_000
"""Coalitions of one group that are worth trying while groups are made."""


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
