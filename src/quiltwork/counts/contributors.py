"""Limits on how many rows one person contributes to counts, and levels for people who depend.

`limited_counts` counts at most a few rows of each person, so the sensitivity to one person is
known: of each person's rows in the declared cells it takes the first few, in the given order. Which
rows these are depends on that person's rows alone, so changing one person changes nobody else's
count. Cost: one pass, and one number stored per person.

`substitution_level` is the level that protects people under beliefs about their dependence.

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
    """Counts of cells with at most `at_most` rows from any person; made by `limited_counts`.

    Attributes:
        counts: the rows counted, by cell.
        at_most: the largest number of one person's rows among them.
        subject: the name of the column that identifies people, if there is one.
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
    """Count rows by cell, taking each person's first `at_most` rows in the cells `among`.

    Args:
        cells: the cell of each row.
        subjects: the person of each row; rows without one (None or NaN) count as one person's.
        among: the public cells; rows in other cells are not counted.
        at_most: the largest number of rows counted for one person.

    Raises:
        InvalidInputError: if `cells` and `subjects` differ in length, entries are not hashable, or
            `at_most` is not an integer ≥ 1.

    >>> rows = ["bread", "bread", "milk", "bread"]
    >>> dict(limited_counts(rows, ["ann", "ann", "ann", "bob"], ["bread", "milk"], at_most=2))
    {'bread': 3, 'milk': 0}

    Theorem: docs/theory/geometric-mechanism.md
    """
    limit = integer(at_most, "at_most", 1)
    try:
        public = list(dict.fromkeys(among))
        public_set = set(public)
        pairs = [
            (subject, cell)
            for cell, subject in zip(cells, subjects, strict=True)
            if cell in public_set
        ]
        tally = Counter(first_rows(pairs, limit))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Give one cell and one subject for every row, and the public cells: {error}."
        ) from None
    return LimitedCounts({cell: tally[cell] for cell in public}, limit)


def first_rows(rows: Iterable[tuple[Hashable, Row]], at_most: int) -> Iterator[Row]:
    """Yield the cells of (subject, cell) rows, but for those beyond a subject's first `at_most`."""
    rows_of: dict[Hashable, int] = {}
    for subject, cell in rows:
        person = _person(subject)
        count = rows_of.get(person, 0)
        if count < at_most:
            rows_of[person] = count + 1
            yield cell


def _person(subject: Hashable) -> Hashable:
    """Return the subject, or None if it is missing; NaN does not equal itself."""
    try:
        return subject if subject == subject else None
    except TypeError:  # pandas' NA has no truth value
        return None


_NOTHING_SECRET = Fraction(1000)  # a level of practically no noise, if beliefs leave no secret


def parse_private_count(count: object, n: int, ledger: object) -> int:
    """Validate a private count as an integer in 0..n, without ever showing it.

    Where a ledger pays, a count above n becomes n: an error would leak it without a debit.
    """
    value = private_integer(count, "count")
    # The count is private: the message must not contain it.
    if value > n and ledger is None:
        raise InvalidInputError(
            f"count must lie in 0..n = 0..{n}; check that n is the number of people."
        )
    return min(value, n)


def substitution_level(beliefs: Any, people: int, epsilon: Fraction) -> Fraction:
    """Return the largest dp_epsilon for substituting one person that keeps the leakage at ε.

    Under `Clusters` it is ε divided by the largest cluster; under independence it is ε. At ε = 0 it
    is 0, under any belief.
    """
    from quiltwork.influence import influence_curve

    believed = number_of_people(beliefs)
    if believed not in (None, people):
        raise InvalidInputError(
            f"The belief is about {believed} people, but n is {people}; give the same number."
        )
    if epsilon == 0:
        return Fraction(0)
    level = influence_curve(beliefs, people).dp_epsilon(epsilon)
    return _NOTHING_SECRET if math.isinf(level) else Fraction(level)


def number_of_people(beliefs: Any) -> int | None:
    """Return the number of people in clusters and networks; None for chains of any length."""
    from quiltwork.beliefs import as_beliefs

    lengths = [belief.length for belief in as_beliefs(beliefs)]
    return next((length for length in lengths if length is not None), None)


def belief_digest(beliefs: Any) -> str:
    """Return the SHA-256 of the beliefs' JSON, as recorded with releases."""
    from quiltwork.beliefs import as_beliefs
    from quiltwork.beliefs.sets import digest

    return digest(as_beliefs(beliefs))
