"""`Boxes`: what each group says about its quasi-identifiers, as arrays and as texts.

A box is the least one that covers its records: the range of numbers and ordered values, the set of
categories, the lowest label of a hierarchy above them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.encoding import Column
from quiltwork.publishing.hierarchies import leaf_text
from quiltwork.publishing.labels import range_text, set_text, value_text
from quiltwork.publishing.nodes import runs, starts_of
from quiltwork.publishing.records import is_unordered, places

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Members:
    """Sets of codes: set i is codes[starts[i]:starts[i+1]], ascending."""

    codes: NDArray[np.int32]
    starts: Counts

    def of(self, box: int) -> NDArray[np.int32]:
        """Return the codes of one set."""
        end = self.starts[box + 1] if box + 1 < len(self.starts) else len(self.codes)
        return self.codes[self.starts[box] : end]

    @property
    def sizes(self) -> Counts:
        """How many codes each set has."""
        return np.diff(self.starts, append=len(self.codes))

    def take(self, order: Counts) -> Members:
        """Return some of the sets."""
        sizes = self.sizes[order]
        return Members(self.codes[runs(self.starts[order], sizes)], starts_of(sizes))


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of all groups; codes are those of the encoded columns.

    Attributes:
        lower: box × quasi-identifier, the least code in it (missing values apart).
        upper: likewise the largest; under a hierarchy, of everything the label covers.
        missing: whether the box contains the missing value beside others of an ordered column.
        members: for each quasi-identifier, the sets of categories, or None where boxes are ranges.
        widths: box × quasi-identifier, the normalized certainty penalty: the share of the column's
            range, (categories − 1)/(all − 1), or (leaves − 1)/(all leaves − 1).
        texts: for each quasi-identifier, the distinct published texts.
        text_of: box × quasi-identifier, the index of its text.
    """

    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    missing: NDArray[np.bool_]
    members: tuple[Members | None, ...]
    widths: NDArray[np.float64]
    texts: tuple[tuple[str, ...], ...]
    text_of: NDArray[np.int32]

    @property
    def count(self) -> int:
        """How many boxes there are."""
        return len(self.lower)


@dataclass(frozen=True, eq=False)
class _Side:
    """The boxes in one quasi-identifier."""

    lower: Counts
    upper: Counts
    missing: NDArray[np.bool_]
    members: Members | None
    widths: NDArray[np.float64]
    texts: list[str]


def boxes_of(columns: tuple[Column, ...], order: Counts, starts: Counts) -> Boxes:
    """Return the box of each run of rows order[starts[i]:starts[i+1]]. O(rows · columns)."""
    sides = [_side(column, column.codes[order], starts) for column in columns]
    texts, text_of = zip(*(_distinct_texts(side) for side in sides), strict=True)
    return Boxes(
        lower=np.stack([side.lower for side in sides], axis=1).astype(np.int32),
        upper=np.stack([side.upper for side in sides], axis=1).astype(np.int32),
        missing=np.stack([side.missing for side in sides], axis=1),
        members=tuple(side.members for side in sides),
        widths=np.stack([side.widths for side in sides], axis=1),
        texts=texts,
        text_of=np.stack(text_of, axis=1),
    )


def _side(column: Column, codes: NDArray[np.int32], starts: Counts) -> _Side:
    if is_unordered(column):
        return _set_side(column, codes, starts)
    last = len(column.values) - 1
    absent = column.values[-1] is None
    low = np.minimum.reduceat(codes, starts).astype(np.int64)
    high = np.maximum.reduceat(codes, starts).astype(np.int64)
    mixed = np.zeros(len(starts), dtype=bool)
    if absent:
        mixed = (high == last) & (low < last)
        known = np.maximum.reduceat(np.where(codes == last, -1, codes), starts)
        high = np.where(mixed, known, high)
    if column.hierarchy is not None:
        return _hierarchy_side(column, low, high, mixed)
    return _range_side(column, low, high, mixed)


def _range_side(column: Column, low: Counts, high: Counts, mixed: NDArray[np.bool_]) -> _Side:
    where = places(column)
    widths = np.where(mixed, where[-1], where[high]) - where[low]
    values = column.values
    texts = [
        range_text(values[a], values[b], bool(c))
        for a, b, c in zip(low.tolist(), high.tolist(), mixed.tolist(), strict=True)
    ]
    return _Side(low, high, mixed, None, widths, texts)


def _hierarchy_side(column: Column, low: Counts, high: Counts, mixed: NDArray[np.bool_]) -> _Side:
    """Cover leaves by labels. Codes count the leaves that occur, so places are looked up."""
    tree = column.hierarchy
    assert tree is not None  # noqa: S101  (the caller's case)
    known = [value for value in column.values if value is not None]
    leaf = np.array([tree.place[leaf_text(value)] for value in known], dtype=np.int64)
    alone = low >= len(leaf)  # only the missing value
    safe_low, safe_high = (np.where(alone, 0, side) for side in (low, high))
    level, first, final = tree.cover(leaf[safe_low], leaf[safe_high])
    lower = np.where(alone, low, np.searchsorted(leaf, first, side="left"))
    upper = np.where(alone, high, np.searchsorted(leaf, final, side="right") - 1)
    spans = (final - first) / max(1, len(tree.paths) - 1)
    widths = np.where(alone, 0.0, np.where(mixed, 1.0, spans))
    texts = []
    for at, depth, here, gap in zip(
        leaf[safe_low].tolist(), level.tolist(), alone.tolist(), mixed.tolist(), strict=True
    ):
        label = value_text(None if here else tree.paths[at][depth])
        texts.append(f"{{{label}, missing}}" if gap else label)
    return _Side(lower, upper, mixed, None, widths, texts)


def _set_side(column: Column, codes: NDArray[np.int32], starts: Counts) -> _Side:
    size = len(column.values)
    run = np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(starts, append=len(codes)))
    key = run * size + codes
    if len(starts) * size <= 4 * len(codes) + 1024:
        key = np.flatnonzero(np.bincount(key, minlength=len(starts) * size))
    else:
        key = np.unique(key)
    members = Members(
        (key % size).astype(np.int32), np.searchsorted(key // size, np.arange(len(starts)))
    )
    sets = np.split(members.codes, members.starts[1:])
    seen: dict[bytes, str] = {}
    texts = []
    for codes_of in sets:
        text = seen.get(codes_of.tobytes())
        if text is None:
            text = seen[codes_of.tobytes()] = set_text([column.values[c] for c in codes_of])
        texts.append(text)
    low = members.codes[members.starts].astype(np.int64)
    high = np.array([codes_of[-1] for codes_of in sets], dtype=np.int64)
    widths = (members.sizes - 1) / max(1, size - 1)
    return _Side(low, high, np.zeros(len(starts), dtype=bool), members, widths, texts)


def _distinct_texts(side: _Side) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Number the texts in an order that content alone decides."""
    rank: dict[str, int] = {}
    for text, low, high in sorted(
        {(t, int(a), int(b)) for t, a, b in zip(side.texts, side.lower, side.upper, strict=True)},
        key=lambda entry: (entry[1], entry[2], entry[0]),
    ):
        rank.setdefault(text, len(rank))
        del low, high
    return tuple(rank), np.array([rank[text] for text in side.texts], dtype=np.int32)


def reordered(boxes: Boxes, order: Counts) -> Boxes:
    """Return the boxes in another order."""
    return Boxes(
        boxes.lower[order],
        boxes.upper[order],
        boxes.missing[order],
        tuple(None if sets is None else sets.take(order) for sets in boxes.members),
        boxes.widths[order],
        boxes.texts,
        boxes.text_of[order],
    )
