"""Intersection of two releases about the same people: the people that both together pin down.

Each release alone leaves several values possible for a person. Both together leave fewer: values
that only one of a person's groups has are impossible, and so are those that others must have, as
the counts of every group are met exactly. Someone who knows the people's groups, because the tables
name their subjects or by quasi-identifiers, compares the values of a person's two groups: that is
counted. What counting adds is bounded. All of it assumes that a person's sensitive value did not
change in between. Cost: O(rows) with subjects, else O(groups² · quasi-identifiers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import mapping_by_column
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.results import ResultBase
from quiltwork.tables.codes.distinct import concatenated_ranges
from quiltwork.tables.codes.encoding import encode_column
from quiltwork.tables.input.canonical_values import canonical_value
from quiltwork.tables.input.frames import ArrowFrame
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.recipe import partition
from quiltwork.tables.publishing.published_records import Publication, assemble, require_local
from quiltwork.tables.risk.overlaps import ColumnLabels, overlaps
from quiltwork.tables.table import Table, as_table, check_same_roles, parse_orders

MOST_PAIRS = 2_000_000_000
"""The most pairs of groups that are compared."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Intersection(ResultBase):
    """People that two releases pin down together, though no group of theirs has a single value.

    Both bounds are about someone who knows everybody's groups, and counts.

    Attributes:
        linked: by "subjects", or by overlapping "groups".
        people: the number of people in both tables; None if unknown.
        least: at least so many people have one possible value left; without subjects, if everyone
            of the table with fewer records is in the other one too.
        most: at most so many of those who are in both, whoever that is.
        by_values: people for whom the values of their two groups leave one, without counting;
            without subjects, at most so many.
        alone: people who are the only ones in both their groups; None without subjects.
        changed: people with different values, within or between the tables, about whom nothing is
            concluded; None without subjects.
        rehearsed: whether the other table was made for the comparison (`rehearse_intersection`).
    """

    also = ("exact",)
    linked: Literal["subjects", "groups"]
    people: int | None
    least: int
    most: int
    by_values: int
    alone: int | None = None
    changed: int | None = None
    rehearsed: bool = False

    @property
    def exact(self) -> bool:
        """Whether the number is exact; never without subjects."""
        return self.linked == "subjects" and self.least == self.most

    def explain(self) -> str:
        """Return in a few sentences how many people both tables pin down, and how certainly."""
        if self.linked == "groups":
            bound = f"at most {self.most:,}" if self.most else "none"
            condition = f"; {self.least:,} have if everyone of the smaller table is in the other"
            return (
                f"Of the people in both, {bound} can have one possible value left for someone who "
                f"knows everybody's groups and counts, and at most {self.by_values:,} by the "
                f"values of their two groups alone{condition if self.least else ''}. These are "
                "bounds; name the subjects of both tables for exact numbers."
            )
        changed = ""
        if self.changed:
            changed = f" Nothing is concluded about {self.changed:,} with different values."
        return (
            f"{self.people:,} people are in both. For {self.by_values:,} of them, only one value "
            "occurs in both their groups; someone who also counts records can determine the value "
            f"of at most {self.most:,}. {self.alone:,} are alone in both their groups.{changed}"
        )


@dataclass(frozen=True, eq=False)
class _Release:
    """One table's groups, with sensitive values in codes that both tables share."""

    labels: Counts
    codes: Counts
    counts: Counts

    @classmethod
    def of(cls, labels: Counts, codes: Counts, groups: int, values: int) -> _Release:
        """Count the values of each group."""
        cells = np.bincount(labels * values + codes, minlength=groups * values)
        return cls(labels, codes, cells.reshape(groups, values))

    @property
    def variety(self) -> Counts:
        return np.asarray((self.counts > 0).sum(axis=1), dtype=np.int64)


def intersection(
    earlier: Table,
    later: Table,
    ordinal: Mapping[str, Sequence[Any]] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
) -> Intersection:
    """Count the people that an earlier and a later release pin down together.

    `ordinal` and `hierarchies` define how published texts are read, as for `Table`: the order of
    the values in `small..large`, the leaves under a label.

    Raises:
        InvalidInputError: if the tables have different quasi-identifiers or sensitive columns, or
            another column is declared.
        UnsupportedError: for too many groups to compare.

    >>> import pandas
    >>> ill = ["flu", "cold", "cold", "gout"]
    >>> first = pandas.DataFrame({
    ...     "age": ["20..29", "20..29", "30..39", "30..39"], "sex": "{f, m}", "ill": ill})
    >>> second = pandas.DataFrame({"age": "20..39", "sex": ["f", "m", "f", "m"], "ill": ill})
    >>> tables = [Table(frame, None, ["age", "sex"], "ill") for frame in (first, second)]
    >>> result = intersection(*tables)
    >>> result.by_values  # a man in his twenties and a woman in her thirties: cold
    2
    >>> result.most  # then only the woman in her twenties can have the flu
    4
    """
    check_same_roles(as_table(earlier), as_table(later))
    orders, trees = parse_orders(ordinal), mapping_by_column(hierarchies, "hierarchies")
    for name in (*orders, *trees):
        if name not in earlier.quasi_identifiers:
            raise InvalidInputError(f"Column {name!r} is declared, but is not a quasi-identifier.")
    releases = _releases(earlier, later)
    # With subjects the pairs of groups are known; otherwise all overlapping pairs count.
    if earlier.subject is not None and later.subject is not None:
        return _by_subject(*_people(earlier, later), *releases)
    overlap_of, earlier_codes, later_codes = [], [], []
    others = {column.name: column for column in later.encoded.quasi}
    for column in earlier.encoded.quasi:
        name, other = column.name, others[column.name]
        reading = ColumnLabels.of(name, orders.get(name), trees.get(name))
        overlap_of.append(overlaps(reading, column.values, other.values))
        earlier_codes.append(column.codes[earlier.groups.first].astype(np.int64))
        later_codes.append(other.codes[later.groups.first].astype(np.int64))
    return _by_groups(*releases, list(zip(overlap_of, earlier_codes, later_codes, strict=True)))


def _releases(earlier: Table, later: Table) -> tuple[_Release, _Release]:
    """Return the groups of both tables, with common codes of sensitive values."""
    canonical = [
        [canonical_value(v) for v in table.encoded.sensitive_values] for table in (earlier, later)
    ]
    values = sorted({*canonical[0], *canonical[1]}, key=repr)
    code = {value: place for place, value in enumerate(values)}
    releases = []
    for table, own in zip((earlier, later), canonical, strict=True):
        recode = np.array([code[value] for value in own], dtype=np.int64)
        codes, groups = recode[table.encoded.sensitive], table.groups
        releases.append(_Release.of(groups.labels, codes, groups.count, len(values)))
    return releases[0], releases[1]


def rehearse_intersection(publication: Publication) -> Intersection:
    """Count the people that the table would pin down together with another table of the same rows.

    The other table is made by the same rules except for its cuts: by range if these are by loss,
    and otherwise as if every quasi-identifier counted half as much as the one before. It is an
    example of a second release; never publish both.

    Raises:
        InvalidInputError: if the argument is not a publication.
    """
    published = require_local(publication)
    encoded, recipe = published.source.encoded, published.recipe
    records, second = records_of(encoded), recipe
    # Another cut is needed: the same rule would make the same table.
    if recipe.rules.split == "range":
        weights = tuple(0.5**place for place in range(len(encoded.quasi)))
        records = replace(records, axes=replace(records.axes, weights=weights))
    else:
        second = replace(recipe, rules=replace(recipe.rules, split="range"))
    other = assemble(published.source, partition(encoded, records, second), second)
    width, codes = len(encoded.sensitive_values), encoded.sensitive.astype(np.int64)
    releases = tuple(
        _Release.of(table.labels.astype(np.int64), codes[table.rows], table.boxes.count, width)
        for table in (published, other)
    )
    person = np.arange(encoded.rows) if encoded.subject is None else encoded.subject
    result = _by_subject(person[published.rows], person[other.rows], *releases)
    return replace(result, rehearsed=True)


def _by_subject(before: Counts, after: Counts, first: _Release, second: _Release) -> Intersection:
    """Bound the people pinned down if both tables name their subjects."""
    person = np.concatenate((before, after))
    group = np.concatenate((first.labels, len(first.counts) + second.labels))
    is_steady = _steady(person, np.concatenate((first.codes, second.codes)))
    single = np.concatenate((first.variety, second.variety))[group] == 1
    is_open = is_steady & ~np.isin(np.arange(len(is_steady)), person[single])
    matching = _matching(before, after)
    pair = first.labels[matching[0]] * len(second.counts) + second.labels[matching[1]]
    person_of = before[matching[0]]
    people_in_pair = np.unique(
        np.unique(np.stack((pair, person_of), axis=1), axis=0)[:, 0], return_counts=True
    )
    pairs, pair_number = np.unique(pair, return_inverse=True)
    earlier_group, later_group = np.divmod(pairs, len(second.counts))
    shared = ((first.counts[earlier_group] > 0) & (second.counts[later_group] > 0)).sum(axis=1)[
        pair_number
    ]
    partners = _Partners(first.counts, second.counts)
    for number, near in zip(*_runs(earlier_group, later_group), strict=True):
        partners.add(number, near)
    by_values = len(np.unique(person_of[(shared == 1) & is_open[person_of]]))
    people = np.unique(person_of)
    return Intersection(
        "subjects",
        len(people),
        least=by_values,
        most=max(min(partners.most(), int(is_open[people].sum())), by_values),
        by_values=by_values,
        alone=int((people_in_pair[1] == 1).sum()),
        changed=int((~is_steady).sum()),
    )


def _runs(sorted_keys: Counts, values: Counts) -> tuple[list[int], list[Counts]]:
    """Return the distinct keys, and the values of each."""
    if not len(sorted_keys):
        return [], []
    keys, start = np.unique(sorted_keys, return_index=True)
    return keys.tolist(), np.split(values, start[1:])


def _steady(person: Counts, value: Counts) -> NDArray[np.bool_]:
    """Return, for each person, whether all their records have one value."""
    low = np.full(int(person.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), -1)
    np.minimum.at(low, person, value)
    np.maximum.at(high, person, value)
    return np.asarray(low == high)


def _people(earlier: Table, later: Table) -> tuple[Counts, Counts]:
    """Number the subjects of both tables consistently."""
    import pyarrow as pa

    names = [str(table.subject) for table in (earlier, later)]
    columns = [
        t.data.column(name).cast(pa.string())
        for t, name in zip((earlier, later), names, strict=True)
    ]
    both = pa.concat_arrays([c.combine_chunks() if hasattr(c, "chunks") else c for c in columns])
    codes = encode_column(ArrowFrame.of(pa.table({"person": both})), "person").codes.astype(
        np.int64
    )
    return codes[: earlier.encoded.rows], codes[earlier.encoded.rows :]


def _matching(before: Counts, after: Counts) -> tuple[Counts, Counts]:
    """Return all pairs of rows about the same person, as two arrays of row numbers.

    The rows of `after` are sorted by person; those of the person of row i are start[i]:stop[i].
    """
    order = np.argsort(after, kind="stable")
    start, stop = (np.searchsorted(after[order], before, side=side) for side in ("left", "right"))
    sizes = stop - start
    return np.repeat(np.arange(len(before)), sizes), order[concatenated_ranges(start, sizes)]


def _by_groups(
    first: _Release, second: _Release, columns: Sequence[tuple[NDArray[np.bool_], Counts, Counts]]
) -> Intersection:
    """Bound from groups; `columns` are which labels overlap, and the labels of both tables."""
    pairs = len(first.counts) * len(second.counts)
    if pairs > MOST_PAIRS:
        raise UnsupportedError(
            f"{pairs:,} pairs of groups are too many to compare; name the subjects of both tables, "
            "or compare a sample."
        )
    has_several = second.variety > 1
    inner = np.zeros_like(first.counts)  # pinned down by values, by group of the earlier table
    outer = np.zeros_like(second.counts)
    free_first = np.zeros(
        first.counts.shape, dtype=bool
    )  # cells whose people may not be pinned down
    free_second = np.zeros(second.counts.shape, dtype=bool)
    partners = _Partners(first.counts, second.counts)
    for group in range(len(first.counts)):
        is_overlapping = np.ones(len(second.counts), dtype=bool)
        for overlap, earlier_codes, later_codes in columns:
            is_overlapping &= overlap[earlier_codes[group]][later_codes]
        near = np.flatnonzero(is_overlapping)
        cells = np.minimum(first.counts[group], second.counts[near])
        shared = (cells > 0).sum(axis=1)
        partners.add(group, near[shared > 0])
        pinned = (shared == 1) & has_several[near] & (first.variety[group] > 1)
        inner[group] = cells[pinned].sum(axis=0)
        outer[near[pinned]] += cells[pinned]
        not_pinned = cells[~pinned] > 0
        free_first[group] = not_pinned.any(axis=0)
        free_second[near[~pinned]] |= not_pinned
    by_values = min(
        int(np.minimum(inner, first.counts).sum()), int(np.minimum(outer, second.counts).sum())
    )
    surplus = len(first.labels) - len(second.labels)
    at_least = (
        int(first.counts[(inner > 0) & ~free_first].sum()) if surplus <= 0 else 0,
        int(second.counts[(outer > 0) & ~free_second].sum()) if surplus >= 0 else 0,
    )
    most = partners.most()
    return Intersection("groups", None, min(max(at_least), most), most, by_values)


class _Partners:
    """The groups of the other table that each group may share people with."""

    def __init__(self, first: Counts, second: Counts) -> None:
        self.counts = first, second
        self.number = np.zeros(len(first), dtype=np.int64), np.zeros(len(second), dtype=np.int64)
        self.sum = np.zeros_like(first), np.zeros_like(second)
        """The counts by value of all partners of a group together."""
        self.only = np.full(len(first), -1), np.full(len(second), -1)
        """Some partner of a group."""

    def add(self, group: int, near: Counts) -> None:
        """Record the partners of a group of the first table."""
        self.number[0][group] = len(near)
        self.number[1][near] += 1
        self.sum[0][group] = self.counts[1][near].sum(axis=0)
        self.sum[1][near] += self.counts[0][group]
        if len(near):
            self.only[0][group] = near[0]
        self.only[1][near] = group

    def most(self) -> int:
        """Return the largest number of people in both tables that can be pinned down.

        People of one group who are in the same group of the other table, or not there, are
        indistinguishable: if pinned down, they have one value. So a group with d values and r
        partners has all its people pinned down only if d ≤ r + 1, and else at most those of r
        values. If all partners of a group have no other partner, and it contains whatever they
        contain, it adds nothing to them: whatever values they have, its other people can have the
        rest.
        """
        pinned = [self._pinned(side) for side in (0, 1)]
        for side in (0, 1):
            for group in np.flatnonzero(self._adds_nothing(side)).tolist():
                pinned[side][group] = 0
                pinned[1 - side][self.only[1 - side] == group] = 0
        return int(min(pinned[0].sum(), pinned[1].sum()))

    def _pinned(self, side: int) -> Counts:
        """Return the most people of each group that can be pinned down, given its partners."""
        counts, partners = self.counts[side], self.number[side]
        variety = (counts > 0).sum(axis=1)
        falling = -np.sort(-counts, axis=1)
        cumulative = np.concatenate(
            (np.zeros((len(counts), 1), np.int64), np.cumsum(falling, axis=1)), 1
        )
        of_values = cumulative[np.arange(len(counts)), np.minimum(partners, counts.shape[1])]
        pinned = np.where(variety <= partners + 1, counts.sum(axis=1), of_values)
        return np.where((variety == 1) | (partners == 0), 0, pinned)

    def _adds_nothing(self, side: int) -> NDArray[np.bool_]:
        """Return which groups contain all that their partners do, which have no other partners."""
        other = 1 - side
        alone = self.number[other] == 1
        only_partners = np.bincount(self.only[other][alone], minlength=len(self.counts[side]))
        contains = (self.sum[side] <= self.counts[side]).all(axis=1)
        adds_nothing: NDArray[np.bool_] = (
            (self.number[side] > 0) & (only_partners == self.number[side]) & contains
        )
        return adds_nothing
