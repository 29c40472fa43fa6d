"""`PublishedRecords`: records in groups: the table to publish, and the same with providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import percent
from quiltwork.results import ResultBase
from quiltwork.tables.codes.distinct import starts_of
from quiltwork.tables.codes.encoding import (
    CodedTable,
    Column,
    code_type,
    encode_column,
    group_rows,
    take_rows,
)
from quiltwork.tables.generalization.boxes import Boxes, ColumnBoxes, boxes_of
from quiltwork.tables.input.frames import ArrowFrame, arrow, to_kind
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.publishing.writing import Formulas, check_ending, check_formulas, write_table
from quiltwork.tables.table import Table, with_frame
from quiltwork.wording import argument

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class PublishedGroup:
    """One group of records with equal published texts.

    Attributes:
        values: quasi-identifier → the published text.
        lower: quasi-identifier → the smallest value in the box.
        upper: quasi-identifier → the largest; for sets of categories the last in sorted order.
        members: quasi-identifier → the values of a set; only for those published as sets.
        size: the number of records.
    """

    values: dict[str, str]
    lower: dict[str, Any]
    upper: dict[str, Any]
    members: dict[str, tuple[Any, ...]]
    size: int


@dataclass(frozen=True, eq=False, repr=False)
class Publication(ResultBase):
    """A published table whose groups withstand coalitions of m providers, and how it was made.

    On one machine it is a `PublishedRecords`, which `anonymize` returns with a report; on Spark a
    `SparkPublication`. Never publish `source` and `table`.

    Attributes:
        source: the original table.
        recipe: how the groups were made.
    """

    source: Table
    recipe: Recipe

    if TYPE_CHECKING:  # what each of them has in its own way

        @property
        def frame(self) -> Any:
            """What is published: quasi-identifiers as texts, the others as they are."""

        @property
        def table(self) -> Table:
            """The same as a Table with providers."""

        @property
        def groups(self) -> Any:
            """The groups: a sequence here, a frame with their sizes on Spark."""

        def summary(self) -> dict[str, Any]:
            """Return rows, groups, suppressed rows and what was lost, JSON-ready."""

        def report(self, path: str | Path | None = None) -> Any:
            """Return what the table reveals and keeps; with a path, write it as an HTML page."""

        def write(self, path: str | Path, formulas: Formulas = "keep") -> Path:
            """Write the published frame."""

    @property
    def constraint(self) -> str:
        """What every group fulfils, in words."""
        return str(self.recipe.constraint)

    @property
    def m(self) -> int:
        """How many colluding providers it withstands."""
        return self.recipe.m

    @property
    def method(self) -> str:
        """By which algorithm it was made."""
        return self.recipe.method

    @property
    def suppressed(self) -> int:
        """How many rows of the source are not published."""
        return 0

    def body(self) -> dict[str, Any]:
        """Return how it was made and its summary; no record is in it."""
        recipe = {"m": self.m, "method": self.method, "constraint": self.constraint}
        return {**recipe, **self.summary()}

    @property
    def about_providers(self) -> tuple[str, ...]:
        """Sentences about whose rows are in it; none where that was not looked at."""
        return ()

    def explain(self) -> str:
        """Say what every group withstands, and what is known about whose rows are in it."""
        withstood = (
            f"Every group fulfils {self.constraint}, also for coalitions of up to {self.m} "
            f"providers ({self.method}). Rows left out: {self.suppressed:,}."
        )
        return " ".join((withstood, *self.about_providers))


@dataclass(frozen=True, eq=False, repr=False)
class PublishedRecords(Publication):
    """Records in published groups, on this machine.

    `anonymize` returns a `LocalPublication`, which also has a report.

    Attributes:
        boxes: the published values of each group, as arrays; groups are in published order.
        labels: for each published row, its group.
        rows: the numbers of these rows in the source, ascending.
    """

    boxes: Boxes
    labels: Counts
    rows: Counts

    @property
    def suppressed(self) -> int:
        """The number of rows of the source that are not published."""
        return self.source.encoded.rows - len(self.rows)

    @cached_property
    def sizes(self) -> Counts:
        """The number of records of each group."""
        return np.bincount(self.labels, minlength=self.boxes.count)

    @cached_property
    def groups(self) -> tuple[PublishedGroup, ...]:
        """The groups with their boxes, in published order."""
        boxes_by_column = list(zip(self.source.encoded.quasi, self.boxes.columns, strict=True))
        return tuple(
            PublishedGroup(
                values={c.name: box.written[0][box.written[1][i]] for c, box in boxes_by_column},
                lower={c.name: c.values[box.lower[i]] for c, box in boxes_by_column},
                upper={c.name: c.values[box.upper[i]] for c, box in boxes_by_column},
                members={
                    c.name: tuple(c.values[code] for code in box.members[i])
                    for c, box in boxes_by_column
                    if box.members is not None
                },
                size=size,
            )
            for i, size in enumerate(self.sizes.tolist())
        )

    @cached_property
    def order(self) -> Counts:
        """The published order: by group, then by sensitive cells. It depends on content alone."""
        keys = [column.codes[self.rows] for column in self.source.encoded.secrets]
        carried = (encode_column(self.source.data, name, "value") for name in self.source.carried)
        keys += [column.codes[self.rows] for column in carried]
        # Input order must not show, not even among equal records.
        return np.lexsort((*keys[::-1], self.labels))

    @cached_property
    def frame(self) -> Any:
        """The table to publish: quasi-identifiers as texts, the rest as it is; no provider."""
        return to_kind(self._published(), self.source.kind)

    def _published(self, chosen: NDArray[np.bool_] | slice = slice(None)) -> Any:
        """Return the published rows, or some of them, as an Arrow table."""
        order = self.order[chosen]
        names = [*self.source.sensitive, *self.source.carried]
        return arrow().table({**self._texts(order), **self._taken(names, order)})

    @cached_property
    def table(self) -> Table:
        """The same as a Table with providers, in input order. Never publish it."""
        source = self.source
        all_rows = np.arange(len(self.rows))
        names = [name for name in (source.provider, source.subject) if name is not None]
        columns = {
            **self._taken(names, all_rows),
            **self._texts(all_rows),
            **self._taken([*source.sensitive, *source.carried], all_rows),
        }
        frame = ArrowFrame(arrow().table(columns), source.kind)
        table = with_frame(
            source,
            frame,
            ordinal=source.secret_orders,
            hierarchies=source.secret_trees,
            missing="value",
        )
        # The codes are known; encoding the texts again would cost more than writing them did.
        table.__dict__["encoded"] = take_rows(source.encoded, self.rows, self._quasi)
        table.__dict__["groups"] = group_rows([self.labels], [self.boxes.count])
        return table

    @property
    def bounds(self) -> Any:
        """Machine-readable boxes, one row per published record, in published order.

        Numeric quasi-identifiers have `<name>_low`, `<name>_high` and `<name>_mid`, ordered ones
        the first two; the others have `<name>_size`, the number of categories.
        """
        pa = arrow()
        group = self.labels[self.order]
        columns: dict[str, Any] = {}
        for column, box in zip(self.source.encoded.quasi, self.boxes.columns, strict=True):
            for name, per_group in _bounds(column, box).items():
                columns[name] = _column(per_group).take(pa.array(group))
        return to_kind(pa.table(columns), self.source.kind)

    def records(self) -> list[dict[str, Any]]:
        """Return what is published, row by row."""
        rows: list[dict[str, Any]] = self._published().to_pylist()
        return rows

    @cached_property
    def of_one_provider(self) -> int:
        """The number of groups with the rows of one provider alone."""
        owner = self.source.encoded.provider[self.rows].astype(np.int64)
        first = np.zeros(self.boxes.count, dtype=np.int64)
        first[self.labels] = owner
        # A group is mixed if any row has another provider than the group's last one.
        mixed = np.bincount(self.labels[owner != first[self.labels]], minlength=self.boxes.count)
        return int(np.count_nonzero(mixed == 0))

    @property
    def pooled(self) -> str:
        """A sentence on how many groups have a single provider; empty if none has."""
        alone, groups = self.of_one_provider, self.boxes.count
        if not alone or len(self.source.encoded.providers) == 1:
            return ""
        if alone == groups:
            return (
                "Every group has the rows of one provider alone, as with "
                f"{argument('method', 'separate')}: "
                "combining the rows of the providers had no benefit."
            )
        share = f"{alone:,} of {groups:,} groups ({percent(alone / groups)})"
        return f"{share} have the rows of one provider alone."

    def row_groups(self) -> dict[str, Any]:
        """Return the rows of each provider as they are published, as Arrow tables."""
        provider = self.source.encoded.provider[self.rows[self.order]]
        names = map(str, self.source.encoded.providers)
        return {name: self._published(provider == code) for code, name in enumerate(names)}

    def write(self, path: str | Path, formulas: Formulas = "keep") -> Path:
        """Write the published frame as `.csv` or `.parquet`, without providers.

        A spreadsheet evaluates texts such as `=1+1` of a CSV file; with formulas="escape" they
        begin with an apostrophe, and are displayed.

        Raises:
            InvalidInputError: for another ending, or formulas to escape in a Parquet file.
            StorageError: if the file cannot be written; an existing file is then unchanged.
        """
        check_formulas(formulas, check_ending(path))
        return write_table(self._published(), path, formulas)

    def _texts(self, order: Counts) -> dict[str, Any]:
        """Return the published texts of some rows as dictionary columns."""
        pa = arrow()
        return {
            column.name: pa.DictionaryArray.from_arrays(
                pa.array(column.codes[order]), pa.array(column.values)
            )
            for column in self._quasi
        }

    @property
    def _quasi(self) -> tuple[Column, ...]:
        """The published texts of each row, in input order."""
        columns = zip(self.source.encoded.quasi, self.boxes.columns, strict=True)
        return tuple(
            Column(
                column.name,
                "categorical",
                texts,
                text_of.astype(code_type(len(texts)))[self.labels],
            )
            for column, (texts, text_of) in ((column, box.written) for column, box in columns)
        )

    def _taken(self, names: Any, order: Counts) -> dict[str, Any]:
        """Return some columns of the source for some published rows."""
        index = arrow().array(self.rows[order])
        return {name: _plain(self.source.data.column(name).take(index)) for name in names}

    def __repr__(self) -> str:
        return (
            f"Publication({len(self.rows)} rows in {self.boxes.count} groups, {self.constraint} "
            f"against {self.m} colluding, {self.method})"
        )


def require_local(value: object) -> PublishedRecords:
    """Return `value` if it was published on this machine."""
    if not isinstance(value, PublishedRecords):
        raise InvalidInputError(
            f"Pass the result of anonymize with backend='local', not a {type(value).__name__}."
        )
    return value


def _bounds(column: Column, box: ColumnBoxes) -> dict[str, list[Any]]:
    """Return the machine-readable columns of one quasi-identifier, by group."""
    name = column.name
    # Sets have no order, so there is no low and high end.
    if box.members is not None:
        return {f"{name}_size": box.members.sizes.tolist()}
    if column.hierarchy is not None and column.kind != "numeric":
        return {f"{name}_size": (box.upper - box.lower + 1).tolist()}
    values: Sequence[Any] = column.values
    if column.kind == "numeric":
        values = [float(value) if isinstance(value, str) else value for value in values]
    low = [values[code] for code in box.lower.tolist()]
    high = [values[code] for code in box.upper.tolist()]
    columns: dict[str, list[Any]] = {f"{name}_low": low, f"{name}_high": high}
    if column.kind == "numeric":
        pairs = zip(low, high, strict=True)
        columns[f"{name}_mid"] = [None if a is None or b is None else (a + b) / 2 for a, b in pairs]
    return columns


def _column(values: list[Any]) -> Any:
    pa = arrow()
    try:
        return pa.array(values)
    except OverflowError:  # above 2^63, where only unsigned integers fit
        return pa.array(values, pa.uint64())


def _plain(column: Any) -> Any:
    """Drop categories that do not occur, which may be those of suppressed rows.

    −0.0 becomes 0.0, as wherever values are compared.
    """
    import pyarrow.compute as pc

    types = arrow().types
    if types.is_floating(column.type):
        if types.is_float16(column.type):  # Arrow does not add float16
            column = column.cast(arrow().float32())
        return pc.add(column, arrow().scalar(0.0, column.type))
    if not types.is_dictionary(column.type):
        return column
    if column.type.ordered:
        present = pc.unique(column.indices).drop_null()
        present = present.take(pc.sort_indices(present))
        indices = pc.index_in(column.indices, present)
        return arrow().DictionaryArray.from_arrays(
            indices, column.dictionary.take(present), ordered=True
        )
    if types.is_null(column.type.value_type):  # categories that were never named
        return arrow().nulls(len(column))
    return column.cast(column.type.value_type).dictionary_encode()


def boxes_of_groups(encoded: CodedTable, labels: Counts, rows: Counts) -> Boxes:
    """Return the boxes of groups; labels[i] is the group of row rows[i] of the table."""
    order = np.argsort(labels, kind="stable")
    sorted_rows = order if len(rows) == encoded.rows else rows[order]
    return boxes_of(encoded.quasi, sorted_rows, starts_of(np.bincount(labels)))


def assemble(table: Table, labels: Counts, recipe: Recipe) -> PublishedRecords:
    """Make boxes of groups, merge groups with equal texts, and number groups by content.

    Labels below 0 mark rows that are not published. `recipe` says how the groups were made.
    """
    encoded = table.encoded
    rows = np.arange(len(labels), dtype=code_type(len(labels)))
    if labels.min() < 0:
        rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        raise NotPrivateError("No rows are left to publish. Lower suppression, or m, k or l.")
    labels = labels if len(rows) == len(labels) else labels[rows]
    present = np.bincount(labels) > 0
    if not present.all():
        labels = (np.cumsum(present) - 1)[labels]
    boxes = boxes_of_groups(encoded, labels, rows)
    # Groups with equal texts are one group to every reader, so they get one box.
    _, merged = np.unique(boxes.text_of, axis=0, return_inverse=True)
    merged = merged.reshape(-1).astype(code_type(max(boxes.count, 1 << 16)))
    labels = merged[labels]
    if merged.max() + 1 < boxes.count:
        boxes = boxes_of_groups(encoded, labels, rows)
    else:
        boxes = Boxes(tuple(column.take(np.argsort(merged)) for column in boxes.columns))
    return PublishedRecords(table, recipe, boxes, labels, rows)
