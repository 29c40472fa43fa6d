"""People of a node, by who knows them: what the driver needs to decide cuts with a subject column.

They are counted by the providers that know them (their circle) and the set of values that they
have, as `sparse` counts the groups of a local table. Everyone is in one block, so that blocks count
people once and their counts add up.

Theorem: anonymization
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.distinct import NO_SETS, distinct_rows, set_ids
from quiltwork.tables.group import SparseCounts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.spark.domains import Domains

PEOPLE_SCHEMA = "node int, who int, kind binary, people long"
MOST_KINDS = 2_000_000
"""Counts of people that the driver takes at once."""
_INSIDE = b"inside"
"""Marks that a provider has records in a node; other kinds are values, four bytes each."""

Counts = NDArray[np.int64]
Places = Callable[[bytes], tuple[Any, Counts]]
"""Reads a block: its records, and for each the place of its node among those asked, or −1."""


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
