"""Distinct l-diversity against coalitions, for many groups at once.

A coalition removes a value from a group if it holds all the records with it. Let h be the number
of providers of a value and D the sum of the m' largest numbers of removable values (h ≤ m') that
single providers hold. At most the j values with the least h and Σh ≤ D can go; at least those with
Σh ≤ m' can. Where the two bounds leave the answer open, coalitions are searched.

Theorem: anonymization
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.counting import present

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
_MOST_MASKS = 5_000  # coalitions worth trying on all open groups at once
_MASK_BITS = 62
_CELLS = 4_000_000


def fewest_values_left(
    provider: NDArray[np.integer[Any]],
    providers: int,
    sensitive: NDArray[np.integer[Any]],
    values: int,
    sizes: Counts,
    coalition: Counts,
    l: int,  # noqa: E741  (the field's own letter)
) -> Flags:
    """Tell for each run of rows whether every coalition of its size leaves at least l values."""
    runs = len(sizes)
    run = np.repeat(np.arange(runs, dtype=np.int64), sizes)
    key = present((run * values + sensitive) * providers + provider, runs * values * providers)
    holder, cell = key % providers, key // providers
    change = np.concatenate(([True], cell[1:] != cell[:-1]))
    first = np.flatnonzero(change)
    held_by = np.diff(first, append=len(cell))  # h of each (run, value)
    owner = cell[first] // values
    total = np.bincount(owner, minlength=runs)
    removable = held_by <= coalition[owner]
    sure = total - np.bincount(owner[removable], minlength=runs) >= l
    doubtful = ~sure & (total >= l)
    if not doubtful.any():
        return sure
    use = removable & doubtful[owner]
    pair = use[np.cumsum(change) - 1]
    degrees = _top_degrees(cell[pair] // values, holder[pair], providers, coalition, runs)
    order = np.lexsort((held_by[use], owner[use]))
    h, of = held_by[use][order], owner[use][order]
    below = np.cumsum(h)
    begin = np.searchsorted(of, np.arange(runs + 1))
    before = np.concatenate(([0], below))[begin[:-1]]
    spent = below - before[of]
    most = np.bincount(of[spent <= degrees[of]], minlength=runs)
    least = np.bincount(of[spent <= coalition[of]], minlength=runs)
    result = sure | (doubtful & (total - most >= l))
    open_ = np.flatnonzero(doubtful & ~result & (total - least >= l))
    if len(open_):
        wanted = np.isin(cell // values, open_)
        result[open_] = _search(
            np.searchsorted(open_, cell[wanted] // values),
            cell[wanted] % values,
            holder[wanted],
            providers,
            coalition[open_],
            l,
        )
    return result


def _top_degrees(
    run: Counts, holder: Counts, providers: int, coalition: Counts, runs: int
) -> Counts:
    """Return the sum of the largest numbers of removable values that single providers hold."""
    key, degree = np.unique(run * providers + holder, return_counts=True)
    owner = key // providers
    order = np.lexsort((-degree, owner))
    total = np.concatenate(([0], np.cumsum(degree[order])))
    begin = np.searchsorted(owner, np.arange(runs + 1))
    end = np.minimum(begin[:-1] + coalition, begin[1:])
    summed: Counts = total[end] - total[begin[:-1]]
    return summed


def _search(
    run: Counts,
    value: Counts,
    holder: Counts,
    providers: int,
    coalition: Counts,
    l: int,  # noqa: E741
) -> Flags:
    """Decide the open groups by all coalitions at once, or group by group."""
    runs = len(coalition)
    largest = int(coalition.max())
    if providers <= _MASK_BITS and comb(providers, largest) <= _MOST_MASKS:
        return _by_masks(run, value, holder, providers, coalition, l)
    begin = np.searchsorted(run, np.arange(runs + 1))
    decided = np.empty(runs, dtype=bool)
    for i in range(runs):
        part = slice(begin[i], begin[i + 1])
        decided[i] = _one_group(value[part], holder[part], int(coalition[i]), l)
    return decided


def _by_masks(
    run: Counts,
    value: Counts,
    holder: Counts,
    providers: int,
    coalition: Counts,
    l: int,  # noqa: E741
) -> Flags:
    runs, values = len(coalition), int(value.max()) + 1
    masks = np.zeros((runs, values), dtype=np.int64)
    np.bitwise_or.at(masks, (run, value), np.int64(1) << holder)
    everybody = np.bitwise_or.reduce(masks, axis=1)
    total = np.count_nonzero(masks, axis=1)
    largest = int(coalition.max())
    teams = np.array(
        [sum(1 << p for p in team) for team in combinations(range(providers), largest)],
        dtype=np.int64,
    )
    safe = np.ones(runs, dtype=bool)
    step = max(1, _CELLS // (len(teams) * values))
    for start in range(0, runs, step):
        part = slice(start, start + step)
        # A team with everybody of a group is no coalition there: somebody must be left to attack.
        some_left = (everybody[part, None] & ~teams[None, :]) != 0
        gone = ((masks[part, :, None] & ~teams[None, None, :]) == 0).sum(axis=1)
        left = total[part, None] - (gone - (values - total[part])[:, None])
        safe[part] = ~((left < l) & some_left).any(axis=1)
    return safe


def _one_group(value: Counts, holder: Counts, coalition: int, l: int) -> bool:  # noqa: E741
    """Ask the exact search of the verification; undecided counts as unsafe."""
    from quiltwork.publishing.constraints.l_diversity import LDiversity
    from quiltwork.publishing.group import Group
    from quiltwork.publishing.verification import group_is_private

    who, row = np.unique(holder, return_inverse=True)
    what, column = np.unique(value, return_inverse=True)
    weights = np.zeros((len(who), len(what)), dtype=np.int64)
    weights[row, column] = 1
    return group_is_private(Group(who, what, weights), LDiversity(l), coalition)
