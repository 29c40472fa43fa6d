"""Two releases about the same people: whom do both together pin down?

Each release alone leaves several values possible for a person; only values that both leave are
possible in the end. Where the tables name their subjects the count is exact. Otherwise it is
bounded from the published groups: a person known by quasi-identifiers is in one group of each
table, and these must overlap. Both assume that the sensitive value did not change in between.
Cost: O(people) with subjects, else O(groups² · quasi-identifiers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.publishing.arguments import by_column
from quiltwork.publishing.asked import read_table
from quiltwork.publishing.encoding import encode_column
from quiltwork.publishing.frames import arrow_column
from quiltwork.publishing.metrics.counts import value_counts
from quiltwork.publishing.risk.extents import Reading, overlaps
from quiltwork.publishing.table import Table, read_orders

MOST_PAIRS = 2_000_000_000
"""Pairs of groups that are compared."""

Counts = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Intersection:
    """People whom two releases pin down together, though neither does alone.

    Attributes:
        linked: "subjects" (exact) or "groups" (bounds).
        people: who is in both tables; None where that is not known.
        least: people with one possible value left, if everyone of the earlier table is in the
            later one too.
        most: no more than these can be pinned down, whoever is in both.
        alone: people who are the only ones in both their groups; None without subjects.
    """

    linked: Literal["subjects", "groups"]
    people: int | None
    least: int
    most: int
    alone: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Release:
    """One table's groups, with sensitive values in codes that both tables share."""

    labels: Counts
    codes: Counts
    counts: NDArray[np.int64]
    masks: Words

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
    >>> intersection(*tables).most  # a man in his twenties and a woman in her thirties: cold
    2
    """
    roles = {*read_table(earlier).quasi_identifiers, *read_table(later).sensitive}
    orders, trees = read_orders(ordinal), by_column(hierarchies, "hierarchies")
    for name in (*orders, *trees):
        if name not in roles:
            raise InvalidInputError(
                f"Column {name!r} is declared, but is neither a quasi-identifier nor sensitive."
            )
    if set(earlier.quasi_identifiers) != set(later.quasi_identifiers):
        raise InvalidInputError(
            f"The earlier table has the quasi-identifiers {', '.join(earlier.quasi_identifiers)}, "
            f"the later one {', '.join(later.quasi_identifiers)}; compare tables with the same."
        )
    if earlier.sensitive != later.sensitive:
        raise InvalidInputError("The two tables do not have the same sensitive columns.")
    releases = _releases(earlier, later)
    if earlier.subject is not None and later.subject is not None:
        return _by_subject(earlier, later, releases)
    readings = {
        name: Reading.of(name, orders.get(name), trees.get(name))
        for name in earlier.quasi_identifiers
    }
    return _by_groups(earlier, later, releases, readings)


def _releases(earlier: Table, later: Table) -> tuple[_Release, _Release]:
    values = sorted({*earlier.encoded.sensitive_values, *later.encoded.sensitive_values}, key=repr)
    code = {value: place for place, value in enumerate(values)}
    made = []
    for table in (earlier, later):
        recode = np.array([code[v] for v in table.encoded.sensitive_values], dtype=np.int64)
        codes, groups = recode[table.encoded.sensitive], table.groups
        pairs = value_counts(groups.labels, codes.astype(np.int32), groups.count, len(values))
        counts = np.zeros((groups.count, len(values)), dtype=np.int64)
        counts[pairs.group, pairs.value] = pairs.records
        made.append(_Release(groups.labels, codes, counts, _masks(counts > 0)))
    return made[0], made[1]


def _masks(held: NDArray[np.bool_]) -> Words:
    """Pack the values of each group into 64-bit words."""
    padded = np.pad(held, ((0, 0), (0, -held.shape[1] % 64)))
    bits = np.packbits(padded, axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint64)


def _shared(first: Words, second: Words) -> Counts:
    """Count the values that groups have in common."""
    both = np.ascontiguousarray(first & second)
    bits = np.unpackbits(both.view(np.uint8), axis=-1)
    return np.asarray(bits.sum(axis=-1), dtype=np.int64)


def _by_subject(earlier: Table, later: Table, releases: tuple[_Release, _Release]) -> Intersection:
    first, second = releases
    before, after = _people(earlier, later)
    joined = _matching(before, after)
    groups = first.labels[joined[0]], second.labels[joined[1]]
    shared = _shared(first.masks[groups[0]], second.masks[groups[1]])
    pinned = (shared == 1) & (first.variety[groups[0]] > 1) & (second.variety[groups[1]] > 1)
    who = before[joined[0]]
    pair = groups[0] * len(second.counts) + groups[1]
    lonely = np.unique(np.unique(np.stack((pair, who), axis=1), axis=0)[:, 0], return_counts=True)
    found = len(np.unique(who[pinned]))
    return Intersection("subjects", len(np.unique(who)), found, found, int((lonely[1] == 1).sum()))


def _people(earlier: Table, later: Table) -> tuple[Counts, Counts]:
    """Number the subjects of both tables alike."""
    import pyarrow as pa

    names = [str(table.subject) for table in (earlier, later)]
    columns = [
        arrow_column(t.frame, name).cast(pa.string())
        for t, name in zip((earlier, later), names, strict=True)
    ]
    both = pa.concat_arrays([c.combine_chunks() if hasattr(c, "chunks") else c for c in columns])
    codes = encode_column(pa.table({"person": both}), "person").codes.astype(np.int64)
    return codes[: earlier.encoded.rows], codes[earlier.encoded.rows :]


def _matching(before: Counts, after: Counts) -> tuple[Counts, Counts]:
    """Return all pairs of rows about the same person."""
    order = np.argsort(after, kind="stable")
    start, stop = (np.searchsorted(after[order], before, side=side) for side in ("left", "right"))
    sizes = stop - start
    rows = np.repeat(np.arange(len(before)), sizes)
    offset = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows, order[np.repeat(start, sizes) + offset]


def _by_groups(
    earlier: Table,
    later: Table,
    releases: tuple[_Release, _Release],
    readings: Mapping[str, Reading],
) -> Intersection:
    first, second = releases
    pairs = len(first.counts) * len(second.counts)
    if pairs > MOST_PAIRS:
        raise UnsupportedError(
            f"{pairs:,} pairs of groups are too many to compare; name the subjects of both tables, "
            "or compare a sample."
        )
    meets, labels = _label_overlaps(earlier, later, readings)
    plural = second.variety > 1
    inner = np.zeros_like(first.counts)  # pinned, seen from the earlier table's groups
    outer = np.zeros_like(second.counts)
    free_first = np.zeros(first.counts.shape, dtype=bool)  # may be in a cell that pins nobody
    free_second = np.zeros(second.counts.shape, dtype=bool)
    for group in range(len(first.counts)):
        met = np.ones(len(second.counts), dtype=bool)
        for table, mine, theirs in zip(meets, *labels, strict=True):
            met &= table[mine[group]][theirs]
        near = np.flatnonzero(met)
        shared = _shared(first.masks[group], second.masks[near])
        pinned = (shared == 1) & plural[near] & (first.variety[group] > 1)
        cells = np.minimum(first.counts[group], second.counts[near])
        inner[group] = cells[pinned].sum(axis=0)
        outer[near[pinned]] += cells[pinned]
        loose = cells[~pinned] > 0
        free_first[group] = loose.any(axis=0)
        free_second[near[~pinned]] |= loose
    most = min(
        int(np.minimum(inner, first.counts).sum()), int(np.minimum(outer, second.counts).sum())
    )
    least = max(
        int(first.counts[(inner > 0) & ~free_first].sum()),
        int(second.counts[(outer > 0) & ~free_second].sum()) if _same_size(releases) else 0,
    )
    return Intersection("groups", None, min(least, most), most, None)


def _same_size(releases: tuple[_Release, _Release]) -> bool:
    return len(releases[0].labels) == len(releases[1].labels)


def _label_overlaps(
    earlier: Table, later: Table, readings: Mapping[str, Reading]
) -> tuple[list[NDArray[np.bool_]], tuple[list[Counts], list[Counts]]]:
    """Return for each column which labels overlap, and the label of each group in both tables."""
    meets, mine, theirs = [], [], []
    others = {column.name: column for column in later.encoded.quasi}
    for column in earlier.encoded.quasi:
        other = others[column.name]
        meets.append(overlaps(readings[column.name], column.values, other.values))
        mine.append(column.codes[earlier.groups.first].astype(np.int64))
        theirs.append(other.codes[later.groups.first].astype(np.int64))
    return meets, (mine, theirs)
