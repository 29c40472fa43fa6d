"""`Clusters`: arbitrary dependence between rows of a cluster, independence across clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.documents import field, labels_from_json, labels_to_json
from quiltwork.beliefs.matrices import IntArray, frozen
from quiltwork.beliefs.sequences import factorize_labels, first_positions, position_of
from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Clusters(Belief):
    """Arbitrary dependence within a cluster, independence across clusters.

    Row i belongs to the cluster named `labels[i]`: a household, a hospital, a person with several
    rows. Clusters are numbered in order of first appearance. O(n) in time and memory.

    Args:
        labels: one label per row; any sequence, array or series.

    Raises:
        InvalidInputError: for no rows, a missing label (its position is named) or a bad one.

    >>> homes = Clusters(["a", "b", "a"])
    >>> homes.largest, homes.sizes, homes.members
    (2, array([2, 1]), (array([1, 3]), array([2])))
    """

    names: tuple[Label, ...]
    codes: IntArray
    length: int
    states = None
    schema = "belief/clusters"

    def __init__(self, labels: Any) -> None:
        codes, names = factorize_labels(labels)
        if None in names:
            position = position_of(codes, names.index(None))
            raise InvalidInputError(
                f"Row {position} has no cluster (None). Give every row a label; an independent row "
                "gets one of its own."
            )
        order = np.argsort(first_positions(codes, len(names)))
        rank = np.empty(len(names), dtype=np.int64)
        rank[order] = np.arange(len(names))
        self.__setstate__((tuple(names[i] for i in order), rank[codes], len(codes)))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of each row."""
        return tuple(self.names[code] for code in self.codes.tolist())

    @cached_property
    def sizes(self) -> IntArray:
        """The number of rows of each cluster."""
        return frozen(np.bincount(self.codes, minlength=len(self.names)).astype(np.int64))

    @property
    def largest(self) -> int:
        """The number of rows of the largest cluster."""
        return int(self.sizes.max())

    @cached_property
    def grouped_rows(self) -> IntArray:
        """All row numbers (1-based) in order of clusters, ascending within each. O(n log n)."""
        return frozen(np.argsort(self.codes, kind="stable").astype(np.int64) + 1)

    @cached_property
    def members(self) -> tuple[IntArray, ...]:
        """The row numbers (1-based) of each cluster; views into `grouped_rows`."""
        stops = np.cumsum(self.sizes).tolist()
        starts = [0, *stops[:-1]]
        rows = self.grouped_rows
        return tuple(rows[a:b] for a, b in zip(starts, stops, strict=True))

    def _written(self) -> dict[str, Any]:
        return {"names": labels_to_json(self.names), "rows": self.codes.tolist()}

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        names, rows = labels_from_json(field(document, "names")), field(document, "rows")
        numbers = range(len(names))
        if not isinstance(rows, list) or not all(
            type(row) is int and row in numbers for row in rows
        ):
            raise InvalidInputError(
                f"rows must be a list of cluster numbers 0..{len(names) - 1}; the document may "
                "have been edited."
            )
        return {"labels": [names[row] for row in rows]}

    def summary(self) -> str:
        """Return the numbers of rows and clusters in words."""
        return (
            f"{counted(self.length, 'row')} in {counted(len(self.names), 'cluster')} of at most "
            f"{self.largest}, each independent of the others"
        )

    def __repr__(self) -> str:
        """Return the numbers of rows and clusters only."""
        rows = "row" if self.length == 1 else "rows"
        noun = "cluster" if len(self.names) == 1 else "clusters"
        return f"Clusters({self.length} {rows} in {len(self.names)} {noun}; largest={self.largest})"
