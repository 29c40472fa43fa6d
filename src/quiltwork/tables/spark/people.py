"""Subjects on Spark: who knows whom is a set of providers for each person.

The records of one person are brought to one partition, once. There people are numbered, and each
record is told which providers hold any record of its person, anywhere in the table: its *circle*.
From then on no pass needs a person's other records, and since nobody is in two partitions (or
blocks), people that partitions count add up: by circle and by the set of values that they have, as
`group` counts the groups of a local table. Cost: three shuffles of the table by person.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.tables.distinct import NO_SETS, NumberSets, distinct_rows, set_ids, who_knows
from quiltwork.tables.encoding import encode_column
from quiltwork.tables.group import SparseCounts
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
PEOPLE_SCHEMA = "node int, who int, kind binary, people long"
MOST_KINDS = 2_000_000
"""Counts of people that the driver takes at once."""
_INSIDE = b"inside"
"""Marks that a provider has records in a node; other kinds are values, four bytes each."""
Places = Callable[[bytes], tuple[Any, Counts]]
"""Reads a block: its records, and for each the place of its node among those asked, or −1."""


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


def people_of_nodes(
    blocks: DataFrame, domains: Domains, places: Places, nodes: list[int]
) -> dict[int, SparseCounts]:
    """Count the people of some nodes over all blocks, each node as the only group of a table.

    Raises:
        UnsupportedError: if there are more different counts than `MOST_KINDS`.
    """
    from pyspark.sql import functions

    partial = blocks.mapInArrow(_counter(places), PEOPLE_SCHEMA)
    sums = partial.groupBy("node", "who", "kind").agg(functions.sum("people").alias("people"))
    found = sums.limit(MOST_KINDS + 1).toArrow()
    if found.num_rows > MOST_KINDS:
        raise UnsupportedError(
            "The sets of providers that know a person, and of the values that they have, are too "
            "many to count per node; group rare values or small providers, or use backend='local'."
        )
    place, who, people = (found.column(name).to_numpy() for name in ("node", "who", "people"))
    kind = np.array(found.column("kind").to_pylist(), dtype=object)
    return {
        node: _gathered(domains, who[place == i], kind[place == i], people[place == i])
        for i, node in enumerate(nodes)
    }


def _gathered(domains: Domains, who: Counts, kind: NDArray[Any], people: Counts) -> SparseCounts:
    """Make the counts of one node those of a table's only group."""
    inside = np.sort(who[kind == _INSIDE]).astype(np.int64)
    rest = np.flatnonzero(kind != _INSIDE)
    values = [np.frombuffer(one, dtype="<i4") for one in kind[rest].tolist()]
    owner = np.repeat(np.arange(len(values)), [len(one) for one in values])
    member = np.concatenate(values).astype(np.int64)
    ids, sets = set_ids(owner, member, len(values), len(domains.sensitive_values))
    order = np.lexsort((ids, who[rest]))
    return SparseCounts(
        group=np.zeros(len(rest), dtype=np.int64),
        who=who[rest][order].astype(np.int64),
        kind=ids[order],
        weight=people[rest][order],
        start=np.array([0, len(rest)]),
        inside=np.array([len(inside)]),
        providers=len(domains.providers),
        values=len(domains.sensitive_values),
        sets=domains.circles or NO_SETS,
        kinds=sets,
        contributors=(np.zeros(len(inside), dtype=np.int64), inside),
    )


def _counter(places: Places) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for scalar in batch.column(0):
                rows, at = places(scalar.as_py())
                if not rows.count:
                    continue
                (node, who, people), kinds = _counted(rows, at)
                yield pa.RecordBatch.from_pydict(
                    {
                        "node": pa.array(node.astype(np.int32)),
                        "who": pa.array(who.astype(np.int32)),
                        "kind": pa.array(kinds, pa.binary()),
                        "people": pa.array(people),
                    }
                )

    return count


def _counted(rows: Any, at: Counts) -> tuple[Counts, list[bytes]]:
    """Count the people of one block; return (node, who, people) × count and the kind of each.

    `first` marks where a person's values in a node begin in the sorted triples of node, person and
    value, and `presence` numbers these pairs of node and person.
    """
    provider, sensitive, circle = (
        array.astype(np.int64) for array in (rows.provider, rows.sensitive, rows.circle)
    )
    person = np.unique(rows.person, return_inverse=True)[1].reshape(-1)
    nodes, people = int(at.max()) + 1, int(person.max()) + 1
    providers, values, circles = (int(a.max()) + 1 for a in (provider, sensitive, circle))
    known = np.zeros(people, dtype=np.int64)
    known[person] = circle
    (where, who), number = distinct_rows([at, provider], [nodes, providers])
    inside, marks = np.stack((where, who, number)), [_INSIDE] * len(where)
    (node, whom, value), _ = distinct_rows([at, person, sensitive], [nodes, people, values])
    first = np.append(True, (np.diff(node) != 0) | (np.diff(whom) != 0))
    presence = np.cumsum(first) - 1
    kind, sets = set_ids(presence, value, int(presence[-1]) + 1, values)
    (where, who, kind), number = distinct_rows(
        [node[first], known[whom[first]], kind], [nodes, circles, values + len(sets)]
    )
    names = [(one,) for one in range(values)] + [sets[i] for i in range(len(sets))]
    written = [np.array(one, dtype="<i4").tobytes() for one in names]
    counted = np.concatenate((inside, np.stack((where, who, number))), axis=1)
    return counted, marks + [written[i] for i in kind.tolist()]
