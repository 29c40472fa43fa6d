"""Subjects on Spark: who knows whom is a set of providers for each person.

The records of one person are brought to one partition, once. There people are numbered, and each
record is told which providers hold any record of its person, anywhere in the table: its *circle*.
From then on no pass needs a person's other records, and since nobody is in two partitions, people
that partitions count add up. Cost: three shuffles of the table by person.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.tables.encoding import encode_column
from quiltwork.tables.provider_sets import NO_SETS, NumberSets, set_ids, who_knows
from quiltwork.tables.spark.session import mapped, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.spark.domains import Domains
    from quiltwork.tables.table import Table

CIRCLE = "quiltwork_circle"
"""Who knows a record's person: for checks, never published."""
MOST_CIRCLES = 200_000
"""Different sets of providers that the driver takes."""
ROWS_PER_PARTITION = 200_000
_SET = "quiltwork_set"

Counts = NDArray[np.int64]


def read_circles(table: Table, frame: DataFrame, providers: Sequence[Any]) -> NumberSets:
    """Bring the sets of several providers that know one person to the driver, in order.

    Raises:
        InvalidInputError: if records have no subject.
        UnsupportedError: if the sets are more than `MOST_CIRCLES`.
    """
    from pyspark.sql import functions

    person = _person(table, frame)
    lost = frame.where(_is_missing(table, frame)).count()
    if lost:
        raise InvalidInputError(
            f"Column {table.subject!r} has {lost:,} missing values; every record needs a subject: "
            "fill it in, or drop those rows."
        )
    if table.provider is None:
        return NO_SETS
    owner = frame[quoted(table.provider)]
    known = frame.groupBy(person).agg(functions.collect_set(owner).alias(_SET))
    several = known.select(functions.sort_array(_SET).alias(_SET)).where(functions.size(_SET) > 1)
    found = several.distinct().limit(MOST_CIRCLES + 1).toArrow()
    if found.num_rows > MOST_CIRCLES:
        raise UnsupportedError(
            f"People are known to more than {MOST_CIRCLES:,} different sets of providers, too many "
            "to tell coalitions apart; group small providers, or use backend='local'."
        )
    code = {label: number for number, label in enumerate(providers)}
    sets = [sorted(code[label] for label in one) for one in found.column(_SET).to_pylist()]
    if not sets:
        return NO_SETS
    owners = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    members = np.array([member for one in sets for member in one], dtype=np.int64)
    return set_ids(owners, members, len(sets), len(providers))[1]


def counts_by_value(table: Table, frame: DataFrame, count: str) -> Any:
    """Count the records of each sensitive value, or with a subject column the people.

    The result is an Arrow table with a column `count`.
    """
    from pyspark.sql import functions

    if table.subject is not None:
        values = [frame[quoted(name)] for name in table.sensitive]
        frame = frame.select(_person(table, frame), *values).distinct()
    names = [frame[quoted(name)] for name in table.sensitive]
    return frame.groupBy(*names).agg(functions.count(functions.lit(1)).alias(count)).toArrow()


def by_person(table: Table, frame: DataFrame, rows: int) -> DataFrame:
    """Bring the records of each person to one partition."""
    parts = max(1, -(-rows // ROWS_PER_PARTITION))
    return frame.repartition(parts, _person(table, frame))


def numbered(table: Table, frame: DataFrame, domains: Domains) -> DataFrame:
    """Replace subjects by numbers and add each record's circle; other columns stay as they are."""
    from pyspark.sql import types

    assert table.subject is not None  # noqa: S101  (for type checkers)
    place = frame.columns.index(table.subject)
    fields = list(frame.schema.fields)
    fields[place] = types.StructField(table.subject, types.LongType())
    schema = types.StructType([*fields, types.StructField(CIRCLE, types.IntegerType())])
    owner = None if table.provider is None else frame.columns.index(table.provider)
    number = _numberer(place, owner, domains)
    return mapped(by_person(table, frame, domains.rows), number, schema)


def _numberer(
    place: int, owner: int | None, domains: Domains
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def number(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from quiltwork.tables.spark.blocks import CodeReader

        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received)
        provider = np.zeros(rows.num_rows, dtype=np.int64)
        if owner is not None:
            provider = CodeReader(domains).provider(rows.column(owner).combine_chunks())
        person, circle = people_of(rows, rows.column_names[place], provider, domains)
        columns = list(rows.columns)
        columns[place] = pa.chunked_array([pa.array(person)])
        columns.append(pa.chunked_array([pa.array(circle.astype(np.int32))]))
        yield from pa.table(columns, names=[*rows.column_names, CIRCLE]).to_batches()

    return number


def people_of(rows: Any, subject: str, provider: Counts, domains: Domains) -> tuple[Counts, Counts]:
    """Number the people of a partition that holds all their records, and say who knows them.

    Numbers follow the order of subjects within the partition; no two partitions share any.
    """
    code = encode_column(rows, subject, "value").codes.astype(np.int64)
    own, sets = who_knows(code, provider, len(domains.providers))
    return (_partition() << 32) + code, _renumbered(own, sets, domains)


def _renumbered(own: Counts, sets: NumberSets, domains: Domains) -> Counts:
    """Replace numbers of this partition's sets by those of the whole table."""
    known = domains.circles or NO_SETS
    place = {known[index]: index for index in range(len(known))}
    try:
        several = [place[sets[index]] for index in range(len(sets))]
    except KeyError:
        raise NotPrivateError(
            "A person is known to other providers than when the source was read first, so the "
            "table is withheld; give a frame that does not change."
        ) from None
    alone = len(domains.providers)
    number = np.concatenate((np.arange(alone), alone + np.array(several, dtype=np.int64)))
    return number[own]


def _partition() -> int:
    from pyspark import TaskContext

    here = TaskContext.get()
    return 0 if here is None else int(here.partitionId())


def _person(table: Table, frame: DataFrame) -> Any:
    """Name the subject's column as a key; −0.0 and 0.0 are one value."""
    from pyspark.sql import functions

    assert table.subject is not None  # noqa: S101  (for type checkers)
    column = frame[quoted(table.subject)]
    return column + functions.lit(0.0) if _is_float(table, frame) else column


def _is_float(table: Table, frame: DataFrame) -> bool:
    from pyspark.sql import types

    assert table.subject is not None  # noqa: S101  (for type checkers)
    kind = frame.schema[table.subject].dataType
    return isinstance(kind, (types.FloatType, types.DoubleType))


def _is_missing(table: Table, frame: DataFrame) -> Any:
    from pyspark.sql import functions

    person = _person(table, frame)
    return person.isNull() | functions.isnan(person) if _is_float(table, frame) else person.isNull()
