"""What a published table says about quasi-identifiers, as the share of each label in a range.

Each label of a column covers a range of the column's sorted values, or a set of them, and its
records count as spread evenly over the values it covers. Two makes of published tables come in: the
boxes of a `Publication`, and the texts of any frame (`20..25`, `{flu, asthma}`, labels of declared
hierarchies).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.tables.encoding import Column
from quiltwork.tables.generalization.reading import Reader

if TYPE_CHECKING:
    from quiltwork.tables.generalization.boxes import Boxes
    from quiltwork.tables.table import Table

Shares: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RangeLabels:
    """Labels that cover codes lower..upper, and the missing value (the last code) where said."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    missing: NDArray[np.bool_]
    last: int

    def share(self, first: int, final: int) -> Shares:
        """Return the share of each label's values with codes first..final."""
        inside = np.minimum(self.upper, final) - np.maximum(self.lower, first) + 1
        inside = np.maximum(inside, 0) + (self.missing & (first <= self.last <= final))
        return np.asarray(inside / self.sizes(), dtype=np.float64)

    def sizes(self) -> NDArray[np.int64]:
        """Return how many values each label covers."""
        return self.upper - self.lower + 1 + self.missing

    def holds(self, code: int) -> NDArray[np.bool_]:
        """Tell which labels cover a code."""
        return ((self.lower <= code) & (code <= self.upper)) | (self.missing & (code == self.last))


@dataclass(frozen=True, eq=False)
class SetLabels:
    """Labels that cover sets of codes; `below[i, c]` counts those of set i that are less than c."""

    below: NDArray[np.int32]

    def share(self, first: int, final: int) -> Shares:
        """Return the share of each label's values with codes first..final."""
        inside = self.below[:, final + 1] - self.below[:, first]
        return np.asarray(inside / self.below[:, -1], dtype=np.float64)

    def sizes(self) -> NDArray[np.int64]:
        """Return how many values each label covers."""
        return self.below[:, -1].astype(np.int64)

    def holds(self, code: int) -> NDArray[np.bool_]:
        """Tell which labels cover a code."""
        return np.asarray(self.below[:, code + 1] > self.below[:, code])


@dataclass(frozen=True, eq=False)
class Coverage:
    """A published table's groups.

    Attributes:
        columns: for each quasi-identifier, what its labels cover.
        label_of: group × quasi-identifier, the index of its label.
        sizes: the records of each group.
    """

    columns: tuple[RangeLabels | SetLabels, ...]
    label_of: NDArray[np.int64]
    sizes: NDArray[np.int64]


def coverage_of_boxes(columns: Sequence[Column], boxes: Boxes, sizes: NDArray[Any]) -> Coverage:
    """Return the coverage of a publication's boxes over the columns they were made from."""
    covers: list[RangeLabels | SetLabels] = []
    for place, column in enumerate(columns):
        members = boxes.members[place]
        if members is None:
            lower, upper = (side[:, place].astype(np.int64) for side in (boxes.lower, boxes.upper))
            covers.append(
                RangeLabels(lower, upper, boxes.missing[:, place], len(column.values) - 1)
            )
        else:
            owners = np.repeat(np.arange(boxes.count), members.sizes)
            covers.append(_sets(owners, members.codes, boxes.count, len(column.values)))
    every = np.arange(boxes.count, dtype=np.int64)
    label_of = np.repeat(every[:, None], len(columns), axis=1)
    return Coverage(tuple(covers), label_of, np.asarray(sizes, dtype=np.int64))


def coverage_of_texts(original: Table, published: Table) -> Coverage:
    """Return the coverage of a frame of published texts over an original table's columns.

    Raises:
        InvalidInputError: if a text covers no value of the original column.
    """
    groups = published.groups
    covers, labels = [], []
    for column in original.encoded.quasi:
        shown = next((c for c in published.encoded.quasi if c.name == column.name), None)
        if shown is None:
            raise InvalidInputError(
                f"The published table has no quasi-identifier {column.name!r}; give it the "
                "original's quasi-identifiers."
            )
        covers.append(covered(column, shown.values))
        labels.append(shown.codes[groups.first].astype(np.int64))
    return Coverage(
        tuple(covers), np.stack(labels, axis=1), np.bincount(groups.labels, minlength=groups.count)
    )


def covered(column: Column, texts: Sequence[Any]) -> SetLabels:
    """Return what published texts cover of a column's values.

    Raises:
        InvalidInputError: if a text covers none.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> covered(ages, ["20..30", "31", 25]).sizes().tolist()
    [2, 1, 1]
    """
    reader = Reader(column)
    found = [reader.codes(text) for text in texts]
    nothing = sum(not len(codes) for codes in found)
    if nothing:
        raise InvalidInputError(
            f"{nothing:,} of {len(texts):,} published texts of column {column.name!r} cover no "
            "value of the original table; declare its hierarchy or order on the original table."
        )
    owners = np.repeat(np.arange(len(found)), [len(codes) for codes in found])
    return _sets(owners, np.concatenate(found), len(found), len(column.values))


def _sets(owners: NDArray[Any], codes: NDArray[Any], labels: int, values: int) -> SetLabels:
    below = np.zeros((labels, values + 1), dtype=np.int32)
    below[owners, codes.astype(np.int64) + 1] = 1
    return SetLabels(np.cumsum(below, axis=1, dtype=np.int32))
