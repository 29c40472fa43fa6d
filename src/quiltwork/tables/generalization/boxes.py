"""`Boxes`: the published quasi-identifiers of each group, as arrays and as texts.

A box is the smallest one that covers its records: the range of numbers and ordered values, the set
of categories, the lowest label of a hierarchy above them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.distinct import NumberSets, distinct_counts
from quiltwork.tables.codes.encoding import Column
from quiltwork.tables.codes.hierarchies import Hierarchy
from quiltwork.tables.generalization.published_texts import (
    MISSING,
    range_text,
    set_text,
    value_text,
)
from quiltwork.tables.generalization.range_queries import Covers

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
_WORD = 62  # members of a set that fit one signed integer as bits


@dataclass(frozen=True, eq=False)
class ColumnBoxes(Covers):
    """The boxes of all groups in one quasi-identifier.

    Attributes:
        widths: the normalized certainty penalty: the share of the column's range, (categories −
            1)/(all − 1), or (leaves − 1)/(all leaves − 1).
        write: returns the text of one box.
    """

    widths: NDArray[np.float64]
    write: Callable[[int], str]

    @cached_property
    def written(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """The distinct texts, in an order by content alone, and the index of each box's text."""
        keys = self._keys()
        _, example, key_of = np.unique(keys, return_index=True, return_inverse=True)
        texts = [self.write(box) for box in example.tolist()]
        ends = self.lower[example].tolist(), self.upper[example].tolist()
        rank: dict[str, int] = {}
        for *_, text in sorted(zip(*ends, texts, strict=True)):
            rank.setdefault(text, len(rank))
        return tuple(rank), np.array([rank[text] for text in texts], dtype=np.int32)[key_of]

    def _keys(self) -> Counts:
        """Return a number for each box, equal for equal texts.

        Sets are encoded as bits, one word of values at a time; after each word, equal beginnings
        have equal numbers.
        """
        if self.members is None:
            ends: Counts = (self.lower * self.values + self.upper) * 2 + self.missing
            return ends
        inside, first = self.members.members, self.members.start[:-1]
        keys = np.zeros(len(first), dtype=np.int64)
        for word in range(0, self.values, _WORD):
            in_word = (inside >= word) & (inside < word + _WORD)
            bits = np.where(in_word, np.int64(1) << np.where(in_word, inside - word, 0), 0)
            part = np.unique(np.bitwise_or.reduceat(bits, first), return_inverse=True)[1]
            # Renumbering after each word keeps the key small.
            keys = np.unique(keys * (int(part.max()) + 1) + part, return_inverse=True)[1]
        return keys

    def take(self, order: Counts) -> ColumnBoxes:
        """Return the boxes in another order, with their texts."""
        taken = replace(
            self,
            lower=self.lower[order],
            upper=self.upper[order],
            missing=self.missing[order],
            members=None if self.members is None else self.members.take(order),
            widths=self.widths[order],
        )
        taken.__dict__["written"] = self.written[0], self.written[1][order]
        return taken


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of all groups, one quasi-identifier after the other."""

    columns: tuple[ColumnBoxes, ...]

    @property
    def count(self) -> int:
        """The number of boxes."""
        return len(self.columns[0].lower)

    @property
    def widths(self) -> NDArray[np.float64]:
        """Box × quasi-identifier, the normalized certainty penalty."""
        return np.stack([column.widths for column in self.columns], axis=1)

    @cached_property
    def text_of(self) -> NDArray[np.int32]:
        """Box × quasi-identifier, the index of its text."""
        return np.stack([column.written[1] for column in self.columns], axis=1)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """For each quasi-identifier, the distinct published texts."""
        return tuple(column.written[0] for column in self.columns)

    def texts_of(self, box: int) -> tuple[str, ...]:
        """Return the published texts of a group."""
        return tuple(texts[text_of[box]] for texts, text_of in (c.written for c in self.columns))


def boxes_of(columns: tuple[Column, ...], order: Counts, starts: Counts) -> Boxes:
    """Return the box of each run of rows order[starts[i]:starts[i+1]]. O(rows · columns)."""
    return Boxes(tuple(column_boxes(c, c.codes[order], starts) for c in columns))


def column_boxes(column: Column, codes: NDArray[np.int32], starts: Counts) -> ColumnBoxes:
    """Return the boxes of runs of codes in one quasi-identifier; texts are written on first use."""
    if column.unordered:
        return _set_side(column, codes, starts)
    last = len(column.values) - 1
    low = np.minimum.reduceat(codes, starts).astype(np.int64)
    high = np.maximum.reduceat(codes, starts).astype(np.int64)
    with_missing = np.zeros(len(starts), dtype=bool)
    # The code of the missing value is the last: it must not stretch the range of numbers.
    if column.values[-1] is None:
        with_missing = (high == last) & (low < last)
        highest_present = np.maximum.reduceat(np.where(codes == last, -1, codes), starts)
        high = np.where(with_missing, highest_present, high)
    if column.hierarchy is not None:
        return _hierarchy_side(column, column.hierarchy, low, high, with_missing)
    return _range_side(column, low, high, with_missing)


def _range_side(column: Column, low: Counts, high: Counts, with_missing: Flags) -> ColumnBoxes:
    positions = column.positions
    widths = np.where(with_missing, positions[-1], positions[high]) - positions[low]
    values = column.values

    def write(box: int) -> str:
        return range_text(values[low[box]], values[high[box]], bool(with_missing[box]))

    return ColumnBoxes(len(values), low, high, with_missing, None, widths, write)


def _hierarchy_side(
    column: Column, tree: Hierarchy, low: Counts, high: Counts, with_missing: Flags
) -> ColumnBoxes:
    """Cover leaves by labels. Codes number the leaves that occur, so leaf indices are looked up."""
    present = [value for value in column.values if value is not None]
    leaf_of = np.array([tree.leaf(value) for value in present], dtype=np.int64)
    only_missing = low >= len(leaf_of)  # only the missing value
    leaves_or_zero = leaf_of if len(leaf_of) else np.zeros(1, dtype=np.int64)
    leaf_low, leaf_high = (leaves_or_zero[np.where(only_missing, 0, side)] for side in (low, high))
    level, first, final = tree.cover(leaf_low, leaf_high)
    # The label covers leaves that do not occur; codes number only those that do.
    lower = np.where(only_missing, low, np.searchsorted(leaf_of, first, side="left"))
    upper = np.where(only_missing, high, np.searchsorted(leaf_of, final, side="right") - 1)
    spans = (final - first) / max(1, len(tree.paths) - 1)
    widths = np.where(only_missing, 0.0, np.where(with_missing, 1.0, spans))

    def write(box: int) -> str:
        label = value_text(None if only_missing[box] else tree.paths[leaf_low[box]][level[box]])
        return f"{{{label}, {MISSING}}}" if with_missing[box] else label

    return ColumnBoxes(len(column.values), lower, upper, with_missing, None, widths, write)


def _set_side(column: Column, codes: NDArray[np.int32], starts: Counts) -> ColumnBoxes:
    boxes, size = len(starts), len(column.values)
    sizes = np.diff(starts, append=len(codes))
    key = np.repeat(np.arange(boxes, dtype=np.int64) * size, sizes) + codes
    key, _ = distinct_counts(key, boxes * size)
    inside = key % size
    first = np.searchsorted(key, np.arange(boxes) * size)
    members = NumberSets(np.append(first, len(inside)), inside)
    low, high = inside[first], np.maximum.reduceat(inside, first)
    widths = (members.sizes - 1) / max(1, size - 1)

    def write(box: int) -> str:
        return set_text([column.values[code] for code in members[box]])

    return ColumnBoxes(size, low, high, np.zeros(boxes, dtype=bool), members, widths, write)
