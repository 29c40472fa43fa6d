"""Random range queries, and their answers from boxes over which records are spread evenly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.distinct import NO_SETS, NumberSets
from quiltwork.tables.codes.encoding import Column

Shares: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
_CELLS = 1_000_000  # groups × queries answered at a time, to bound the memory
LEAST_SHARE = 0.001
"""Errors are relative to the true count, but to at least this share of the rows."""


@dataclass(frozen=True, eq=False)
class Covers:
    """The values of a column that labels cover: ranges of its codes, or sets of them.

    Attributes:
        values: the number of values of the column; a missing one is the last.
        lower: of each label the lowest code, apart from the missing value.
        upper: likewise the highest; under a hierarchy, of everything that the label covers.
        missing: whether the label includes the missing value beside others of an ordered column.
        members: the sets of categories, or None where labels are ranges.
    """

    values: int
    lower: Codes
    upper: Codes
    missing: NDArray[np.bool_]
    members: NumberSets | None

    def share(self, labels: Codes, first: Codes, final: Codes) -> Shares:
        """Return label × query: the share of the label's values with codes first..final."""
        if self.members is not None:
            below = self._below[labels]
            return np.asarray((below[:, final + 1] - below[:, first]) / below[:, -1:])
        lower, upper, missing = (
            side[labels, None] for side in (self.lower, self.upper, self.missing)
        )
        inside = np.maximum(np.minimum(upper, final) - np.maximum(lower, first) + 1, 0)
        inside = inside + (missing & (first < self.values) & (self.values <= final + 1))
        return np.asarray(inside / (upper - lower + 1 + missing), dtype=np.float64)

    @cached_property
    def _below(self) -> NDArray[np.int32]:
        """For each set and code, the number of members below the code."""
        sets = self.members or NO_SETS
        below = np.zeros((len(sets), self.values + 1), dtype=np.int32)
        below[np.repeat(np.arange(len(sets)), sets.sizes), sets.members + 1] = 1
        return np.cumsum(below, axis=1, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Coverage:
    """The groups of a published table.

    Attributes:
        columns: for each quasi-identifier, the values that its labels cover.
        sizes: the records of each group.
        label_of: group × quasi-identifier, the index of its label; None if each group has its own.
    """

    columns: tuple[Covers, ...]
    sizes: NDArray[np.int64]
    label_of: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class RangeQuery:
    """A count of the records with codes first..last in each of some columns.

    Attributes:
        ranges: (column, first code, last code), one per predicate.
    """

    ranges: tuple[tuple[int, int, int], ...]


def random_queries(domains: Sequence[int], seed: int) -> Iterator[RangeQuery]:
    """Yield random queries, endlessly, over columns with the given numbers of values.

    A query has 2..q/2 predicates (all numbers equally likely; 2 if q < 4, 1 if q = 1) on different
    columns; each range lies between two values of the column, drawn independently.
    """
    rng = np.random.default_rng(seed)
    columns, sizes = len(domains), np.array(domains)
    most_predicates = max(min(2, columns), columns // 2)
    while True:
        predicates = int(rng.integers(min(2, columns), most_predicates + 1))
        chosen = rng.choice(columns, size=predicates, replace=False)
        ends = np.sort(rng.integers(0, sizes[chosen, None], size=(predicates, 2)))
        yield RangeQuery(
            tuple((int(c), int(a), int(b)) for c, (a, b) in zip(chosen, ends, strict=True))
        )


def true_count(codes: list[NDArray[Any]], query: RangeQuery) -> int:
    """Return the number of rows of a query; unsigned codes make a range one comparison."""
    inside: NDArray[np.bool_] | None = None
    for column, first, last in query.ranges:
        kind = codes[column].dtype.type
        # Codes below `first` wrap around to large numbers: one comparison tests both ends.
        hit = (codes[column] - kind(first)) <= kind(last - first)
        inside = hit if inside is None else inside & hit
    return 0 if inside is None else int(np.count_nonzero(inside))


def answers(
    cover: Coverage, queries: Sequence[RangeQuery], part: Codes | None = None, parts: int = 1
) -> Shares:
    """Return part × query: the expected count if records are spread evenly over each box.

    `part` is the part of the table that each group belongs to. Cost: O(queries · groups).
    """
    of_column = [
        np.array([(at, *ends) for at, q in enumerate(queries) for c, *ends in q.ranges if c == col])
        for col in range(len(cover.columns))
    ]
    totals = np.zeros((parts, len(queries)))
    step = max(1, _CELLS // max(1, len(queries)))
    # Groups of one part must be adjacent for reduceat.
    order = np.arange(len(cover.sizes)) if part is None else np.argsort(part, kind="stable")
    for start in range(0, len(order), step):
        portion = order[start : start + step]
        inside = np.repeat(cover.sizes[portion, None].astype(np.float64), len(queries), axis=1)
        for column, (covers, ranges) in enumerate(zip(cover.columns, of_column, strict=True)):
            if len(ranges):
                at, first, final = ranges.T
                labels = portion if cover.label_of is None else cover.label_of[portion, column]
                inside[:, at] *= covers.share(labels, first, final)
        part_of = np.zeros(len(portion), dtype=np.int64) if part is None else part[portion]
        run_start = np.flatnonzero(np.diff(part_of, prepend=-1))
        totals[part_of[run_start]] += np.add.reduceat(inside, run_start, axis=0)
    return totals


def small_codes(columns: Sequence[Column]) -> list[NDArray[Any]]:
    """Return the columns' codes in the smallest unsigned type that holds them."""
    return [
        column.codes.astype(np.min_scalar_type(max(1, len(column.values) - 1)))
        for column in columns
    ]
