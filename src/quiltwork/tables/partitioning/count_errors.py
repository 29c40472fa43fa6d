"""`Questions`: what groups do to counts, asked before they are chosen.

Random range queries, drawn as `query_error` draws them but from a seed of their own, are answered
from the boxes of groups. Another choice of groups in a part of the table pays if the mean error
over all queries falls by more than the sample of queries leaves in doubt. Cost: O(queries · (rows +
groups)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from quiltwork.tables.encoding import Column
from quiltwork.tables.metrics.range_queries import (
    LEAST_SHARE,
    Coverage,
    RangeLabels,
    RangeQuery,
    SetLabels,
    answers,
    random_queries,
    sets_of_codes,
    small_codes,
    true_count,
)
from quiltwork.tables.partitioning.coded_records import is_unordered
from quiltwork.tables.partitioning.cut_rule import Counts, Flags, Reals
from quiltwork.tables.partitioning.nodes import Nodes

_QUERIES, _SEED = 1000, 0x6D2D707269766163
_DOUBT = 2.0
"""Standard errors by which the error must fall."""
_CELLS = 4_000_000


@lru_cache(16)
def _drawn(domains: tuple[int, ...]) -> tuple[RangeQuery, ...]:
    return tuple(islice(random_queries(domains, _SEED), _QUERIES))


@dataclass(frozen=True, eq=False)
class Questions:
    """Queries about a table.

    Attributes:
        columns: its quasi-identifiers.
        queries: those that some rows answer.
        truth: how many rows.
        scale: what their errors are relative to.
    """

    columns: tuple[Column, ...]
    queries: tuple[RangeQuery, ...]
    truth: Reals
    scale: Reals

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> Questions:
        """Draw queries about these columns."""
        codes = small_codes(columns)
        drawn = _drawn(tuple(len(column.values) for column in columns))
        asked = [(query, count) for query in drawn if (count := true_count(codes, query))]
        truth = np.array([count for _, count in asked], dtype=np.float64)
        scale = np.maximum(truth, LEAST_SHARE * len(columns[0].codes))
        return cls(columns, tuple(query for query, _ in asked), truth, scale)

    def answers(self, groups: Nodes, part: Counts, parts: int) -> Reals:
        """Return part of the table × query: the counts that groups, each in its part, make."""
        found = np.zeros((parts, len(self.queries)))
        most = max(len(column.values) for column in self.columns)
        step = max(1, _CELLS // most)
        for first in range(0, groups.count, step):
            some = np.arange(first, min(first + step, groups.count))
            found += answers(self._coverage(groups.select(some)), self.queries, part[some], parts)
        return found

    def better(self, now: Reals, instead: Reals) -> Flags:
        """Tell in which parts to take the other answers; part after part, with those taken."""
        error = now.sum(axis=0) - self.truth
        taken = np.zeros(len(now), dtype=bool)
        for at, change in enumerate(instead - now):
            fall = (np.abs(error) - np.abs(error + change)) / self.scale
            if fall.sum() > 0 and fall.mean() > _DOUBT * fall.std() / len(fall) ** 0.5:
                taken[at] = True
                error = error + change
        return taken

    def _coverage(self, groups: Nodes) -> Coverage:
        every = np.repeat(np.arange(groups.count)[:, None], len(self.columns), axis=1)
        return Coverage(tuple(self._labels(groups)), every, groups.sizes)

    def _labels(self, groups: Nodes) -> Iterator[RangeLabels | SetLabels]:
        owners, none = groups.owners(), np.zeros(groups.count, dtype=bool)
        for column in self.columns:
            codes = column.codes[groups.rows]
            if is_unordered(column):
                yield sets_of_codes(owners, codes, groups.count, len(column.values))
            else:
                low, high = (
                    side.reduceat(codes, groups.starts).astype(np.int64)
                    for side in (np.minimum, np.maximum)
                )
                yield RangeLabels(low, high, none, len(column.values) - 1)
