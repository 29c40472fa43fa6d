"""People of a node, by who knows them: what the driver needs to decide cuts with a subject column.

For k-anonymity only the people of each circle count, for distinct l-diversity only which values
each circle has: what is left without a coalition is made of circles that it does not meet. Other
constraints look at the sets of values that people have. Everyone is in one block, so that blocks
count people once and their counts add up.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.constraints.l_diversity import LDiversity
from quiltwork.tables.provider_sets import NO_SETS, NumberSets, distinct_rows, set_ids
from quiltwork.tables.sparse import SparseCounts
from quiltwork.tables.verification.all_groups import groups_withstand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.spark.domains import Domains

PEOPLE_SCHEMA = "node int, who int, kind binary, people long"
MOST_KINDS = 2_000_000
"""Counts of people that the driver takes at once."""
_INSIDE, _ALL = b"inside", b""
"""Marks of counts that are not of people with certain values: a provider's records, a circle."""

Counts = NDArray[np.int64]
Places = Callable[[bytes], tuple[Any, Counts]]
"""Reads a block: its records, and for each the place of its node among those asked, or −1."""


@dataclass(frozen=True, eq=False)
class NodePeople:
    """The people of one node.

    Attributes:
        by_circle: people by who knows them.
        by_values: people by who knows them and what they have; if the constraint asks for k and l
            only, which values those have whom the same providers know.
    """

    by_circle: SparseCounts
    by_values: SparseCounts

    def withstand(self, constraint: Constraint, m: int) -> bool:
        """Tell whether the node is proven to withstand every coalition of at most m providers."""
        return all(self._withstand(part, m) for part in constraint.parts)

    def _withstand(self, part: Constraint, m: int) -> bool:
        counts = self.by_circle if isinstance(part, KAnonymity) else self.by_values
        return bool(groups_withstand(counts, part, m)[0])


def needs_sets(constraint: Constraint) -> bool:
    """Tell whether a constraint needs to know the sets of values that people have."""
    return not all(isinstance(part, KAnonymity | LDiversity) for part in constraint.parts)


def people_of_nodes(
    blocks: DataFrame, domains: Domains, places: Places, nodes: list[int], whole: bool
) -> dict[int, NodePeople]:
    """Count the people of some nodes over all blocks; `whole`: by their sets of values.

    Raises:
        UnsupportedError: if there are more different counts than `MOST_KINDS`.
    """
    from pyspark.sql import functions

    partial = blocks.mapInArrow(_counter(places, whole), PEOPLE_SCHEMA)
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


def _gathered(domains: Domains, who: Counts, kind: NDArray[Any], people: Counts) -> NodePeople:
    who = who.astype(np.int64)
    inside = np.sort(who[kind == _INSIDE])
    total = np.flatnonzero(kind == _ALL)
    total = total[np.argsort(who[total])]
    nothing = np.zeros(len(total), dtype=np.int64)
    by_circle = _counts(domains, who[total], nothing, people[total], inside)
    rest = np.flatnonzero((kind != _INSIDE) & (kind != _ALL))
    values = [np.frombuffer(one, dtype="<i4") for one in kind[rest].tolist()]
    owner = np.repeat(np.arange(len(values)), [len(one) for one in values])
    member = np.concatenate(values).astype(np.int64)
    ids, sets = set_ids(owner, member, len(values), len(domains.sensitive_values))
    order = np.lexsort((ids, who[rest]))
    by_values = _counts(
        domains, who[rest][order], ids[order], people[rest][order], inside, kinds=sets
    )
    return NodePeople(by_circle, by_values)


def _counts(
    domains: Domains,
    who: Counts,
    kind: Counts,
    people: Counts,
    inside: Counts,
    kinds: NumberSets = NO_SETS,
) -> SparseCounts:
    """Make one node the only group of a table."""
    return SparseCounts(
        group=np.zeros(len(who), dtype=np.int64),
        who=who,
        kind=kind,
        weight=people,
        start=np.array([0, len(who)]),
        inside=np.array([len(inside)]),
        providers=len(domains.providers),
        values=len(domains.sensitive_values),
        sets=domains.circles or NO_SETS,
        kinds=kinds,
        contributors=(np.zeros(len(inside), dtype=np.int64), inside),
    )


def _counter(places: Places, whole: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def count(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for scalar in batch.column(0):
                rows, at = places(scalar.as_py())
                if rows.count:
                    yield _as_batch(*_counted(rows, at, whole))

    return count


def _counted(rows: Any, at: Counts, whole: bool) -> tuple[list[Counts], list[bytes]]:
    """Count the people of one block; return (node, who, people) and the kind of each count."""
    provider, sensitive, circle = (
        array.astype(np.int64) for array in (rows.provider, rows.sensitive, rows.circle)
    )
    person = np.unique(rows.person, return_inverse=True)[1].reshape(-1)
    nodes, people = int(at.max()) + 1, int(person.max()) + 1
    providers, values, circles = (int(a.max()) + 1 for a in (provider, sensitive, circle))
    known = np.zeros(people, dtype=np.int64)
    known[person] = circle
    (where, who), number = distinct_rows([at, provider], [nodes, providers])
    counts, kinds = [np.stack((where, who, number))], [_INSIDE] * len(where)

    (node, whom, value), _ = distinct_rows([at, person, sensitive], [nodes, people, values])
    first = np.append(True, (np.diff(node) != 0) | (np.diff(whom) != 0))
    (where, who), number = distinct_rows([node[first], known[whom[first]]], [nodes, circles])
    counts.append(np.stack((where, who, number)))
    kinds += [_ALL] * len(where)

    sets = NO_SETS
    if whole:
        presence = np.cumsum(first) - 1
        value, sets = set_ids(presence, value, int(presence[-1]) + 1, values)
        node, whom = node[first], whom[first]
    sizes = [nodes, circles, values + len(sets)]
    (where, who, kind), number = distinct_rows([node, known[whom], value], sizes)
    counts.append(np.stack((where, who, number)))
    names = [np.array(sets[i], dtype="<i4").tobytes() for i in range(len(sets))]
    single = [np.array([i], dtype="<i4").tobytes() for i in range(values)]
    kinds += [(single + names)[i] for i in kind.tolist()]
    return list(np.concatenate(counts, axis=1)), kinds


def _as_batch(counts: list[Counts], kinds: list[bytes]) -> Any:
    import pyarrow as pa

    node, who, people = counts
    return pa.RecordBatch.from_pydict(
        {
            "node": pa.array(node.astype(np.int32)),
            "who": pa.array(who.astype(np.int32)),
            "kind": pa.array(kinds, pa.binary()),
            "people": pa.array(people),
        }
    )
