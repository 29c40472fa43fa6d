"""The fewest providers who remove all but l − 1 values of a group (distinct l-diversity).

Fewer than l values are left if and only if those who do not collude hold, all together, at most
l − 1 values. So a coalition of s of n providers breaches if some n − s providers hold values out of
one set of l − 1: the question is which set covers most providers, and no coalition is enumerated.

Branch and bound over that set: each provider of j values that could still be covered gives 1/j to
each of them, and no set covers more providers than its values were given together. A provider with
l values or more is never covered. Exponential only where the bound leaves doubt; a search that uses
up its limit settles nothing.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
_SLACK = 1e-6
_SETS_PER_CHECK = 16


def covered_by_few(
    holds: Flags, few: int, wanted: int, count: Callable[[int], None]
) -> Flags | None:
    """Return at most `few` values that cover `wanted` providers; None if there are none.

    `holds` is provider × value. `count` is told how much was looked at, and may raise.

    >>> holds = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    >>> covered_by_few(holds, 2, 3, lambda _: None)
    array([ True,  True, False])
    >>> covered_by_few(holds, 1, 2, lambda _: None)
    """
    small = holds[holds.sum(axis=1) <= few]
    if len(small) < wanted:
        return None
    packed = np.packbits(small, axis=1)
    _, first, alike = np.unique(packed, axis=0, return_index=True, return_counts=True)
    # Sets to be covered still, how many providers each stands for, how many are covered; the
    # values chosen. Depth first, what is likelier first.
    stack = [(small[first], alike.astype(np.float64), 0.0, np.zeros(holds.shape[1], dtype=bool))]
    while stack:
        sets, many, covered, chosen = stack.pop()
        count(3 + len(sets) // _SETS_PER_CHECK)
        room = few - int(chosen.sum())
        missing = sets.sum(axis=1)
        covered += float(many[missing == 0].sum())
        if covered >= wanted:
            return chosen
        open_ = (missing > 0) & (missing <= room)
        sets, many, missing = sets[open_], many[open_], missing[open_]
        share = many / np.maximum(missing, 1)
        given = share @ sets
        if covered + float(np.sort(given)[::-1][:room].sum()) < wanted - _SLACK:
            continue
        if len(sets) < np.count_nonzero(given):
            at = int(share.argmax())
            others, added = np.arange(len(sets)) != at, sets[at]
        else:
            value = int(given.argmax())
            others, added = ~sets[:, value], np.arange(len(given)) == value
        stack.append((sets[others], many[others], covered, chosen))
        stack.append((sets & ~added, many, covered, chosen | added))
    return None
