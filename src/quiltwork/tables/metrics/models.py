"""The values of privacy models for a table: the largest k and l, the smallest t, β and δ it has.

Each is the definition of its paper evaluated at the table's worst group, from the number of times
that each sensitive value occurs in each group; only pairs (group, value) that occur are stored.
Several sensitive columns are judged one by one and the worst counts, as in pycanon. If the table
names its subjects, people are counted instead of records, as the verification does. Cost: one sort
of the rows, or one pass where groups × values fit in a small array.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.tables.codes.distinct import distinct_rows
from quiltwork.tables.codes.encoding import Column, merge_spellings
from quiltwork.tables.table import Table, secret_classes


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Records by group and sensitive value, for the pairs that occur, sorted by group, then value.

    Attributes:
        group: the group of each pair.
        value: the code of the value of each pair.
        records: the number of records with both.
        sizes: the number of records of each group.
        values: the number of values of the column.
        totals: the records of each value in the whole table, if they are not the sums over groups:
            a person in two groups counts once in the whole.
    """

    group: NDArray[np.int64]
    value: NDArray[np.int64]
    records: NDArray[np.int64]
    sizes: NDArray[np.int64]
    values: int
    totals: NDArray[np.int64] | None = None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The index at which the pairs of each group start."""
        return np.searchsorted(self.group, np.arange(len(self.sizes)))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of each pair's value within its group."""
        return np.asarray(self.records / self.sizes[self.group], dtype=np.float64)

    @cached_property
    def overall(self) -> NDArray[np.float64]:
        """The share of every value in the whole table."""
        totals = self.totals
        if totals is None:
            totals = np.bincount(self.value, weights=self.records, minlength=self.values)
        return np.asarray(totals / totals.sum(), dtype=np.float64)


def people_per_group(table: Table) -> NDArray[np.int64]:
    """Return the number of different people in each group: records, if no subjects are named."""
    groups, subject, labels = table.groups, table.encoded.subject, table.groups.labels
    if subject is not None:
        (labels, _), _ = distinct_rows([labels, subject], [groups.count, int(subject.max()) + 1])
    return np.bincount(labels, minlength=groups.count)


def value_counts(
    labels: NDArray[np.int64],
    codes: NDArray[np.integer[Any]],
    groups: int,
    values: int,
    subject: NDArray[np.int64] | None = None,
) -> ValueCounts:
    """Count the pairs of group and value that occur.

    With `subject`, people are counted instead of records: each once for every value that they have
    in a group.

    >>> labels, codes = np.array([0, 0, 1]), np.array([2, 2, 0])
    >>> counts = value_counts(labels, codes, 2, 3)
    >>> counts.records.tolist(), counts.overall.round(2).tolist()
    ([2, 1], [0.33, 0.0, 0.67])
    >>> value_counts(labels, codes, 2, 3, subject=np.array([7, 7, 7])).records.tolist()
    [1, 1]
    """
    totals = None
    if subject is not None:
        people = int(subject.max()) + 1
        (value_of, _), _ = distinct_rows([codes, subject], [values, people])
        totals = np.bincount(value_of, minlength=values)
        (labels, codes, _), _ = distinct_rows([labels, codes, subject], [groups, values, people])
    (group, value), records = distinct_rows([labels, codes], [groups, values])
    return ValueCounts(group, value, records, np.bincount(labels, minlength=groups), values, totals)


@dataclass(frozen=True)
class Models:
    """The value that a table has of each privacy model, at its worst group.

    Attributes:
        k: every group has at least k records (people, if the table names its subjects). Records
            without a sensitive value count for k alone, as they do for constraints.
        alpha: no value has a larger share of a group ((α, k)-anonymity).
        distinct_l: every group has at least l distinct values.
        entropy_l: every group's entropy is at least log l (l need not be a whole number).
        recursive_c: the smallest whole c for which every group is recursively (c, l)-diverse with l
            = distinct_l: the most frequent value occurs less often than c times all values from the
            l-th most frequent on together. None if l is 1.
        t: the largest distance between a group's distribution and the table's: the ordered distance
            for numeric and ordinal columns, the equal distance for categorical ones.
        beta: the largest relative gain (q − p)/p of a value in a group (β-likeness).
        enhanced_beta: the same, capped by the largest −ln p.
        delta: the largest |ln(q/p)| of a value that occurs in a group (δ-disclosure).
    """

    k: int
    alpha: float
    distinct_l: int
    entropy_l: float
    recursive_c: int | None
    t: float
    beta: float
    enhanced_beta: float
    delta: float


def privacy_models(table: Table) -> Models:
    """Compute the value of every privacy model for a table as it stands.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["3*", "3*", "4*", "4*"], "ill": ["a", "b", "a", "a"]})
    >>> models = privacy_models(Table(frame, None, ["age"], "ill"))
    >>> models.k, models.distinct_l, models.t, round(models.beta, 3)
    (2, 1, 0.25, 1.0)
    """
    columns = _judged_counts(table)
    counts = [column_counts for column_counts, _, _ in columns]
    # A group without any value has zero distinct values, whatever the other groups have.
    level = min(
        0 if has_empty_group else int(np.bincount(column_counts.group).min())
        for column_counts, _, has_empty_group in columns
    )
    gains = [
        column_counts.shares / column_counts.overall[column_counts.value]
        for column_counts in counts
    ]
    betas = [float(gain.max() - 1) for gain in gains]
    rarest = [
        -math.log(column_counts.overall[column_counts.overall > 0].min())
        for column_counts in counts
    ]
    distances = [
        (ordered_distance if ordered else equal_distance)(column_counts).max()
        for column_counts, ordered, _ in columns
    ]
    has_empty_group = any(has_empty_group for *_, has_empty_group in columns)
    return Models(
        k=int(people_per_group(table).min()),
        alpha=max(float(column_counts.shares.max()) for column_counts in counts),
        distinct_l=level,
        entropy_l=0.0
        if has_empty_group
        else float(min(np.exp(entropies(column_counts).min()) for column_counts in counts)),
        recursive_c=None
        if level < 2
        else max(_recursive_c(column_counts, level) for column_counts in counts),
        t=float(max(distances)),
        beta=max(betas),
        enhanced_beta=max(map(min, betas, rarest)),
        delta=max(float(np.abs(np.log(gain)).max()) for gain in gains),
    )


def _judged_counts(table: Table) -> list[tuple[ValueCounts, bool, bool]]:
    """Return the counts of each sensitive column by the classes that constraints count.

    With each, whether its values have an order, and whether some group has no value at all; the
    other groups are renumbered.
    """
    columns = []
    groups, subject = table.groups, table.encoded.subject
    for name in table.sensitive:
        column = sensitive_column(table, name)
        class_of, labels = secret_classes(table, column.codes, len(column.values), [column])
        codes, rows, values = column.codes, np.arange(table.encoded.rows), len(column.values)
        ordered = column.kind != "categorical" and name not in table.levels
        # Classes after the last are records without a value: only k counts them.
        if class_of is not None:
            codes, values = class_of[column.codes], len(labels)
            rows = np.flatnonzero(codes < values)
        present, group_of = np.unique(groups.labels[rows], return_inverse=True)
        people = None if subject is None else subject[rows]
        if not len(group_of):
            raise InvalidInputError(
                f"Column {name!r} has only missing values, so that no model can be computed."
            )
        counts = value_counts(group_of, codes[rows], len(present), values, people)
        columns.append((counts, ordered, len(present) < groups.count))
    return columns


def attribute_counts(table: Table) -> dict[str, ValueCounts]:
    """Return the counts of each sensitive column by its values as they are."""
    groups, subject = table.groups, table.encoded.subject
    counts = {}
    for name in table.sensitive:
        column = sensitive_column(table, name)
        values = len(column.values)
        counts[name] = value_counts(groups.labels, column.codes, groups.count, values, subject)
    return counts


def sensitive_column(table: Table, name: str) -> Column:
    """Return one sensitive column as codes."""
    encoded = table.encoded
    if len(table.sensitive) == 1:
        kind, values = encoded.sensitive_kind, encoded.sensitive_values
        return Column(name, kind, values, encoded.sensitive)
    return merge_spellings(encoded.secrets[table.sensitive.index(name)])


def entropies(counts: ValueCounts) -> NDArray[np.float64]:
    """Return each group's entropy in nats."""
    terms = -counts.shares * np.log(counts.shares)
    return np.asarray(np.add.reduceat(terms, counts.starts), dtype=np.float64)


def equal_distance(counts: ValueCounts) -> NDArray[np.float64]:
    """Return each group's total variation distance from the table's distribution.

    A value that is absent from the group contributes its overall share, so that the sum runs over
    the values that occur only: ½ (1 + Σ (|q − p| − p)).
    """
    overall = counts.overall[counts.value]
    terms = np.abs(counts.shares - overall) - overall
    return np.asarray((np.add.reduceat(terms, counts.starts) + 1) / 2, dtype=np.float64)


def ordered_distance(counts: ValueCounts) -> NDArray[np.float64]:
    """Return each group's ordered distance: Σ |cumulative q − cumulative p| / (values − 1).

    Cumulative q is constant between two values of the group, and cumulative p ascends, so each
    interval is two sums of p: one before and one after the point where they cross.
    """
    # A single value has no distances.
    if counts.values == 1:
        return np.zeros(len(counts.sizes))
    cumulative = np.cumsum(counts.overall)
    sums = np.concatenate([[0.0], np.cumsum(cumulative)])
    stops = np.append(counts.starts[1:], len(counts.group))
    start = counts.value
    stop = np.append(counts.value[1:], counts.values)
    stop[stops - 1] = counts.values
    running = np.cumsum(counts.shares)
    before = np.concatenate([[0.0], running])[counts.starts]
    level = running - np.repeat(before, np.diff(np.append(counts.starts, len(counts.group))))
    crossing = np.clip(np.searchsorted(cumulative, level), start, stop)
    interval_sum = (crossing - start) * level - (sums[crossing] - sums[start])
    interval_sum += (sums[stop] - sums[crossing]) - (stop - crossing) * level
    first = counts.value[counts.starts]  # below a group's first value its cumulative q is 0
    total = np.add.reduceat(interval_sum, counts.starts) + sums[first]
    return np.asarray(total / (counts.values - 1), dtype=np.float64)


def _recursive_c(counts: ValueCounts, level: int) -> int:
    """Return the smallest whole c with r_1 < c (r_l + … + r_last) in every group."""
    order = np.lexsort((-counts.records, counts.group))
    records = counts.records[order]
    rank = np.arange(len(records)) - counts.starts[counts.group]
    tails = np.add.reduceat(np.where(rank >= level - 1, records, 0), counts.starts)
    return int((records[counts.starts] // tails + 1).max())
