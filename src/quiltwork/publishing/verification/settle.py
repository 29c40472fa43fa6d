"""All groups at once for k-anonymity and distinct l-diversity: which are safe, broken, or open.

Only groups that the bounds leave open are searched one by one. Cost: a few sorts of the entries.

Theorem: m-privacy
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.circles import distinct_rows
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity
from quiltwork.publishing.sparse import SparseCounts

OPEN, SAFE, BROKEN = 0, 1, 2

Ints = NDArray[np.int64]
Status = NDArray[np.int8]


def settle(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return OPEN, SAFE or BROKEN for every group."""
    if isinstance(part, KAnonymity):
        return _settle_k(counts, part.k, m)
    if isinstance(part, LDiversity):
        return _settle_l(counts, part.l, m)
    return np.full(counts.groups, OPEN, dtype=np.int8)


def left_by_largest(counts: SparseCounts, m: int) -> Ints:
    """Return what each group keeps at least when its m largest providers are known.

    Exact where each person is known to one provider; a lower bound otherwise.
    """
    group, known = _known_by_provider(counts)
    order = np.lexsort((-known, group))
    group, known = group[order], known[order]
    position = np.arange(len(group)) - np.searchsorted(group, group)
    taken = position < _sizes(counts, m)[group]
    lost = np.bincount(group[taken], weights=known[taken], minlength=counts.groups)
    total = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
    left: Ints = (total - lost).astype(np.int64)
    return left


def _settle_k(counts: SparseCounts, k: int, m: int) -> Status:
    enough = left_by_largest(counts, m) >= k
    return np.where(enough, SAFE, np.where(_simple(counts), BROKEN, OPEN)).astype(np.int8)


def _settle_l(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound how many providers it takes to remove the rarest values of each group."""
    (group, value, provider), _ = _cells(counts)
    alone = provider >= 0
    key = group * counts.values + value
    found, inverse = np.unique(key, return_inverse=True)
    owners = np.bincount(inverse, weights=alone, minlength=len(found)).astype(np.int64)
    where = found // counts.values
    order = np.lexsort((owners, where))
    owners, where = owners[order], where[order]
    start = np.searchsorted(where, np.arange(counts.groups + 1))
    values = np.diff(start)
    emptied = values - wanted + 1
    last = start[:-1] + np.clip(emptied, 1, None) - 1
    running = np.concatenate([[0], np.cumsum(owners)])
    together = running[last + 1] - running[start[:-1]]
    size = _sizes(counts, m)
    simple = _simple(counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    status[simple & (together <= size)] = BROKEN
    status[owners[last] > size] = SAFE
    single = simple & (size == 1)
    exclusive = np.bincount(inverse, minlength=len(found))[inverse] == 1
    most = _extreme(group[exclusive], provider[exclusive], counts, np.maximum)
    status[single] = np.where(most >= emptied, BROKEN, SAFE)[single]
    spared = simple & (size == counts.inside - 1)
    fewest = _extreme(group, provider, counts, np.minimum)
    status[spared] = np.where(fewest < wanted, BROKEN, SAFE)[spared]
    status[emptied <= 0] = BROKEN
    return status


def _extreme(group: Ints, provider: Ints, counts: SparseCounts, best: np.ufunc) -> Ints:
    """Return the most or the fewest entries that a single provider has in each group."""
    (where, _), number = distinct_rows([group, provider + 1], [counts.groups, counts.providers + 1])
    start = np.flatnonzero(np.append(True, np.diff(where) != 0)) if len(where) else where
    result = np.zeros(counts.groups, dtype=np.int64)
    if len(where):
        result[where[start]] = best.reduceat(number, start)
    return result


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
    if not counts.sets:
        return group, known
    shared = np.flatnonzero(who >= counts.providers)
    circles = [counts.holders(int(w)) for w in who[shared]]
    spread = np.repeat(shared, [len(c) for c in circles])
    own = who < counts.providers
    groups = np.concatenate([group[own], group[spread]])
    members = np.concatenate([who[own], np.array([p for c in circles for p in c], dtype=np.int64)])
    weights = np.concatenate([known[own], known[spread]])
    key = groups * counts.providers + members
    found, inverse = np.unique(key, return_inverse=True)
    summed = np.bincount(inverse, weights=weights).astype(np.int64)
    return found // counts.providers, summed


def _cells(counts: SparseCounts) -> tuple[list[Ints], Ints]:
    """Return the distinct (group, value, provider); provider −1 stands for several at once."""
    provider = np.where(counts.who < counts.providers, counts.who, -1)
    if not counts.kinds and not counts.sets:
        return [counts.group, counts.kind, provider], counts.weight
    values = [counts.values_of(int(k)) for k in counts.kind]
    each = np.repeat(np.arange(len(values)), [len(v) for v in values])
    listed = np.array([v for several in values for v in several], dtype=np.int64)
    sizes = [counts.groups, counts.values, counts.providers + 1]
    (group, value, owner), number = distinct_rows(
        [counts.group[each], listed, provider[each] + 1], sizes
    )
    return [group, value, owner - 1], number
