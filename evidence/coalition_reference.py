"""m-privacy by its definition: every coalition, every set of records in between, plain Python.

Shares no code with the package. Records are (provider, sensitive value, person); without subjects
every record is its own person. A coalition knows a person if it holds any of their records in
the whole table, and takes away any subset of the people it knows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, NamedTuple


class Record(NamedTuple):
    provider: Any
    value: Any
    person: Any


Rule = Callable[[Sequence[Record]], bool]


def people(records: Iterable[Record]) -> int:
    return len({record.person for record in records})


def by_value(records: Iterable[Record]) -> Counter:
    """How many people have each value."""
    return Counter(value for _, value in {(r.person, r.value) for r in records})


def k_anonymous(k: int) -> Rule:
    return lambda records: people(records) >= k


def distinct_diverse(number: int) -> Rule:
    return lambda records: len(by_value(records)) >= number


def entropy_diverse(level: Fraction) -> Rule:
    """Entropy ≥ log l as N^N ≥ l^N·Π n^n, in integers."""

    def holds(records: Sequence[Record]) -> bool:
        counts = by_value(records)
        total = sum(counts.values())
        weights = math.prod(n**n for n in counts.values())
        return total > 0 and Fraction(total**total, weights) >= level**total

    return holds


def recursively_diverse(c: Fraction, number: int) -> Rule:
    def holds(records: Sequence[Record]) -> bool:
        falling = sorted(by_value(records).values(), reverse=True)
        return bool(falling) and falling[0] < c * sum(falling[number - 1 :])

    return holds


def close(t: Fraction, whole: Sequence[Record], order: Sequence[Any] | None) -> Rule:
    """Earth mover's distance at most t; `order` None: all values are equally far apart."""
    reference = by_value(whole)

    def holds(records: Sequence[Record]) -> bool:
        counts = by_value(records)
        if not counts:
            return False
        n, m = sum(counts.values()), sum(reference.values())
        gaps = {v: Fraction(counts[v], n) - Fraction(reference[v], m) for v in reference}
        if order is None:
            return sum(gap for gap in gaps.values() if gap > 0) <= t
        heap, moved = Fraction(0), Fraction(0)
        for value in order:
            heap += gaps.get(value, Fraction(0))
            moved += abs(heap)
        return moved <= t * max(len(order) - 1, 1)

    return holds


def coalitions(group: Sequence[Record], table: Sequence[Record], m: int) -> Iterator[frozenset]:
    """Every set of at most m providers that leaves out one with records in the group."""
    persons = {record.person for record in group}
    inside = {record.provider for record in group}
    knowing = sorted({r.provider for r in table if r.person in persons}, key=repr)
    sizes = range(min(m, len(knowing)) + 1)
    for chosen in chain.from_iterable(combinations(knowing, size) for size in sizes):
        if not inside <= set(chosen):
            yield frozenset(chosen)


def known_people(coalition: Iterable[Any], table: Sequence[Record]) -> set:
    return {record.person for record in table if record.provider in coalition}


def breached_plainly(
    group: Sequence[Record], table: Sequence[Record], m: int, rule: Rule
) -> frozenset | None:
    """A coalition that breaches by taking away all it knows."""
    for coalition in coalitions(group, table, m):
        known = known_people(coalition, table)
        if not rule([record for record in group if record.person not in known]):
            return coalition
    return None


def breached(
    group: Sequence[Record], table: Sequence[Record], m: int, rule: Rule
) -> tuple[frozenset, list[Record]] | None:
    """A coalition and a set in between that violates (Definition 2.1, literally)."""
    seen: set[frozenset] = set()
    for coalition in coalitions(group, table, m):
        known = sorted(known_people(coalition, table) & {r.person for r in group}, key=repr)
        for choice in product((False, True), repeat=len(known)):
            gone = frozenset(person for person, out in zip(known, choice, strict=True) if out)
            if gone in seen:
                continue
            seen.add(gone)
            rest = [record for record in group if record.person not in gone]
            if not rule(rest):
                return coalition, rest
    return None
