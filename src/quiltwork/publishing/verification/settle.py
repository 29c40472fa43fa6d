"""All groups at once: which are safe, broken, or open.

Bounds come first: for k-anonymity and distinct l-diversity from sorted counts, for entropy and
recursive diversity and t-closeness from the number of records that coalitions hold. What they leave
open is decided by trying every coalition on all groups together (`rows`), where these are few.
Only groups that are open after that are searched one by one. Cost: a few sorts of the entries, and
O(coalitions · entries) for the groups in doubt.

Theorem: m-privacy
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.circles import distinct_rows
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity
from quiltwork.publishing.constraints.t_closeness import TCloseness
from quiltwork.publishing.counting import counted
from quiltwork.publishing.sparse import SparseCounts
from quiltwork.publishing.verification.between import BETWEEN, surely_safe, worst_between
from quiltwork.publishing.verification.rows import (
    Coalitions,
    Rows,
    by_value,
    headcount,
    narrow,
    one_value_each,
    subset,
)

OPEN, SAFE, BROKEN = 0, 1, 2

_CELLS = 4_000_000

Ints = NDArray[np.int64]
Status = NDArray[np.int8]


def settle(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return OPEN, SAFE or BROKEN for every group."""
    if isinstance(part, KAnonymity):
        status = _settle_k(counts, part.k, m)
    elif isinstance(part, LDiversity):
        status = _settle_l(counts, part.l, m)
    elif isinstance(part, BETWEEN):
        return _settle_between(counts, part, m)
    else:
        return np.full(counts.groups, OPEN, dtype=np.int8)
    left = np.flatnonzero(status == OPEN)
    if len(left):
        status[left] = _try_coalitions(subset(counts, left), part, m)
    return status


def groups_withstand(counts: SparseCounts, part: Constraint, m: int) -> NDArray[np.bool_]:
    """Tell which groups are proven to withstand every coalition; the last ones one by one."""
    from quiltwork.publishing.verification.verify import group_is_private

    status = settle(counts, part, m)
    private = status == SAFE
    for group in np.flatnonzero(status == OPEN).tolist():
        private[group] = group_is_private(counts.cut(group), part, m)
    return private


def _settle_between(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Check the whole groups, then bounds for all coalitions, then every coalition."""
    if not isinstance(part, TCloseness) and not len(counts.kinds):
        counts = narrow(counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    step = max(1, _CELLS // max(counts.values, 1))
    for first in range(0, counts.groups, step):
        some = np.arange(first, min(first + step, counts.groups))
        status[some] = _settle_some(subset(counts, some), part, m)
    return status


def _settle_some(counts: SparseCounts, part: Constraint, m: int) -> Status:
    total = by_value(counts)
    whole = worst_between(part, total, total, np.arange(counts.groups), counts.groups)
    status = np.where(whole.safe, OPEN, BROKEN).astype(np.int8)
    sizes = _sizes(counts, m)
    group, known = _known_by_provider(counts)
    most = sum_of_largest(group, known, sizes)
    safe = (sizes == 0) | (surely_safe(part, total, most) & one_value_each(counts))
    status[safe & whole.safe] = SAFE
    left = np.flatnonzero(status == OPEN)
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
    total = by_value(counts)
    for rows in coalitions.rows(wanted):
        if isinstance(part, KAnonymity):
            status[rows.group[rows.kept[:, 0] < part.k]] = BROKEN
        elif isinstance(part, LDiversity):
            status[rows.group[np.count_nonzero(rows.kept, axis=1) < part.l]] = BROKEN
        else:
            _try_between(part, rows, total, status)
        wanted &= status != BROKEN
        if not wanted.any():
            break
    return status


def _try_between(part: Constraint, rows: Rows, total: Ints, status: Status) -> None:
    """Look between what is left and the whole; changes `status`.

    People with two values make the sets in between fewer than the box holds: then the whole box
    proves safety, and what can be added value by value proves a breach.
    """
    group, owners = rows.group, len(status)
    found = worst_between(part, rows.kept, total[group], group, owners)
    status[~found.safe & (status == SAFE)] = OPEN
    inner = (rows.more != total[group]).any(axis=1)
    if inner.any():
        doubtful = np.zeros(owners, dtype=np.bool_)
        doubtful[group[inner]] = True
        again = np.flatnonzero(doubtful[group] & ~found.safe[group])
        found.box[doubtful] = -1
        second = worst_between(part, rows.kept[again], rows.more[again], group[again], owners)
        found.box[second.box >= 0] = second.box[second.box >= 0]
    status[found.box >= 0] = BROKEN


def left_by_largest(counts: SparseCounts, m: int) -> Ints:
    """Return what each group keeps at least when its m largest providers are known.

    Exact where each person is known to one provider; a lower bound otherwise.
    """
    group, known = _known_by_provider(counts)
    lost = sum_of_largest(group, known, _sizes(counts, m))
    total = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
    left: Ints = (total - lost).astype(np.int64)
    return left


def sum_of_largest(group: Ints, numbers: Ints, how_many: Ints) -> Ints:
    """Add up the largest numbers of each group, as many as asked; `group` is sorted."""
    order = np.lexsort((-numbers, group))
    group, numbers = group[order], numbers[order]
    position = np.arange(len(group)) - np.searchsorted(group, group)
    taken = position < how_many[group]
    sums = np.bincount(group[taken], weights=numbers[taken], minlength=len(how_many))
    return sums.astype(np.int64)


def _settle_k(counts: SparseCounts, k: int, m: int) -> Status:
    enough = left_by_largest(counts, m) >= k
    return np.where(enough, SAFE, np.where(_simple(counts), BROKEN, OPEN)).astype(np.int8)


def _settle_l(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound how many providers it takes to remove the rarest values of each group.

    To remove a value, all its providers must collude; so values of more providers than may collude
    stay. Most groups have enough of these.
    """
    group, value, provider = _cells(counts)
    where, owners = _owners(group * counts.values + value, provider >= 0, counts)
    removable = owners <= _sizes(counts, m)[where]
    number = np.bincount(where, minlength=counts.groups)
    safe = number - np.bincount(where[removable], minlength=counts.groups) >= wanted
    status = np.where(safe, SAFE, np.where(number < wanted, BROKEN, OPEN)).astype(np.int8)
    left = np.flatnonzero(status == OPEN)
    if len(left):
        status[left] = _settle_rarest(subset(counts, left), wanted, m)
    return status


def _settle_rarest(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound the providers of the e rarest values, if fewer than l are left without e values.

    Members hold each removed value once for each of its providers: what single members can
    contribute to that, counted one by one, must be enough for the e rarest. For coalitions of one
    it is enough. If one provider is left, its values are all that is.
    """
    group, value, provider = _cells(counts)
    alone, cell = provider >= 0, group * counts.values + value
    found, inverse = np.unique(cell, return_inverse=True)
    where, owners = found // counts.values, np.bincount(inverse[alone], minlength=len(found))
    rising = owners[np.lexsort((owners, where))]
    start = np.searchsorted(where, np.arange(counts.groups))
    emptied = np.bincount(where, minlength=counts.groups) - wanted + 1
    running = np.concatenate([[0], np.cumsum(rising)])
    together = running[start + emptied] - running[start]
    size, simple = _sizes(counts, m), _simple(counts)
    use = alone & (owners <= size[where])[inverse]
    holder, held = _per_provider(group[use], provider[use], counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    status[simple & ((together <= size) | (size == 1))] = BROKEN
    status[together > sum_of_largest(holder, held, size)] = SAFE
    holder, held = _per_provider(group, provider, counts)
    fewest = np.minimum.reduceat(held, np.searchsorted(holder, np.arange(counts.groups)))
    one_left = simple & (size == counts.inside - 1)
    status[one_left] = np.where(fewest < wanted, BROKEN, SAFE)[one_left]
    return status


def _owners(cell: Ints, alone: NDArray[np.bool_], counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return the group of each (group, value) that occurs, and how many providers must collude."""
    found, owners = counted(cell, counts.groups * counts.values)
    if not alone.all():
        shared, several = counted(cell[~alone], counts.groups * counts.values)
        owners[np.searchsorted(found, shared)] -= several
    return found // counts.values, owners


def _per_provider(group: Ints, provider: Ints, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, number of entries) for every provider of every group."""
    (where, _), number = distinct_rows([group, provider + 1], [counts.groups, counts.providers + 1])
    return where, number


def _sizes(counts: SparseCounts, m: int) -> Ints:
    """Return how many providers of each group may collude; at most m where others know someone."""
    limited = np.minimum(m, counts.inside - 1)
    size: Ints = np.where(_simple(counts), limited, m)
    return size


def _simple(counts: SparseCounts) -> NDArray[np.bool_]:
    """Tell which groups hold only people known to one provider each."""
    simple = np.ones(counts.groups, dtype=np.bool_)
    simple[counts.group[counts.who >= counts.providers]] = False
    return simple


def _known_by_provider(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, people known) for every provider of every group."""
    new = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
    first = np.flatnonzero(new)
    group, who = counts.group[first], counts.who[first]
    known = np.add.reduceat(counts.weight, first)
    if not len(counts.sets):
        return group, known
    own = who < counts.providers
    position, members = counts.sets.spread(who[~own] - counts.providers)
    columns = [
        np.concatenate([group[own], group[~own][position]]),
        np.concatenate([who[own], members]),
    ]
    weights = np.concatenate([known[own], known[~own][position]])
    order = np.lexsort(columns[::-1])
    (where, _), repeats = distinct_rows(columns, [counts.groups, counts.providers])
    first = np.cumsum(repeats) - repeats
    return where, np.add.reduceat(weights[order], first)


def _cells(counts: SparseCounts) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (group, value, provider); provider −1 stands for several at once."""
    provider = np.where(counts.who < counts.providers, counts.who, -1)
    if not len(counts.kinds) and not len(counts.sets):
        return counts.group, counts.kind, provider
    single = counts.kind < counts.values
    position, members = counts.kinds.spread(counts.kind[~single] - counts.values)
    several = np.flatnonzero(~single)[position]
    rows = np.concatenate([np.flatnonzero(single), several])
    values = np.concatenate([counts.kind[single], members])
    sizes = [counts.groups, counts.values, counts.providers + 1]
    (group, value, owner), _ = distinct_rows(
        [counts.group[rows], values, provider[rows] + 1], sizes
    )
    return group, value, owner - 1
