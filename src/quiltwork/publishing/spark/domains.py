"""`Domains`: the distinct values of every column and how often they occur.

This is all the driver learns of a table before it decides cuts. Values get the codes that a local
table would give them, so that both backends cut alike. Cost: one distributed pass; the distinct
values come to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.publishing.constraints.base import Conjunction, Constraint
from quiltwork.publishing.constraints.t_closeness import TCloseness
from quiltwork.publishing.encoding import Column, Encoded, Scale, encode_column, encode_product
from quiltwork.publishing.hierarchies import Hierarchy
from quiltwork.publishing.records import is_unordered, places
from quiltwork.publishing.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_VALUES = 200_000
"""Distinct values of a column that the driver takes."""
MOST_CELLS = 4_000_000
"""Providers × sensitive values whose counts the driver takes for one node."""
_COUNT = "quiltwork_count"
_SET = "quiltwork_set"

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Domains:
    """The values of a table's columns; the columns themselves have no rows.

    Attributes:
        quasi: the quasi-identifiers.
        ranks: for each of them, code → working code (the order in which it is cut).
        places: for each of them, where each working code lies in 0..1.
        providers: their labels.
        secrets: the sensitive columns; `codes` are those of the combinations that occur.
        sensitive_values: the combinations, as `Encoded` has them.
        sensitive_kind: what order they have.
        sensitive_counts: the records of each combination.
        types: the Arrow types of provider and sensitive columns, by name.
        rows: of the whole table.
    """

    quasi: tuple[Column, ...]
    ranks: tuple[Counts, ...]
    places: tuple[NDArray[np.float64], ...]
    providers: tuple[Any, ...]
    secrets: tuple[Column, ...]
    sensitive_values: tuple[Any, ...]
    sensitive_kind: Scale
    sensitive_counts: Counts
    types: dict[str, Any]
    rows: int

    def encoded(
        self, quasi: tuple[Column, ...], provider: NDArray[np.int32], sensitive: NDArray[np.int32]
    ) -> Encoded:
        """Return some rows of the table as arrays with the codes of the whole."""
        return Encoded(
            quasi=quasi,
            provider=provider,
            providers=self.providers,
            sensitive=sensitive,
            sensitive_values=self.sensitive_values,
            sensitive_kind=self.sensitive_kind,
            subject=None,
            rows=len(provider),
        )


def read_domains(table: Table, frame: DataFrame) -> Domains:
    """Count the values of every column of a Spark table.

    Raises:
        InvalidInputError: for an empty table and whatever a local table refuses in its columns.
        UnsupportedError: with a subject column, or with more values than a driver should take.
    """
    if table.subject is not None:
        raise UnsupportedError(
            "A subject column needs the local backend: who knows whom cannot be told from counts "
            "per node. Keep one record per person, or use backend='local'."
        )
    trees = {name: Hierarchy.read(source, name) for name, source in table.hierarchies.items()}
    owner = [] if table.provider is None else [[table.provider]]
    sets = [*([name] for name in table.quasi_identifiers), list(table.sensitive), *owner]
    tables = _counted(frame, sets)
    quasi, counts = [], []
    for name, found in zip(table.quasi_identifiers, tables, strict=False):
        column = encode_column(found, name, table.missing, table.ordinal.get(name), trees.get(name))
        quasi.append(replace(column, codes=np.zeros(0, dtype=np.int32)))
        counts.append(_by_code(column.codes, found, len(column.values)))
    rows = int(counts[0].sum())
    if rows == 0:
        raise InvalidInputError("The table has no rows; there is nothing to check or publish.")
    found = tables[len(quasi)]
    secrets = tuple(
        encode_column(found, name, table.missing, table.ordinal.get(name))
        for name in table.sensitive
    )
    codes, values, kind = encode_product(secrets)
    types = {name: found.schema.field(name).type for name in table.sensitive}
    providers: tuple[Any, ...] = ("",)
    if table.provider is not None:
        providers = encode_column(tables[-1], table.provider).values
        types[table.provider] = tables[-1].schema.field(table.provider).type
    if len(providers) * len(values) > MOST_CELLS:
        raise UnsupportedError(
            f"{len(providers):,} providers and {len(values):,} sensitive values are too many "
            "combinations to count per node; group small providers, or use backend='local'."
        )
    order = np.argsort(codes, kind="stable")
    return Domains(
        quasi=tuple(quasi),
        ranks=tuple(_ranks(column, count) for column, count in zip(quasi, counts, strict=True)),
        places=tuple(places(column) for column in quasi),
        providers=providers,
        secrets=tuple(replace(column, codes=column.codes[order]) for column in secrets),
        sensitive_values=values,
        sensitive_kind=kind,
        sensitive_counts=_by_code(codes, found, len(values)),
        types=types,
        rows=rows,
    )


def bound(constraint: Constraint, domains: Domains) -> Constraint:
    """Return the constraint for this table: labels of values, and the whole's distribution."""
    every = np.arange(len(domains.sensitive_values), dtype=np.int32)
    sample = domains.encoded(domains.quasi, np.zeros(len(every), dtype=np.int32), every)
    parts = [part.bind(sample) for part in constraint.parts]
    counts = tuple(domains.sensitive_counts.tolist())
    parts = [
        replace(part, reference=counts) if isinstance(part, TCloseness) else part for part in parts
    ]
    return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))


def _counted(frame: DataFrame, sets: Sequence[Sequence[str]]) -> list[Any]:
    """Bring the distinct values of some sets of columns to the driver, with their rows.

    One pass over the table; each set is counted by itself.
    """
    from pyspark.sql import functions

    names = [name for one in sets for name in one]
    columns = {name: frame[quoted(name)] for name in names}
    counted = frame.groupingSets([[columns[n] for n in one] for one in sets], *columns.values())
    sums = counted.agg(
        functions.grouping_id().alias(_SET), functions.count(functions.lit(1)).alias(_COUNT)
    )
    found = sums.limit(MOST_VALUES * len(sets) + 1).toArrow()
    which = found.column(_SET).to_numpy()
    tables = []
    for one in sets:
        absent = [name not in one for name in names]
        number = sum(bit << place for place, bit in enumerate(reversed(absent)))
        table = found.filter(which == number).select([*one, _COUNT])
        if table.num_rows > MOST_VALUES:
            raise UnsupportedError(
                f"Column {', '.join(one)!r} has more than {MOST_VALUES:,} distinct values; round "
                "it first, or use backend='local'."
            )
        tables.append(table)
    return tables


def quoted(name: str) -> str:
    """Name a column for Spark, where dots and backticks have a meaning."""
    return "`" + name.replace("`", "``") + "`"


def _by_code(codes: NDArray[np.int32], found: Any, values: int) -> Counts:
    weights = found.column(_COUNT).to_numpy()
    totals = np.zeros(values, dtype=np.int64)
    np.add.at(totals, codes, weights)
    return totals


def _ranks(column: Column, counts: Counts) -> Counts:
    """Return code → working code: categories without an order come by falling frequency."""
    if not is_unordered(column):
        return np.arange(len(counts))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank
