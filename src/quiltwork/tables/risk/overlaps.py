"""Which published values of two tables can belong to the same person: the overlap of their labels.

Ranges overlap if they share a point, sets if they share a member, labels of a declared hierarchy if
they share a leaf. A star matches any character: `98***` overlaps `987**`, and stars alone overlap
everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.tables.codes.hierarchies import Hierarchy, leaf_text
from quiltwork.tables.generalization.published_texts import MISSING, Label, label_of
from quiltwork.tables.input.canonical_values import canonical_value, ordered_key

EVERYTHING = "*"
_DAY = 86_400


@dataclass(frozen=True)
class ColumnLabels:
    """How the texts of one column are interpreted.

    Attributes:
        name: of the column.
        order: its values in order, if declared.
        leaves: label of a hierarchy → the leaves under it.
    """

    name: str
    order: Mapping[str, int]
    leaves: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, name: str, order: Sequence[Any] | None, tree: Any) -> ColumnLabels:
        """Build it from the declarations of a column."""
        ranks = {leaf_text(value): rank for rank, value in enumerate(order or ())}
        leaves: dict[str, set[str]] = {}
        if tree is not None:
            for path in Hierarchy.read(tree, name).paths:
                for label in path:
                    leaves.setdefault(label, set()).add(path[0])
        return cls(name, ranks, {label: frozenset(under) for label, under in leaves.items()})

    def number(self, text: str) -> Decimal | None:
        """Return the position of a value on its line; None if it has none.

        Moments are rounded to their day, as the other table may have dates only.
        """
        if text in self.order:
            return Decimal(self.order[text])
        key = ordered_key(text)
        if key is None:
            return None
        return key[1] // _DAY if key[0] == "date" else key[1]


def overlaps(
    reading: ColumnLabels, first: Sequence[Any], second: Sequence[Any]
) -> NDArray[np.bool_]:
    """Return, for each value of one column and each of the other, whether a person can have both.

    >>> ages = ColumnLabels.of("age", None, None)
    >>> overlaps(ages, ["20..29", "*"], ["25..34", "30"]).tolist()
    [[True, False], [True, True]]
    """
    left, right = ([label_of(value) for value in values] for values in (first, second))
    # A column with ranges is ordered: compare positions instead of members.
    if any(_is_range(label) for label in (*left, *right)):
        return _on_a_line(reading, left, right)
    sets = [[_members(reading, label) for label in side] for side in (left, right)]
    numbers: dict[Any, int] = {}
    number_of = {
        member: numbers.setdefault(canonical_value(member), len(numbers))
        for member in frozenset().union(*map(_all, sets))
    }
    tables = [_membership(side, number_of) for side in sets]
    overlapping = np.asarray(tables[0] @ tables[1].T > 0)
    for row, members in enumerate(sets[0]):
        overlapping[row] |= _by_stars(members, sets[1], reading)
    for row, members in enumerate(sets[1]):
        overlapping[:, row] |= _by_stars(members, sets[0], reading)
    return overlapping


def _all(sets: list[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _is_range(label: Label) -> bool:
    return label.form == "range" and label.values[0] != label.values[1]


def _members(reading: ColumnLabels, label: Label) -> frozenset[str]:
    """Return the values that a label covers."""
    members: set[str] = {MISSING} if label.missing else set()
    for text in label.values:
        members |= reading.leaves.get(text, {text})
    return frozenset(members)


def _by_stars(
    members: frozenset[str], others: list[frozenset[str]], reading: ColumnLabels
) -> NDArray[np.bool_]:
    """Return which other sets have a member that matches one of these masks."""
    masks = [text for text in members if "*" in text and text not in reading.leaves]
    if not masks:
        return np.zeros(len(others), dtype=bool)
    return np.array([any(_fits(m, text) for m in masks for text in other) for other in others])


def _fits(mask: str, text: str) -> bool:
    """Return whether a mask with stars matches a text of the same length."""
    if _is_everything(mask):
        return True
    return len(mask) == len(text) and all(
        a == b or EVERYTHING in (a, b) for a, b in zip(mask, text, strict=True)
    )


def _is_everything(text: str) -> bool:
    return bool(text) and not text.strip(EVERYTHING)


def _membership(sets: list[frozenset[str]], number_of: Mapping[str, int]) -> NDArray[np.float32]:
    """Return set × member number; members with equal canonical values have one number."""
    table = np.zeros(
        (len(sets), len(number_of)), dtype=np.float32
    )  # several members may share a number
    for row, members in zip(table, sets, strict=True):
        row[[number_of[member] for member in members]] = 1
    return table


def _on_a_line(reading: ColumnLabels, left: list[Label], right: list[Label]) -> NDArray[np.bool_]:
    """Return which ranges of two columns overlap."""
    low, high, gap = zip(*(_ends(reading, side) for side in (left, right)), strict=True)
    meet = (low[0][:, None] <= high[1]) & (low[1] <= high[0][:, None])
    return np.asarray(meet | (gap[0][:, None] & gap[1]))


def _ends(
    reading: ColumnLabels, labels: list[Label]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the ends of each label, and whether it includes a missing value."""
    ends = []
    for label in labels:
        if any(map(_is_everything, label.values)):
            ends.append((-np.inf, np.inf))
            continue
        numbers = [reading.number(text) for text in label.values]
        if any(number is None for number in numbers):
            raise InvalidInputError(
                f"Column {reading.name!r} has ranges, and values that are not ordered with them. "
                "Declare the order of its values."
            )
        positions = [float(number) for number in numbers if number is not None]
        ends.append((min(positions), max(positions)) if positions else (np.inf, -np.inf))
    table = np.array(ends, dtype=np.float64).reshape(-1, 2)
    missing = np.array([label.missing for label in labels], dtype=bool)
    everything = np.isinf(table[:, 0]) & (table[:, 0] < 0)
    return table[:, 0], table[:, 1], missing | everything
