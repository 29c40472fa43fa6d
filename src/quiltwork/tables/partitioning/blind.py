"""Groups that are made and kept without looking at who has which sensitive value.

The cuts ask for numbers of records alone. Whether a finished group may be published is asked of
what it publishes: its sensitive values with how often each occurs, and how many records each
provider has there. So every other way to give the group's people these values has the same answer,
and the table says nothing beyond what is written in it.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

import math

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.exact import to_fraction
from quiltwork.tables.constraints.constraint import (
    Constraint,
    KAnonymity,
    LDiversity,
    SecretCounts,
)
from quiltwork.tables.constraints.distributions import EntropyLDiversity, RecursiveLDiversity
from quiltwork.tables.encoding import CodedTable
from quiltwork.tables.partitioning.cut_rule import Counts, Flags


def records_needed(constraint: Constraint, alone: bool = True) -> int:
    """Return how many records, or people, a constraint asks for at least.

    l values need l records, if each record is `alone` with its person.
    """
    least = [1]
    for part in constraint.parts:
        if isinstance(part, KAnonymity):
            least.append(part.k)
        elif alone and isinstance(part, LDiversity | RecursiveLDiversity | EntropyLDiversity):
            least.append(math.ceil(to_fraction(part.l, "l")))
    return max(least)


def held_anyhow(
    encoded: CodedTable, labels: Counts, groups: int, constraint: Constraint, m: int
) -> Flags:
    """Tell which groups withstand m providers whoever of their people has which of their values.

    Of a group's n providers the min(m, n − 1) with most records know so many records there, and may
    know the rarest values. Cost: O(rows log rows), and a few steps for each group.

    Raises:
        UnsupportedError: with colluding providers, for constraints other than k and distinct l.
    """
    plain = all(isinstance(part, KAnonymity | LDiversity) for part in constraint.parts)
    if m and not plain:
        raise UnsupportedError(
            f"With colluding providers, only k-anonymity and distinct l-diversity can be judged "
            f"without looking at who has which value, not {constraint}; leave out blind, or ask "
            "with m=0."
        )
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(groups + 1))
    found = np.zeros(groups, dtype=bool)
    for group in range(groups):
        rows = order[starts[group] : starts[group + 1]]
        known = 0
        if m:
            owned = np.sort(np.bincount(encoded.provider[rows]))[::-1]
            known = int(owned[: min(m, np.count_nonzero(owned) - 1)].sum())
        codes, numbers = np.unique(encoded.sensitive[rows], return_counts=True)
        left = SecretCounts(len(rows), codes.astype(np.int64), numbers)
        found[group] = all(_holds(part, left, known) for part in constraint.parts)
    return found


def _holds(part: Constraint, counts: SecretCounts, known: int) -> bool:
    """Tell whether a part holds whichever `known` records are taken away."""
    if not known:
        return part.holds(counts)
    if isinstance(part, KAnonymity):
        return counts.size - known >= part.k
    gone = int((np.cumsum(np.sort(counts.counts)) <= known).sum())
    return isinstance(part, LDiversity) and counts.distinct - gone >= part.l
