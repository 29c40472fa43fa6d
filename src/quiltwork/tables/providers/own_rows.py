"""Where original rows are in a published table, as far as the table tells.

Boxes overlap, so a row may fit several groups; it is in one of them. A placement puts every row
into a group that fits it, with no more rows of a sensitive value than are published there. Whoever
holds the rows cannot tell placements apart: a group is unprotected for certain only if it is in all
of them.

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
    """Own rows that are alike, and the groups that each kind of them fits.

    Attributes:
        shown: group × sensitive value, the published records.
        value: of each kind, the code of its sensitive value.
        weight: of each kind, how many rows there are.
        kind, group: one entry for each pair of a kind and a group that it fits.
    """

    shown: Counts
    value: Counts
    weight: Counts
    kind: Counts
    group: Counts

    @property
    def matches(self) -> Counts:
        """How many groups each kind fits."""
        return np.bincount(self.kind, minlength=len(self.weight))

    def loads(self, rows: Counts, pairs: Counts) -> Counts:
        """Return group × value, the rows that some of the pairs hold."""
        found = np.zeros_like(self.shown)
        np.add.at(found, (self.group[pairs], self.value[self.kind[pairs]]), rows)
        return found

    @property
    def possible(self) -> Counts:
        """Group × value, the rows that may be there at most."""
        every = np.arange(len(self.kind))
        return np.minimum(self.loads(self.weight[self.kind], every), self.shown)

    @property
    def certain(self) -> Counts:
        """Group × value, the rows that are there for certain, as they fit no other group."""
        alone = np.flatnonzero(self.matches[self.kind] == 1)
        return np.minimum(self.loads(self.weight[self.kind[alone]], alone), self.shown)

    def max_flow_assignment(self) -> Counts:
        """Return how many rows each pair has in a placement of as many rows as possible.

        Rows that fit one group alone come first, which never leaves fewer for the others.
        """
        taken = np.zeros(len(self.kind), dtype=np.int64)
        alone = np.flatnonzero(self.matches[self.kind] == 1)
        cell = self.group[alone] * self.shown.shape[1] + self.value[self.kind[alone]]
        order = np.argsort(cell, kind="stable")
        rows = self.weight[self.kind[alone[order]]]
        before = np.cumsum(rows) - rows
        first = np.searchsorted(cell[order], cell[order])
        before -= before[first]
        room = self.shown.ravel()[cell[order]] - before
        taken[alone[order]] = np.clip(room, 0, rows)
        several = np.flatnonzero(self.matches[self.kind] != 1)
        if len(several):
            left = self.shown - self.loads(taken, np.arange(len(self.kind)))
            classes, kind = np.unique(self.kind[several], return_inverse=True)
            others = RowClasses(
                left, self.value[classes], self.weight[classes], kind, self.group[several]
            )
            taken[several] = others._flow()
        return taken

    def _flow(self) -> Counts:
        """Return the same by one maximum flow from classes to cells, O(pairs) in practice."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        if not len(self.kind):
            return np.zeros(0, dtype=np.int64)
        cells, cell = np.unique(
            self.group * self.shown.shape[1] + self.value[self.kind], return_inverse=True
        )
        classes, last = len(self.weight), 1 + len(self.weight) + len(cells)
        start = [
            np.zeros(classes, dtype=np.int64),
            1 + self.kind,
            1 + classes + np.arange(len(cells)),
        ]
        end = [1 + np.arange(classes), 1 + classes + cell, np.full(len(cells), last)]
        room = [self.weight, self.weight[self.kind], self.shown.ravel()[cells]]
        edges = (np.concatenate(start), np.concatenate(end))
        graph = csr_array(
            (np.concatenate(room).astype(np.int32), edges), shape=(last + 1, last + 1)
        )
        flow = maximum_flow(graph, 0, last).flow
        return np.asarray(flow[1 + self.kind, 1 + classes + cell], dtype=np.int64).ravel()

    def max_flow_within(self, told: Counts) -> Counts:
        """Return the same where only so many records of each group and value are to be filled."""
        usable = told[self.group, self.value[self.kind]] > 0
        there = replace(self, shown=told, kind=self.kind[usable], group=self.group[usable])
        taken = np.zeros(len(self.kind), dtype=np.int64)
        taken[usable] = there.max_flow_assignment()
        return taken

    def surplus(self) -> int:
        """Return how many rows cannot be in the table together with the others."""
        return int(self.weight.sum() - self.max_flow_assignment().sum())

    def least_own(self, group: int) -> Counts:
        """Return by value how many rows are in a group wherever the others are; a flow each."""
        found = np.zeros(self.shown.shape[1], dtype=np.int64)
        for value in np.unique(self.value[self.kind[self.group == group]]).tolist():
            alike = np.flatnonzero(self.value == value)
            number = np.full(len(self.weight), -1, dtype=np.int64)
            number[alike] = np.arange(len(alike))
            pairs = (number[self.kind] >= 0) & (self.group != group)
            others = RowClasses(
                self.shown,
                self.value[alike],
                self.weight[alike],
                number[self.kind[pairs]],
                self.group[pairs],
            )
            found[value] = self.weight[alike].sum() - others.max_flow_assignment().sum()
        return found


def check_columns(published: Table, own: Table) -> None:
    """Refuse rows that have other columns than the published table, or name people."""
    refuse_subjects(published, own)
    check_same_roles(published, own)


def refuse_subjects(*tables: Table) -> None:
    """Refuse tables that name people: records are counted, and a person may have several."""
    if any(table.subject is not None for table in tables):
        raise UnsupportedError(
            "Records are counted here, not people: a person with several would count as several. "
            "Leave subject out if each has one; verify_m_privacy verifies people."
        )


def published_counts(published: Table) -> Counts:
    """Count a published table: group × sensitive value."""
    groups, width = published.groups, len(published.encoded.sensitive_values)
    cells = groups.labels * width + published.encoded.sensitive
    return np.bincount(cells, minlength=groups.count * width).reshape(groups.count, width)


def find_row_classes(
    published: Table, own: Table, told: Counts | None = None
) -> tuple[RowClasses, Counts, int]:
    """Find the rows that fit published groups: their classes, whose each is, and how many fit none.

    Rows of one kind have the same cells and, if `own` names providers, the same one. `told` is
    provider × group × sensitive value where row groups are known: rows are looked for there alone.
    O(distinct rows × groups × quasi-identifiers), with `told` for the groups of each provider.
    """
    mine, here = own.encoded, published.encoded
    shown = published_counts(published)
    columns = [*(column.codes for column in mine.quasi), mine.sensitive, mine.provider]
    sizes = [len(column.values) for column in mine.quasi]
    alike = group_rows(columns, [*sizes, len(mine.sensitive_values), len(mine.providers)])
    weight = np.bincount(alike.labels, minlength=alike.count)
    codes = match_codes(mine.sensitive_values, here.sensitive_values)
    value = codes[mine.sensitive[alike.first]]
    known = np.flatnonzero(value >= 0)
    first = alike.first[known]
    blocks = () if told is None else _blocks(mine.provider[first], told)
    row, group = fitting_groups(published, own, first, blocks)
    there = shown[group, value[known[row]]] > 0
    fitting, kind = np.unique(known[row[there]], return_inverse=True)
    classes = RowClasses(shown, value[fitting], weight[fitting], kind, group[there])
    owner = mine.provider[alike.first[fitting]].astype(np.int64)
    return classes, owner, int(weight.sum() - weight[fitting].sum())


def _blocks(owner: Codes, told: Counts) -> list[tuple[Counts, Counts]]:
    """Return for each provider its rows, and the groups where it is told some."""
    order = np.argsort(owner, kind="stable")
    numbers, start = np.unique(owner[order], return_index=True)
    there = np.asarray(told.any(axis=2))
    return [
        (rows, np.flatnonzero(there[number]))
        for number, rows in zip(numbers.tolist(), np.split(order, start[1:]), strict=True)
        if there[number].any()
    ]


def row_group_counts(published: Table, row_groups: Table, names: tuple[str, ...]) -> Counts:
    """Count rows as they were published: provider × group × sensitive value.

    Raises:
        InvalidInputError: if one of them is in no published group, or nobody's.
    """
    check_columns(published, row_groups)
    there = row_groups.encoded
    found = [
        [names.index(str(name)) if str(name) in names else -1 for name in there.providers],
        _same_groups(published, row_groups),
        match_codes(there.sensitive_values, published.encoded.sensitive_values),
    ]
    rows = (there.provider, row_groups.groups.labels, there.sensitive)
    cells = [np.array(code, dtype=np.int64)[row] for code, row in zip(found, rows, strict=True)]
    if any((cell < 0).any() for cell in cells):
        raise InvalidInputError(
            "Some row groups are in no published group, or of another provider; they go with "
            "another table, or one of the files was changed."
        )
    shape = (len(names), published.groups.count, len(published.encoded.sensitive_values))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(cells), 1)
    return counts


def _same_groups(published: Table, row_groups: Table) -> list[int]:
    """Return for each group of own rows the published one with its texts; −1 for none."""
    columns = {column.name: column for column in row_groups.encoded.quasi}
    # As they are written first, which is quick and the usual case; groups may also differ in how a
    # number is written only.
    for read in (str, _read, str):
        shown, mine = [], []
        for column in published.encoded.quasi:
            code: dict[Hashable, int] = {}
            own = [code.setdefault(read(str(v)), len(code)) for v in column.values]
            shown.append(np.array(own)[column.codes[published.groups.first]])
            other = columns[column.name]
            same = np.array([code.get(read(str(v)), -1) for v in other.values])
            mine.append(same[other.codes[row_groups.groups.first]])
        group_of = {texts: g for g, texts in enumerate(_rows_of(shown))}
        found = [group_of.get(texts, -1) for texts in _rows_of(mine)]
        if len(group_of) == published.groups.count and (read is _read or -1 not in found):
            break
    return found


def _rows_of(columns: Sequence[Counts]) -> Iterable[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _read(text: str) -> Hashable:
    """Read a label such that `20..25` and `20.0..25.0` are the same one."""
    label = label_of(text)
    values = (value if (found := number(value)) is None else found for value in label.values)
    ends = tuple(values) if label.form == "range" else frozenset(values)
    return label.form, label.missing, ends
