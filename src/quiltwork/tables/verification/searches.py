"""Which coalitions threaten one group, and searches for one that breaches it.

The lattice of Figure 2, cut where nobody is left to protect: a coalition may hold at most n_G − 1
of the n_G providers with records in the group. Providers that know someone there without having
records in it (they hold another record of the same person) may join too.

Where each person is known to one provider, the largest providers suffice for k-anonymity, and for
distinct l-diversity values are searched by branch and bound (`covered_by_few`).

The paper's searches are for EG-monotonic constraints. Coalitions are bit masks over the candidates
in descending order of attack power: bit 0 is the strongest provider. What a safe coalition contains
is safe (downward pruning); what contains a breaching one breaches (upward pruning). All of them are
exponential in the worst case; `covered_by_few` is not, for few values.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, score
from quiltwork.tables.group import Group, Weights

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
        between: the weights that violate, if they are more than what the coalition leaves.
    """

    coalition: tuple[int, ...] | None
    checks: int
    settled: bool = True
    between: Weights | None = None


def plain_breach(group: Group, part: Constraint, m: int, limit: int) -> SearchOutcome:
    """Look for a coalition that breaches k-anonymity or distinct l-diversity, without trying any.

    Of a group in which each record is known to one provider and has one value.
    """
    if isinstance(part, KAnonymity):
        return SearchOutcome(_strongest(group, part.k, min(m, group.size - 1)), 1)
    checks, holds = Checks(group, part, limit), group.weights > 0
    spared = group.size - min(m, group.size - 1)
    try:
        left = covered_by_few(holds, part.values_asked - 1, spared, checks.count)
    except LimitReached:
        return SearchOutcome(None, checks.done - 1, settled=False)
    if left is None:
        return SearchOutcome(None, checks.done)
    taken = np.flatnonzero((holds & ~left).any(axis=1))
    return SearchOutcome(tuple(taken.tolist()), checks.done)


def _strongest(group: Group, k: int, size: int) -> tuple[int, ...] | None:
    """Return the fewest of the largest providers without whom less than k are left."""
    records = group.weights.sum(axis=1)
    order = np.argsort(-records, kind="stable")[:size]
    left = int(records.sum()) - np.concatenate([[0], np.cumsum(records[order])])
    short = np.flatnonzero(left < k)
    return tuple(sorted(order[: short[0]].tolist())) if len(short) else None


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


Method: TypeAlias = Literal["direct", "top-down", "bottom-up", "binary", "adaptive"]
METHODS: tuple[Method, ...] = get_args(Method)

VERIFICATION_ALPHA = 0.3
"""Table II: the weight of diversity when coalitions are ordered."""
THRESHOLD = 0.85
"""Average fitness of the providers below which `adaptive` is `binary`, else `top-down`."""

Breached: TypeAlias = Callable[[int], bool]


def search(
    group: Group, constraint: Constraint, m: int, method: Method, limit: int
) -> SearchOutcome:
    """Look for a coalition of at most m providers that breaches an EG-monotonic constraint."""
    checks = Checks(group, constraint, limit)
    known = [group.known([i]) for i in range(group.size)]
    scores = [score(constraint, one, VERIFICATION_ALPHA) for one in known]
    if method == "adaptive":
        method = "binary" if float(np.mean(scores)) < THRESHOLD else "top-down"
    try:
        for space in spaces(group, m):
            order = sorted(space.candidates, key=lambda i: (-scores[i], i))

            def breached(mask: int, order: list[int] = order) -> bool:
                return checks.breached_by(order[i] for i in _bits(mask))

            found = _SEARCHES[method](Space(tuple(order), space.level, space.top), breached)
            if found is not None:
                return SearchOutcome(tuple(sorted(order[i] for i in _bits(found))), checks.done)
    except LimitReached:
        return SearchOutcome(None, checks.done - 1, settled=False)
    return SearchOutcome(None, checks.done)


def direct(space: Space, breached: Breached) -> int | None:
    """Check every coalition of the level's size until one breaches."""
    every = _strongest_first(range(len(space.candidates)), space.level)
    return next(filter(breached, every), None)


def bottom_up(space: Space, breached: Breached) -> int | None:
    """Check coalitions by growing size; the first that breaches ends the search (early stop)."""
    everyone = range(len(space.candidates))
    every = (mask for n in range(space.level + 1) for mask in _strongest_first(everyone, n))
    return next(filter(breached, every), None)


def top_down(space: Space, breached: Breached) -> int | None:
    """Check coalitions by falling size, leaving out what lies within a safe one.

    Such a coalition has a safe or pruned one directly above it; all others have only breaching
    ones there, so counting these tells which to check.
    """
    layer = list(_largest(space))
    for size in range(space.top, space.level - 1, -1):
        breaching = []
        for mask in layer:
            if breached(mask):
                if size == space.level:
                    return mask
                breaching.append(mask)
        above = Counter(mask & ~(1 << bit) for mask in breaching for bit in _bits(mask))
        everyone = len(space.candidates) - size + 1
        layer = [mask for mask, number in above.items() if number == everyone]
        layer.sort(key=_bits if size - 1 == space.level else operator.neg)
    return None


def binary(space: Space, breached: Breached) -> int | None:
    """Algorithm 1: halve the distance between a breaching coalition and a safe one inside it.

    Its line 6 is read with the missing "not": a largest coalition that does not breach settles
    everything within it.
    """
    safe: list[int] = []
    broken: list[int] = []

    def known_safe(mask: int) -> bool:
        return any(mask & ~whole == 0 for whole in reversed(safe))  # the last ones are like it

    def breaks(mask: int) -> bool:
        if known_safe(mask):
            return False
        if any(part & ~mask == 0 for part in broken):
            return True
        verdict = breached(mask)
        (broken if verdict else safe).append(mask)
        return verdict

    settled: set[int] = set()  # each of the smallest is within many of the largest
    for largest in _largest(space):
        if not breaks(largest):
            continue
        for smallest in _strongest_first(_bits(largest), space.level):
            if smallest in settled:
                continue
            settled.add(smallest)
            if known_safe(smallest):
                continue
            if breaks(smallest):
                return smallest
            _narrow(smallest, largest, breaks)
    return None


def _narrow(inner: int, outer: int, breaks: Breached) -> None:
    """Find a safe coalition and a breaching one that differ by one provider; `breaks` keeps both.

    Between the two, providers join in ascending order of power.
    """
    while (outer & ~inner).bit_count() > 1:
        missing = sorted(_bits(outer & ~inner), reverse=True)
        middle = inner
        for bit in missing[: len(missing) // 2]:
            middle |= 1 << bit
        if breaks(middle):
            outer = middle
        else:
            inner = middle


def _strongest_first(bits: range | list[int], size: int) -> Iterator[int]:
    return (sum(1 << bit for bit in chosen) for chosen in combinations(bits, size))


def _largest(space: Space) -> Iterator[int]:
    """Yield the largest coalitions: weakest first, in the hope that they settle smaller ones."""
    everyone = list(range(len(space.candidates)))
    return _strongest_first(everyone if space.top == space.level else everyone[::-1], space.top)


def _bits(mask: int) -> list[int]:
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits


_SEARCHES: dict[str, Callable[[Space, Breached], int | None]] = {
    "direct": direct,
    "top-down": top_down,
    "bottom-up": bottom_up,
    "binary": binary,
}
