"""The position of original rows in a published table, as far as the table determines it.

Boxes overlap, so a row may fit several groups; it is in one of them. An assignment puts every row
into a group that it fits, with no more rows of a sensitive value than are published there. Whoever
holds the rows cannot distinguish assignments: a group is unprotected for certain only if it is so
in all of them.

Theorem: docs/theory/own-rows.md
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.codes.encoding import group_rows, match_codes
from quiltwork.tables.generalization.published_texts import fitting_groups, label_of
from quiltwork.tables.input.canonical_values import number
from quiltwork.tables.table import Table, check_same_roles

Counts = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class RowClasses:
    """Own rows in classes of equal rows, and the groups that each class fits.

    Attributes:
        shown: group × sensitive value, the published records.
        value: for each class, the code of its sensitive value.
        weight: for each class, the number of rows.
        kind, group: one entry for each pair of a class and a group that it fits.
    """

    shown: Counts
    value: Counts
    weight: Counts
    kind: Counts
    group: Counts

    @property
    def matches(self) -> Counts:
        """The number of groups that each class fits."""
        return np.bincount(self.kind, minlength=len(self.weight))

    def loads(self, rows: Counts, pairs: Counts) -> Counts:
        """Return group × value: the rows that some of the pairs hold."""
        totals = np.zeros_like(self.shown)
        np.add.at(totals, (self.group[pairs], self.value[self.kind[pairs]]), rows)
        return totals

    @property
    def possible(self) -> Counts:
        """Group × value: the largest possible number of own rows there."""
        all_pairs = np.arange(len(self.kind))
        return np.minimum(self.loads(self.weight[self.kind], all_pairs), self.shown)

    @property
    def certain(self) -> Counts:
        """Group × value: the own rows that are there for certain, as they fit no other group."""
        only_match = np.flatnonzero(self.matches[self.kind] == 1)
        return np.minimum(self.loads(self.weight[self.kind[only_match]], only_match), self.shown)

    def max_flow_assignment(self) -> Counts:
        """Return the rows that each pair has in an assignment of as many rows as possible.

        Rows that fit a single group are assigned first, which never leaves less for the others.
        """
        assigned = np.zeros(len(self.kind), dtype=np.int64)
        only_match = np.flatnonzero(self.matches[self.kind] == 1)
        cell = self.group[only_match] * self.shown.shape[1] + self.value[self.kind[only_match]]
        order = np.argsort(cell, kind="stable")
        rows = self.weight[self.kind[only_match[order]]]
        cumulative = np.cumsum(rows) - rows
        first = np.searchsorted(cell[order], cell[order])
        cumulative -= cumulative[first]
        capacity = self.shown.ravel()[cell[order]] - cumulative
        assigned[only_match[order]] = np.clip(capacity, 0, rows)
        multiple = np.flatnonzero(self.matches[self.kind] != 1)
        if len(multiple):
            free = self.shown - self.loads(assigned, np.arange(len(self.kind)))
            classes, kind = np.unique(self.kind[multiple], return_inverse=True)
            remaining_classes = RowClasses(
                free, self.value[classes], self.weight[classes], kind, self.group[multiple]
            )
            assigned[multiple] = remaining_classes._flow()
        return assigned

    def _flow(self) -> Counts:
        """Solve the assignment by one maximum flow from classes to cells, O(pairs) in practice."""
        # Imported here, as most tables need no flow and SciPy is slow to import.
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        if not len(self.kind):
            return np.zeros(0, dtype=np.int64)
        cells, cell = np.unique(
            self.group * self.shown.shape[1] + self.value[self.kind], return_inverse=True
        )
        classes, sink = len(self.weight), 1 + len(self.weight) + len(cells)
        tails = [
            np.zeros(classes, dtype=np.int64),
            1 + self.kind,
            1 + classes + np.arange(len(cells)),
        ]
        heads = [1 + np.arange(classes), 1 + classes + cell, np.full(len(cells), sink)]
        capacity = [self.weight, self.weight[self.kind], self.shown.ravel()[cells]]
        edges = (np.concatenate(tails), np.concatenate(heads))
        graph = csr_array(
            (np.concatenate(capacity).astype(np.int32), edges), shape=(sink + 1, sink + 1)
        )
        flow = maximum_flow(graph, 0, sink).flow
        return np.asarray(flow[1 + self.kind, 1 + classes + cell], dtype=np.int64).ravel()

    def max_flow_within(self, counts: Counts) -> Counts:
        """Return such an assignment within known counts of own rows, group × value."""
        usable = counts[self.group, self.value[self.kind]] > 0
        restricted = replace(self, shown=counts, kind=self.kind[usable], group=self.group[usable])
        assigned = np.zeros(len(self.kind), dtype=np.int64)
        assigned[usable] = restricted.max_flow_assignment()
        return assigned

    def surplus(self) -> int:
        """Return how many rows cannot be in the table together with the others."""
        return int(self.weight.sum() - self.max_flow_assignment().sum())

    def least_own(self, group: int) -> Counts:
        """Return, by value, the fewest own rows in a group over all assignments; a flow each."""
        fewest = np.zeros(self.shown.shape[1], dtype=np.int64)
        for value in np.unique(self.value[self.kind[self.group == group]]).tolist():
            of_value = np.flatnonzero(self.value == value)
            renumbered = np.full(len(self.weight), -1, dtype=np.int64)
            renumbered[of_value] = np.arange(len(of_value))
            pairs = (renumbered[self.kind] >= 0) & (self.group != group)
            others = RowClasses(
                self.shown,
                self.value[of_value],
                self.weight[of_value],
                renumbered[self.kind[pairs]],
                self.group[pairs],
            )
            fewest[value] = self.weight[of_value].sum() - others.max_flow_assignment().sum()
        return fewest


def check_columns(published: Table, own: Table) -> None:
    """Refuse tables with other columns than the published one, or with subjects."""
    refuse_subjects(published, own)
    check_same_roles(published, own)


def refuse_subjects(*tables: Table) -> None:
    """Refuse tables with subjects: records are counted here, and a person may have several."""
    if any(table.subject is not None for table in tables):
        raise UnsupportedError(
            "Records are counted here, not people: a person with several records would count "
            "several times. Leave subject out if each person has one record; verify_m_privacy "
            "verifies people."
        )


def published_counts(published: Table) -> Counts:
    """Count a published table: group × sensitive value."""
    groups, width = published.groups, len(published.encoded.sensitive_values)
    cells = groups.labels * width + published.encoded.sensitive
    return np.bincount(cells, minlength=groups.count * width).reshape(groups.count, width)


def find_row_classes(
    published: Table, own: Table, row_groups: Counts | None = None
) -> tuple[RowClasses, Counts, int]:
    """Return the classes of rows that fit groups, their providers, and how many rows fit none.

    Rows of one class have equal cells and, if `own` names providers, the same provider. `told` is
    provider × group × sensitive value if row groups are known: rows are then matched only there.
    O(distinct rows × groups × quasi-identifiers), with `told` for the groups of each provider.
    """
    own_coded, published_coded = own.encoded, published.encoded
    counts = published_counts(published)
    columns = [
        *(column.codes for column in own_coded.quasi),
        own_coded.sensitive,
        own_coded.provider,
    ]
    sizes = [len(column.values) for column in own_coded.quasi]
    distinct = group_rows(
        columns, [*sizes, len(own_coded.sensitive_values), len(own_coded.providers)]
    )
    weight = np.bincount(distinct.labels, minlength=distinct.count)
    codes = match_codes(own_coded.sensitive_values, published_coded.sensitive_values)
    value = codes[own_coded.sensitive[distinct.first]]
    is_published = np.flatnonzero(value >= 0)
    first = distinct.first[is_published]
    blocks = () if row_groups is None else _blocks(own_coded.provider[first], row_groups)
    row, group = fitting_groups(published, own, first, blocks)
    has_value = counts[group, value[is_published[row]]] > 0
    class_rows, class_of = np.unique(is_published[row[has_value]], return_inverse=True)
    classes = RowClasses(counts, value[class_rows], weight[class_rows], class_of, group[has_value])
    owner = own_coded.provider[distinct.first[class_rows]].astype(np.int64)
    return classes, owner, int(weight.sum() - weight[class_rows].sum())


def _blocks(owner: Codes, row_groups: Counts) -> list[tuple[Counts, Counts]]:
    """Return, for each provider, its rows and the groups in which it has some."""
    order = np.argsort(owner, kind="stable")
    numbers, start = np.unique(owner[order], return_index=True)
    present = np.asarray(row_groups.any(axis=2))
    return [
        (rows, np.flatnonzero(present[number]))
        for number, rows in zip(numbers.tolist(), np.split(order, start[1:]), strict=True)
        if present[number].any()
    ]


def row_group_counts(published: Table, row_groups: Table, names: tuple[str, ...]) -> Counts:
    """Count rows as they were published: provider × group × sensitive value.

    Raises:
        InvalidInputError: if a row is in no published group, or of an unknown provider.
    """
    check_columns(published, row_groups)
    encoded = row_groups.encoded
    code_maps = [
        [names.index(str(name)) if str(name) in names else -1 for name in encoded.providers],
        _same_groups(published, row_groups),
        match_codes(encoded.sensitive_values, published.encoded.sensitive_values),
    ]
    rows = (encoded.provider, row_groups.groups.labels, encoded.sensitive)
    cells = [np.array(code, dtype=np.int64)[row] for code, row in zip(code_maps, rows, strict=True)]
    # −1 marks what is in no published group, of no provider, or an unpublished value.
    if any((cell < 0).any() for cell in cells):
        raise InvalidInputError(
            "Some row groups are in no published group, or of an unknown provider: they belong to "
            "another table, or one of the files was changed."
        )
    shape = (len(names), published.groups.count, len(published.encoded.sensitive_values))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(cells), 1)
    return counts


def _same_groups(published: Table, row_groups: Table) -> list[int]:
    """Return, for each group of the row groups, the published group with its texts; −1 for none."""
    columns = {column.name: column for column in row_groups.encoded.quasi}
    # Exact texts first: fast, and the usual case. Parsed labels next, as numbers may be spelled
    # differently. If parsing makes published groups equal, exact texts again.
    for parse in (str, _parse_label, str):
        published_rows, own_rows = [], []
        for column in published.encoded.quasi:
            code: dict[Hashable, int] = {}
            codes = [code.setdefault(parse(str(v)), len(code)) for v in column.values]
            published_rows.append(np.array(codes)[column.codes[published.groups.first]])
            other = columns[column.name]
            matched = np.array([code.get(parse(str(v)), -1) for v in other.values])
            own_rows.append(matched[other.codes[row_groups.groups.first]])
        group_of = {texts: g for g, texts in enumerate(_rows_of(published_rows))}
        matches = [group_of.get(texts, -1) for texts in _rows_of(own_rows)]
        if len(group_of) == published.groups.count and (parse is _parse_label or -1 not in matches):
            break
    return matches


def _rows_of(columns: Sequence[Counts]) -> Iterable[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _parse_label(text: str) -> Hashable:
    """Parse a label so that `20..25` and `20.0..25.0` are equal."""
    label = label_of(text)
    values = (value if (decimal := number(value)) is None else decimal for value in label.values)
    ends = tuple(values) if label.form == "range" else frozenset(values)
    return label.form, label.missing, ends
