"""Two releases about the same people: whom do both together pin down?

Each release alone leaves several values possible for a person. Both together leave less: values
that only one of a person's groups has are out, and so are those that others must have, as the
counts of every group come out in full. Whoever knows the people's groups, because the tables name
their subjects or by quasi-identifiers, compares the values of a person's two groups: that is
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
from quiltwork.tables.table import Table, check_same_roles, parse_orders, read_table

MOST_PAIRS = 2_000_000_000
"""Pairs of groups that are compared."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Intersection(ResultBase):
    """People whom two releases pin down together, though no group of theirs has a single value.

    Both bounds speak about someone who knows in which groups everybody is, and counts.

    Attributes:
        linked: by "subjects", or by overlapping "groups".
        people: who is in both tables; None where that is not known.
        least: at least so many people have one possible value left; without subjects, if everyone
            of the table with fewer records is in the other one too.
        most: at most so many of those who are in both, whoever that is.
        by_values: people for whom the values of their two groups leave one, without counting;
            without subjects, at most so many.
        alone: people who are the only ones in both their groups; None without subjects.
        changed: people with different values, within or between the tables, about whom nothing is
            concluded; None without subjects.
        rehearsed: whether the other table was made for the purpose (`rehearse_intersection`).
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
        """Whether the number is known; never without subjects."""
        return self.linked == "subjects" and self.least == self.most

    def explain(self) -> str:
        """Say in a few sentences whom both tables pin down, and how sure that is."""
        if self.linked == "groups":
            told = f"at most {self.most:,}" if self.most else "none"
            sure = f"; {self.least:,} have if everyone of the smaller table is in the other"
            return (
                f"Of the people in both, {told} can have one possible value left for someone who "
                f"knows everybody's groups and counts, and at most {self.by_values:,} by the "
                f"values of their two groups alone{sure if self.least else ''}. These are bounds; "
                "name the subjects of both tables to know more."
            )
        changed = ""
        if self.changed:
            changed = f" Of {self.changed:,} with different values nothing is concluded."
        return (
            f"{self.people:,} people are in both. For {self.by_values:,} of them the values of "
            "their two groups leave one possible; for someone who counts what is left for whom, "
            f"at most for {self.most:,}. {self.alone:,} are alone in both their groups.{changed}"
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
    """Count the people whom an earlier and a later release pin down together.

    `ordinal` and `hierarchies` say how published texts are to be read, as for `Table`: the order
    of the values in `small..large`, the leaves under a label.

    Raises:
        InvalidInputError: if the tables do not have the same quasi-identifiers and sensitive
            columns, or something is declared of another column.
        UnsupportedError: for too many groups to compare.

    >>> import pandas
    >>> ill = ["flu", "cold", "cold", "gout"]
    >>> first = pandas.DataFrame({
    ...     "age": ["20..29", "20..29", "30..39", "30..39"], "sex": "{f, m}", "ill": ill})
    >>> second = pandas.DataFrame({"age": "20..39", "sex": ["f", "m", "f", "m"], "ill": ill})
    >>> tables = [Table(frame, None, ["age", "sex"], "ill") for frame in (first, second)]
    >>> found = intersection(*tables)
    >>> found.by_values  # a man in his twenties and a woman in her thirties: cold
    2
    >>> found.most  # if so, nobody is left for the flu but the woman in her twenties
    4
    """
    check_same_roles(read_table(earlier), read_table(later))
    orders, trees = parse_orders(ordinal), mapping_by_column(hierarchies, "hierarchies")
    for name in (*orders, *trees):
        if name not in earlier.quasi_identifiers:
            raise InvalidInputError(
                f"Column {name!r} is declared, but is no quasi-identifier, whose labels are read."
            )
    releases = _releases(earlier, later)
    if earlier.subject is not None and later.subject is not None:
        return _by_subject(*_people(earlier, later), *releases)
    meets, mine, theirs = [], [], []
    others = {column.name: column for column in later.encoded.quasi}
    for column in earlier.encoded.quasi:
        name, other = column.name, others[column.name]
        reading = ColumnLabels.of(name, orders.get(name), trees.get(name))
        meets.append(overlaps(reading, column.values, other.values))
        mine.append(column.codes[earlier.groups.first].astype(np.int64))
        theirs.append(other.codes[later.groups.first].astype(np.int64))
    return _by_groups(*releases, list(zip(meets, mine, theirs, strict=True)))


def _releases(earlier: Table, later: Table) -> tuple[_Release, _Release]:
    known = [
        [canonical_value(v) for v in table.encoded.sensitive_values] for table in (earlier, later)
    ]
    values = sorted({*known[0], *known[1]}, key=repr)
    code = {value: place for place, value in enumerate(values)}
    made = []
    for table, own in zip((earlier, later), known, strict=True):
        recode = np.array([code[value] for value in own], dtype=np.int64)
        codes, groups = recode[table.encoded.sensitive], table.groups
        made.append(_Release.of(groups.labels, codes, groups.count, len(values)))
    return made[0], made[1]


def rehearse_intersection(publication: Publication) -> Intersection:
    """Count whom the table would pin down together with another one of the same rows.

    The other table is made by the same rules but for its cuts: by range where these are by loss,
    and where they are not as if every quasi-identifier counted half as much as the one before.
    Nobody must publish both.

    Raises:
        InvalidInputError: if there is no publication.
    """
    published = require_local(publication)
    encoded, recipe = published.source.encoded, published.recipe
    records, second = records_of(encoded), recipe
    if recipe.rules.split == "range":
        weights = tuple(0.5**place for place in range(len(encoded.quasi)))
        records = replace(records, axes=replace(records.axes, weights=weights))
    else:
        second = replace(recipe, rules=replace(recipe.rules, split="range"))
    again = assemble(published.source, partition(encoded, records, second), second)
    width, codes = len(encoded.sensitive_values), encoded.sensitive.astype(np.int64)
    releases = tuple(
        _Release.of(made.labels.astype(np.int64), codes[made.rows], made.boxes.count, width)
        for made in (published, again)
    )
    person = np.arange(encoded.rows) if encoded.subject is None else encoded.subject
    found = _by_subject(person[published.rows], person[again.rows], *releases)
    return replace(found, rehearsed=True)


def _by_subject(before: Counts, after: Counts, first: _Release, second: _Release) -> Intersection:
    person = np.concatenate((before, after))
    group = np.concatenate((first.labels, len(first.counts) + second.labels))
    steady = _steady(person, np.concatenate((first.codes, second.codes)))
    single = np.concatenate((first.variety, second.variety))[group] == 1
    asked = steady & ~np.isin(np.arange(len(steady)), person[single])
    joined = _matching(before, after)
    pair = first.labels[joined[0]] * len(second.counts) + second.labels[joined[1]]
    who = before[joined[0]]
    lonely = np.unique(np.unique(np.stack((pair, who), axis=1), axis=0)[:, 0], return_counts=True)
    pairs, of = np.unique(pair, return_inverse=True)
    here, there = np.divmod(pairs, len(second.counts))
    shared = ((first.counts[here] > 0) & (second.counts[there] > 0)).sum(axis=1)[of]
    partners = _Partners(first.counts, second.counts)
    for number, near in zip(*_runs(here, there), strict=True):
        partners.add(number, near)
    by_values = len(np.unique(who[(shared == 1) & asked[who]]))
    people = np.unique(who)
    return Intersection(
        "subjects",
        len(people),
        least=by_values,
        most=max(min(partners.most(), int(asked[people].sum())), by_values),
        by_values=by_values,
        alone=int((lonely[1] == 1).sum()),
        changed=int((~steady).sum()),
    )


def _runs(sorted_keys: Counts, values: Counts) -> tuple[list[int], list[Counts]]:
    """Return the distinct keys, and the values of each."""
    if not len(sorted_keys):
        return [], []
    keys, start = np.unique(sorted_keys, return_index=True)
    return keys.tolist(), np.split(values, start[1:])


def _steady(person: Counts, value: Counts) -> NDArray[np.bool_]:
    """Tell for each person whether all their records have one value."""
    low = np.full(int(person.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), -1)
    np.minimum.at(low, person, value)
    np.maximum.at(high, person, value)
    return np.asarray(low == high)


def _people(earlier: Table, later: Table) -> tuple[Counts, Counts]:
    """Number the subjects of both tables alike."""
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
    """Bound from groups; of each column, which labels overlap, and the groups' in both tables."""
    pairs = len(first.counts) * len(second.counts)
    if pairs > MOST_PAIRS:
        raise UnsupportedError(
            f"{pairs:,} pairs of groups are too many to compare; name the subjects of both tables, "
            "or compare a sample."
        )
    plural = second.variety > 1
    inner = np.zeros_like(first.counts)  # pinned by values, seen from the earlier table's groups
    outer = np.zeros_like(second.counts)
    free_first = np.zeros(first.counts.shape, dtype=bool)  # may be in a cell that pins nobody
    free_second = np.zeros(second.counts.shape, dtype=bool)
    partners = _Partners(first.counts, second.counts)
    for group in range(len(first.counts)):
        met = np.ones(len(second.counts), dtype=bool)
        for meet, mine, theirs in columns:
            met &= meet[mine[group]][theirs]
        near = np.flatnonzero(met)
        cells = np.minimum(first.counts[group], second.counts[near])
        shared = (cells > 0).sum(axis=1)
        partners.add(group, near[shared > 0])
        pinned = (shared == 1) & plural[near] & (first.variety[group] > 1)
        inner[group] = cells[pinned].sum(axis=0)
        outer[near[pinned]] += cells[pinned]
        loose = cells[~pinned] > 0
        free_first[group] = loose.any(axis=0)
        free_second[near[~pinned]] |= loose
    by_values = min(
        int(np.minimum(inner, first.counts).sum()), int(np.minimum(outer, second.counts).sum())
    )
    more = len(first.labels) - len(second.labels)
    certain = (
        int(first.counts[(inner > 0) & ~free_first].sum()) if more <= 0 else 0,
        int(second.counts[(outer > 0) & ~free_second].sum()) if more >= 0 else 0,
    )
    most = partners.most()
    return Intersection("groups", None, min(max(certain), most), most, by_values)


class _Partners:
    """How many groups of the other table each group shares people with, at most."""

    def __init__(self, first: Counts, second: Counts) -> None:
        self.counts = first, second
        self.number = np.zeros(len(first), dtype=np.int64), np.zeros(len(second), dtype=np.int64)
        self.sum = np.zeros_like(first), np.zeros_like(second)
        """What all partners of a group have together."""
        self.only = np.full(len(first), -1), np.full(len(second), -1)
        """Some partner of a group."""

    def add(self, group: int, near: Counts) -> None:
        """Note the partners of a group of the first table."""
        self.number[0][group] = len(near)
        self.number[1][near] += 1
        self.sum[0][group] = self.counts[1][near].sum(axis=0)
        self.sum[1][near] += self.counts[0][group]
        if len(near):
            self.only[0][group] = near[0]
        self.only[1][near] = group

    def most(self) -> int:
        """Return how many people in both tables can be pinned down.

        People of one group who are in the same group of the other table, or are not there, are
        alike: pinned down they have one value. So a group with d values and r partners has all its
        people pinned down only if d ≤ r + 1, and else at most those of r values. If all partners
        of a group have no other partner, and it holds whatever they hold, it adds nothing to them:
        whatever values they have, its other people can have the rest.
        """
        told = [self._told(side) for side in (0, 1)]
        for side in (0, 1):
            for group in np.flatnonzero(self._adds_nothing(side)).tolist():
                told[side][group] = 0
                told[1 - side][self.only[1 - side] == group] = 0
        return int(min(told[0].sum(), told[1].sum()))

    def _told(self, side: int) -> Counts:
        counts, partners = self.counts[side], self.number[side]
        variety = (counts > 0).sum(axis=1)
        falling = -np.sort(-counts, axis=1)
        upto = np.concatenate((np.zeros((len(counts), 1), np.int64), np.cumsum(falling, axis=1)), 1)
        some = upto[np.arange(len(counts)), np.minimum(partners, counts.shape[1])]
        told = np.where(variety <= partners + 1, counts.sum(axis=1), some)
        return np.where((variety == 1) | (partners == 0), 0, told)

    def _adds_nothing(self, side: int) -> NDArray[np.bool_]:
        """Tell which groups hold all that their partners do, who have no other partners."""
        other = 1 - side
        alone = self.number[other] == 1
        loyal = np.bincount(self.only[other][alone], minlength=len(self.counts[side]))
        holds = (self.sum[side] <= self.counts[side]).all(axis=1)
        found: NDArray[np.bool_] = (self.number[side] > 0) & (loyal == self.number[side]) & holds
        return found
