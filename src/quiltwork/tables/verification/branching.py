"""Which coalitions threaten one group, and who breaches it where none has to be tried.

The lattice of Figure 2, cut where nobody is left to protect: a coalition may hold at most n_G − 1
of the n_G providers with records in the group. Providers that know someone there without having
records in it (they hold another record of the same person) may join too.

Where each person is known to one provider, the largest providers suffice for k-anonymity, and for
distinct l-diversity values are searched by branch and bound (`covered_by_few`).

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import comb

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.constraint import Constraint, KAnonymity
from quiltwork.tables.group import Group

Flags = NDArray[np.bool_]
_SLACK = 1e-6
_NODE, _CELLS_PER_CHECK = 3, 1365
"""What looking at one choice counts as: some three millionths of a second each."""


@dataclass(frozen=True)
class Space:
    """Coalitions of some providers.

    Attributes:
        candidates: who may collude, as positions in the group.
        level: the size of the coalitions to check; for EG-monotonic constraints no other is needed.
        top: the size of the largest coalitions, where searches from above begin.
    """

    candidates: tuple[int, ...]
    level: int
    top: int


def spaces(group: Group, m: int) -> Iterator[Space]:
    """Yield spaces that together hold every coalition of at most m providers."""
    everyone = tuple(range(group.size))
    inside = group.providers_inside
    if inside == group.size:
        yield Space(everyone, min(m, inside - 1), inside - 1)
    elif m < inside:
        yield Space(everyone, m, inside - 1)
    elif group.contributors is not None:
        for spared in group.contributors.nonzero()[0].tolist():
            others = tuple(i for i in everyone if i != spared)
            yield Space(others, min(m, len(others)), len(others))


def number_of_coalitions(group: Group, m: int) -> int:
    """Return how many coalitions there are to check."""
    return sum(comb(len(space.candidates), space.level) for space in spaces(group, m))


class LimitReached(Exception):  # noqa: N818  (a signal between these modules, not an error)
    """A search used up its checks before it came to an end."""


@dataclass
class Checks:
    """Asks whether coalitions breach a constraint, and counts: the paper compares methods by it."""

    group: Group
    constraint: Constraint
    limit: int
    done: int = field(default=0)

    def breached_by(self, coalition: Iterable[int]) -> bool:
        """Tell whether what the coalition leaves violates the constraint."""
        self.count()
        return not self.constraint.holds(self.group.left(coalition))

    def count(self, number: int = 1) -> None:
        """Count more checks, or stop at the limit."""
        self.done += number
        if self.done > self.limit:
            raise LimitReached


@dataclass(frozen=True)
class SearchOutcome:
    """What a search found in one group.

    Attributes:
        coalition: positions of providers that breach; None if there is no such coalition.
        checks: how many sets of records were checked.
        settled: False if the search hit its limit: then nothing is known.
    """

    coalition: tuple[int, ...] | None
    checks: int
    settled: bool = True


def plain_breach(group: Group, part: Constraint, m: int, limit: int) -> SearchOutcome:
    """Look for a coalition that breaches k-anonymity or distinct l-diversity, without trying any.

    Of a group in which each record is known to one provider and has one value.
    """
    if isinstance(part, KAnonymity):
        return SearchOutcome(_largest(group, part.k, min(m, group.size - 1)), 1)
    checks = Checks(group, part, limit)
    try:
        found = _who_leaves_few(group, part.l - 1, m, checks)  # type: ignore[attr-defined]
    except LimitReached:
        return SearchOutcome(None, checks.done - 1, settled=False)
    return SearchOutcome(found, checks.done)


def _largest(group: Group, k: int, size: int) -> tuple[int, ...] | None:
    """Return the fewest of the largest providers without whom less than k are left."""
    records = group.weights.sum(axis=1)
    order = np.argsort(-records, kind="stable")[:size]
    left = int(records.sum()) - np.concatenate([[0], np.cumsum(records[order])])
    short = np.flatnonzero(left < k)
    return tuple(sorted(order[: short[0]].tolist())) if len(short) else None


def _who_leaves_few(group: Group, few: int, m: int, checks: Checks) -> tuple[int, ...] | None:
    """Return a coalition that leaves at most `few` values."""
    holds: NDArray[np.bool_] = group.weights > 0
    spared = group.size - min(m, group.size - 1)
    left = covered_by_few(holds, few, spared, checks.count)
    if left is None:
        return None
    return tuple(np.flatnonzero((holds & ~left).any(axis=1)).tolist())


def covered_by_few(
    holds: Flags, few: int, wanted: int, count: Callable[[int], None]
) -> Flags | None:
    """Return at most `few` values that cover `wanted` providers; None if there are none.

    Fewer than l values are left if and only if those who do not collude hold, all together, at most
    l − 1: so a coalition of s of n providers breaches if some n − s hold values out of one set of
    l − 1. Branch and bound over that set: each provider of j values that could still be covered
    gives 1/j to each of them, and no set covers more providers than its values were given together.
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
        count(_NODE + sets.size // _CELLS_PER_CHECK)
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
