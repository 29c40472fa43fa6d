"""`Domains`: the distinct values of every column, and how often they occur.

The driver knows no more of a table before it decides cuts. Values get the codes that a local table
would have, so that both backends cut alike. Cost: one distributed pass; the distinct values come to
the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.codes.encoding import (
    CodedTable,
    Column,
    encode_column,
    encode_product,
    merge_spellings,
    missing_cells,
    missing_remedy,
    refuse_ambiguous_names,
    refuse_huge_numbers,
)
from quiltwork.tables.codes.group import SparseCounts, one_group
from quiltwork.tables.codes.hierarchies import Hierarchy
from quiltwork.tables.constraints.constraint import Conjunction, Constraint
from quiltwork.tables.input.frames import ArrowFrame
from quiltwork.tables.partitioning.coded_records import (
    Axes,
    CodedRecords,
    records_of,
    working_order,
)
from quiltwork.tables.spark.session import quote_name
from quiltwork.tables.table import Table, secret_classes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_VALUES = 200_000
"""The most distinct values of a column that the driver collects."""
MOST_CELLS = 4_000_000
"""The most providers × sensitive values whose counts the driver collects for one node."""
COUNT = "quiltwork_count"
_SET = "quiltwork_set"

Counts = NDArray[np.int64]
Codes = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Domains:
    """The values of a table's columns, and how often they occur.

    Attributes:
        table: the table without its rows.
        ranks: for each quasi-identifier, code → working code (the order in which it is cut).
        axes: the quasi-identifiers as directions of cuts, in working codes.
        secrets: the sensitive columns; `codes` are those of the combinations that occur.
        sensitive_counts: the records of each combination.
        types: the Arrow types of provider and sensitive columns, by name.
        rows: the number of rows of the whole table.
    """

    table: CodedTable
    ranks: tuple[Counts, ...]
    axes: Axes
    secrets: tuple[Column, ...]
    sensitive_counts: Counts
    types: dict[str, Any]
    rows: int

    def encoded(self, quasi: tuple[Column, ...], provider: Codes, sensitive: Codes) -> CodedTable:
        """Return some rows of the table as arrays, with the codes of the whole table."""
        return replace(
            self.table, quasi=quasi, provider=provider, sensitive=sensitive, rows=len(provider)
        )

    def holdings(self, table: Counts) -> SparseCounts:
        """Return records by provider and sensitive value as the counts of a single group."""
        classes = len(self.table.classes)
        # Sum columns of one class; the last column counts records without a value.
        if self.table.class_of is not None:
            table = table @ (np.arange(classes + 1) == self.table.class_of[:, None])
        return one_group(table, classes)

    def records(self, codes: Codes, provider: Codes, sensitive: Codes) -> CodedRecords:
        """Return some rows for partitioning; codes are working codes, quasi-identifier × row."""
        return CodedRecords(
            codes,
            provider,
            len(self.table.providers),
            sensitive,
            len(self.table.sensitive_values),
            np.arange(len(provider)),
            self.axes,
        )


def read_domains(table: Table, frame: DataFrame) -> Domains:
    """Count the values of every column of a Spark table."""
    if table.subject is not None:
        raise UnsupportedError(
            "On Spark, every record counts as another person: a subject column needs "
            "backend='local'. If the table does not fit one machine, keep one row per person."
        )
    if table.carried:
        raise UnsupportedError(
            "On Spark, no columns are carried along: carried needs backend='local'."
        )
    trees = {name: Hierarchy.read(source, name) for name, source in table.hierarchies.items()}
    owner = [] if table.provider is None else [[table.provider]]
    sets = [*([name] for name in table.quasi_identifiers), list(table.sensitive), *owner]
    tables = _counted(frame, sets)
    if not tables[0].num_rows:
        raise InvalidInputError("The table has no rows; there is nothing to check or publish.")
    quasi, counts = [], []
    for name, distinct in zip(table.quasi_identifiers, tables, strict=False):
        column = _encoded(table, distinct, name, trees.get(name))
        refuse_huge_numbers(column, _no_position)
        quasi.append(replace(column, codes=np.zeros(0, dtype=np.int32)))
        counts.append(_by_code(column.codes, distinct, len(column.values)))
    distinct = tables[len(quasi)]
    secrets = [_one_spelling(_encoded(table, distinct, name)) for name in table.sensitive]
    codes, values, kind = encode_product(secrets)
    class_of, labels = secret_classes(table, codes, len(values), secrets)
    types = {name: distinct.schema.field(name).type for name in table.sensitive}
    providers: tuple[Any, ...] = ("",)
    if table.provider is not None:
        providers = _providers(tables[-1], table.provider)
        types[table.provider] = tables[-1].schema.field(table.provider).type
    # The driver holds such a table for each node that a pass counts.
    if len(providers) * len(values) > MOST_CELLS:
        raise UnsupportedError(
            f"{len(providers):,} providers and {len(values):,} sensitive values are too many "
            "combinations to count per node. Merge small providers, or use backend='local'."
        )
    representatives = np.unique(codes, return_index=True)[1]
    no_codes = np.zeros(0, dtype=np.int32)
    coded = CodedTable(
        tuple(quasi), no_codes, providers, no_codes, values, kind, None, 0, (), class_of, labels
    )
    return Domains(
        table=coded,
        ranks=tuple(map(working_order, quasi, counts)),
        axes=records_of(coded).axes,
        secrets=tuple(replace(column, codes=column.codes[representatives]) for column in secrets),
        sensitive_counts=_by_code(codes, distinct, len(values)),
        types=types,
        rows=int(counts[0].sum()),
    )


def _encoded(table: Table, distinct: Any, name: str, tree: Hierarchy | None = None) -> Column:
    """Encode the distinct values of a column; refuse missing ones with their number of rows."""
    # "value" first: the local error would count distinct values, not rows.
    column = encode_column(
        ArrowFrame.of(distinct), name, "value", table.orders.get(name), tree, _no_position
    )
    if column.values[-1] is None and table.missing == "error":
        missing_rows = int(_by_code(column.codes, distinct, len(column.values))[-1])
        raise missing_cells(name, missing_rows, missing_remedy())
    return column


def _one_spelling(column: Column) -> Column:
    """Refuse values with equal canonical values: workers distinguish them by their spelling."""
    if len(merge_spellings(column).values) < len(column.values):
        raise UnsupportedError(
            f"Column {column.name!r} has a value in several spellings, such as 1.5 and 1.50. Spell "
            "it in one way, or use backend='local', which counts the spellings as one."
        )
    return column


def _no_position(row: int) -> str:
    """Return no position: rows have no numbers on Spark."""
    return ""


def _providers(distinct: Any, name: str) -> tuple[Any, ...]:
    """Return the labels of the providers, which must be unambiguous."""
    column = encode_column(ArrowFrame.of(distinct), name, "value")
    if column.values[-1] is None:
        missing_rows = int(_by_code(column.codes, distinct, len(column.values))[-1])
        raise missing_cells(
            name, missing_rows, "every record needs a provider: fill them in, or drop those rows"
        )
    refuse_ambiguous_names(column, "provider", _no_position)
    return column.values


def bind_constraint(constraint: Constraint, domains: Domains) -> Constraint:
    """Bind a constraint to this table: the labels of values, and their distribution."""
    all_values = np.arange(len(domains.table.sensitive_values), dtype=np.int32)
    # A table with one row per value is enough to bind labels; the counts are set afterwards.
    sample = domains.encoded(domains.table.quasi, np.zeros_like(all_values), all_values)
    parts = [part.bind(sample) for part in constraint.parts]
    counts = tuple(domains.table.by_class(domains.sensitive_counts).tolist())
    parts = [part.with_reference(counts) for part in parts]
    return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))


def _counted(frame: DataFrame, sets: Sequence[Sequence[str]]) -> list[Any]:
    """Collect the distinct values of some sets of columns on the driver, with their counts.

    One pass over the table; each set is counted by itself.
    """
    from pyspark.sql import functions

    names = [name for columns_of_set in sets for name in columns_of_set]
    columns = {name: frame[quote_name(name)] for name in names}
    counted = frame.groupingSets(
        [[columns[n] for n in columns_of_set] for columns_of_set in sets], *columns.values()
    )
    sums = counted.agg(
        functions.grouping_id().alias(_SET), functions.count(functions.lit(1)).alias(COUNT)
    )
    # One more than allowed, so that too many values are noticed before they reach the driver.
    collected = sums.limit(MOST_VALUES * len(sets) + 1).toArrow()
    set_of = collected.column(_SET).to_numpy()
    tables = []
    for columns_of_set in sets:
        absent = [name not in columns_of_set for name in names]
        number = sum(bit << place for place, bit in enumerate(reversed(absent)))
        table = collected.filter(set_of == number).select([*columns_of_set, COUNT])
        if table.num_rows > MOST_VALUES:
            raise UnsupportedError(
                f"Column {', '.join(columns_of_set)!r} has more than {MOST_VALUES:,} distinct "
                "values. Round it first, or use backend='local'."
            )
        tables.append(table)
    return tables


def _by_code(codes: NDArray[np.int32], distinct: Any, values: int) -> Counts:
    weights = distinct.column(COUNT).to_numpy()
    totals = np.zeros(values, dtype=np.int64)
    np.add.at(totals, codes, weights)
    return totals
