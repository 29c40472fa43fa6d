"""Distinct l-diversity without searching coalitions (branch and bound over sensitive values).

A coalition breaches if it takes away every record of so many values that fewer than l are left:
if the union of these values' providers is small enough. Exponential only in the number of values
that at most m providers hold.

Theorem: m-privacy
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.group import Group
from quiltwork.publishing.verification.checks import Checks, LimitReached, Outcome


def breach_of_values(group: Group, wanted: int, size: int, checks: Checks) -> Outcome:
    """Look for at most `size` providers without whom fewer than `wanted` values are left.

    The group is plain: each record has one provider and one value.
    """
    columns = (group.weights > 0).T
    owners = [_mask(column) for column in columns]
    rare = sorted((o for o in owners if o.bit_count() <= size), key=int.bit_count)
    try:
        found = _cover(rare, 0, len(owners) - wanted + 1, size, checks)
    except LimitReached:
        return Outcome(None, checks.done - 1, settled=False)
    if found is None:
        return Outcome(None, max(checks.done, 1))
    return Outcome(_positions(found, group.size), checks.done)


def _cover(owners: list[int], union: int, needed: int, size: int, checks: Checks) -> int | None:
    """Add `needed` of the sets to the union and stay within the size; return the union."""
    checks.count()
    free = sum(1 for owner in owners if owner & ~union == 0)
    if needed <= free:
        return union
    room = size - union.bit_count()
    costs = [((o & ~union).bit_count(), o) for o in owners if o & ~union]
    open_sets = [o for cost, o in sorted(costs, key=lambda pair: pair[0]) if cost <= room]
    needed -= free
    for position, owner in enumerate(open_sets):
        if len(open_sets) - position < needed:
            return None
        found = _cover(open_sets[position + 1 :], union | owner, needed - 1, size, checks)
        if found is not None:
            return found
    return None


def _mask(holds: NDArray[np.bool_]) -> int:
    """Return a bit for each provider that holds the value."""
    return int.from_bytes(np.packbits(holds, bitorder="little").tobytes(), "little")


def _positions(mask: int, count: int) -> tuple[int, ...]:
    packed = np.frombuffer(mask.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist())
