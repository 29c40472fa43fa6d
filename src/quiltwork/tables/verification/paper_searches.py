"""The paper's searches for a coalition that breaches a group: Section III, in its words.

They need an EG-monotonic constraint. Coalitions are bit masks over the candidates in descending
order of attack power: bit 0 is the strongest provider. Every subset of a safe coalition is safe
(downward pruning), every superset of a breaching one breaches (upward pruning). All of them are
exponential in the worst case.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np

from quiltwork.tables.codes.group import Group
from quiltwork.tables.constraints.constraint import Constraint, score
from quiltwork.tables.verification.coalitions import Checks, Space, spaces

Method: TypeAlias = Literal["direct", "top-down", "bottom-up", "binary", "adaptive"]
METHODS: tuple[Method, ...] = get_args(Method)

VERIFICATION_ALPHA = 0.3
"""Table II: the weight of diversity when coalitions are ordered."""
THRESHOLD = 0.85
"""Below this average fitness of providers, `adaptive` is `binary`, else `top-down`.

The value is the paper's; it was not calibrated on this code.
"""

Breached: TypeAlias = Callable[[int], bool]


def search(
    group: Group, constraint: Constraint, m: int, method: Method, checks: Checks
) -> tuple[int, ...] | None:
    """Search for a coalition of at most m providers that breaches an EG-monotonic constraint.

    Raises:
        LimitReached: if that takes too many checks.
    """
    known_records = [group.known([i]) for i in range(group.size)]
    scores = [score(constraint, records, VERIFICATION_ALPHA) for records in known_records]
    if method == "adaptive":
        method = "binary" if float(np.mean(scores)) < THRESHOLD else "top-down"
    # With shared people there is one space for each provider that stays out.
    for space in spaces(group, m):
        order = sorted(space.candidates, key=lambda i: (-scores[i], i))

        def breached(mask: int, order: list[int] = order) -> bool:
            return checks.breached_by(order[i] for i in _bits(mask))

        mask = _SEARCHES[method](Space(tuple(order), space.level, space.top), breached)
        if mask is not None:
            return tuple(sorted(order[i] for i in _bits(mask)))
    return None


def direct(space: Space, breached: Breached) -> int | None:
    """Check every coalition of the level's size until one breaches."""
    masks = _strongest_first(range(len(space.candidates)), space.level)
    return next(filter(breached, masks), None)


def bottom_up(space: Space, breached: Breached) -> int | None:
    """Check coalitions by growing size; the first breach ends the search (early stop)."""
    everyone = range(len(space.candidates))
    masks = (mask for n in range(space.level + 1) for mask in _strongest_first(everyone, n))
    return next(filter(breached, masks), None)


def top_down(space: Space, breached: Breached) -> int | None:
    """Check coalitions by falling size, skipping subsets of safe ones.

    A skipped coalition has a safe or skipped one directly above it; all others have only breaching
    ones there, so counting the breaching supersets determines which to check.
    """
    layer = list(_largest(space))
    for size in range(space.top, space.level - 1, -1):
        breaching = []
        for mask in layer:
            if breached(mask):
                if size == space.level:
                    return mask
                breaching.append(mask)
        breaching_supersets = Counter(
            mask & ~(1 << bit) for mask in breaching for bit in _bits(mask)
        )
        supersets = len(space.candidates) - size + 1
        layer = [mask for mask, number in breaching_supersets.items() if number == supersets]
        # At the last level the strongest coalition first; above it the weakest, to prune more.
        layer.sort(key=_bits if size - 1 == space.level else operator.neg)
    return None


def binary(space: Space, breached: Breached) -> int | None:
    """Algorithm 1: halve the distance between a breaching coalition and a safe one inside it.

    Its line 6 is read with the missing "not": a largest coalition that does not breach settles all
    of its subsets.
    """
    safe: list[int] = []
    broken: list[int] = []

    def known_safe(mask: int) -> bool:
        return any(mask & ~safe_set == 0 for safe_set in reversed(safe))  # recent: most similar

    def breaks(mask: int) -> bool:
        if known_safe(mask):
            return False
        if any(part & ~mask == 0 for part in broken):
            return True
        verdict = breached(mask)
        (broken if verdict else safe).append(mask)
        return verdict

    settled: set[int] = set()  # smallest coalitions recur in many of the largest
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
    """Find a safe and a breaching coalition that differ by one provider; `breaks` records both.

    Between the two, providers are added in ascending order of power.
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
    """Yield the largest coalitions, the weakest first: if safe, they settle many smaller ones."""
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
