"""People who are counted: those with several rows, and those who depend on each other.

In `limited_counts` nobody has more than a few rows, so that the weight of one person is known.
Of each person's rows in the declared cells the first few are counted, in the order given. Which
they are depends on that person's rows alone, so adding, removing or replacing all rows of one
person changes what is counted of nobody else. Cost: one pass, and one number kept for each person.

`substitution_level` is what it takes to protect people under beliefs.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, private_integer

Cell = Hashable
Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class LimitedCounts(Mapping[Cell, int]):
    """Counts of cells with at most `at_most` rows of any person; made by `limited_counts`.

    Attributes:
        counts: the rows counted, by cell.
        at_most: how many rows of one person are among them at most.
        subject: the name of the column that tells people apart, if it has one.
    """

    counts: Mapping[Cell, int]
    at_most: int
    subject: str | None = None

    def __getitem__(self, cell: Cell) -> int:
        return self.counts[cell]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)


def limited_counts(
    cells: Iterable[Cell],
    subjects: Iterable[Hashable],
    among: Iterable[Cell],
    at_most: int = 1,
) -> LimitedCounts:
    """Count rows by cell, of each person the first `at_most` that are in one of the cells `among`.

    `cells` and `subjects` have one entry per row: where it counts, and whose it is. Rows whose
    subject is missing (None or NaN) are taken as one person's. `among` are the public cells.

    Raises:
        InvalidInputError: if there are more cells than subjects or fewer, entries that cannot be
            told apart, or `at_most` is no integer ≥ 1.

    >>> rows = ["bread", "bread", "milk", "bread"]
    >>> dict(limited_counts(rows, ["ann", "ann", "ann", "bob"], ["bread", "milk"], at_most=2))
    {'bread': 3, 'milk': 0}

    Theorem: docs/theory/geometric-mechanism.md
    """
    limit = integer(at_most, "at_most", 1)
    try:
        public = list(dict.fromkeys(among))
        known = set(public)
        pairs = [
            (subject, cell) for cell, subject in zip(cells, subjects, strict=True) if cell in known
        ]
        counted = Counter(first_rows(pairs, limit))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Give one cell and one subject for every row, and the public cells: {error}."
        ) from None
    return LimitedCounts({cell: counted[cell] for cell in public}, limit)


def first_rows(rows: Iterable[tuple[Hashable, Row]], at_most: int) -> Iterator[Row]:
    """Yield the cells of (subject, cell) rows, but for those beyond a subject's first `at_most`."""
    seen: dict[Hashable, int] = {}
    for subject, cell in rows:
        person = _person(subject)
        times = seen.get(person, 0)
        if times < at_most:
            seen[person] = times + 1
            yield cell


def _person(subject: Hashable) -> Hashable:
    """Return the subject, or None for what is missing: NaN is not even itself."""
    try:
        return subject if subject == subject else None
    except TypeError:  # pandas' NA is neither
        return None


_NOTHING_SECRET = Fraction(1000)  # beliefs that leave nothing open: practically no noise


def parse_private_count(count: object, n: int, ledger: object) -> int:
    """Return a private count as an integer in 0..n, never showing it.

    Where a ledger pays, one above n counts as n: an error would tell about it for free.
    """
    value = private_integer(count, "count")
    if value > n and ledger is None:
        raise InvalidInputError(f"count must lie in 0..n = 0..{n}; is n right?")
    return min(value, n)


def substitution_level(beliefs: Any, people: int, epsilon: Fraction) -> Fraction:
    """Return the largest dp_epsilon, for substituting one person, that keeps `beliefs` at ε.

    Under `Clusters` it is ε divided by the largest cluster; under independence it is ε. At ε = 0
    nothing is told, whatever anybody believes.
    """
    from quiltwork.influence import influence_curve

    own = number_of_people(beliefs)
    if own not in (None, people):
        raise InvalidInputError(f"The belief is about {own} people, the count about {people}.")
    if epsilon == 0:
        return Fraction(0)
    level = influence_curve(beliefs, people).dp_epsilon(epsilon)
    return _NOTHING_SECRET if math.isinf(level) else Fraction(level)


def number_of_people(beliefs: Any) -> int | None:
    """Return how many people clusters and networks are about; None for chains of any length."""
    from quiltwork.beliefs import as_beliefs

    lengths = [belief.length for belief in as_beliefs(beliefs)]
    return next((length for length in lengths if length is not None), None)


def belief_digest(beliefs: Any) -> str:
    """Return the SHA-256 of the beliefs' JSON, as releases record it."""
    from quiltwork.beliefs import as_beliefs
    from quiltwork.beliefs.sets import digest

    return digest(as_beliefs(beliefs))
