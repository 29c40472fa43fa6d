"""`Hierarchy`: the user's own generalizations of a column, in ARX's CSV format.

Each line is a path from a value to the root: `12367;1236*;123**;12***;*`. Leaves are put in an
order in which every label covers neighbours, so that a generalized value is an interval of it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import listed
from quiltwork.errors import InvalidInputError
from quiltwork.files import text_of
from quiltwork.tables.meanings import number

_DIGITS = 20
ROOT = "*"
"""The label of everything, for hierarchies whose lines do not end in a common one."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of labels over the values of one column.

    Attributes:
        paths: for each leaf, its labels from the leaf to the root; all of one length.
    """

    paths: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, source: Any, name: str = "column") -> Hierarchy:
        """Take a hierarchy as it is, the rows of one, or the path of a CSV file.

        Columns are separated by `;` (ARX's choice), comma or tab.

        >>> zips = Hierarchy.read([("12367", "123**", "*"), ("98745", "987**", "*")])
        >>> zips.leaves
        ('12367', '98745')
        """
        if isinstance(source, Hierarchy):
            return source
        rows = _file_rows(Path(source)) if isinstance(source, (str, Path)) else _rows(source)
        return cls(_tree(rows, name))

    @property
    def leaves(self) -> tuple[str, ...]:
        """The texts of the values, in the order of the tree."""
        return tuple(path[0] for path in self.paths)

    @property
    def depth(self) -> int:
        """The number of levels, leaves and root included."""
        return len(self.paths[0])

    @cached_property
    def place(self) -> dict[str, int]:
        """Leaf → its place in the order."""
        return {leaf: place for place, leaf in enumerate(self.leaves)}

    @cached_property
    def blocks(self) -> NDArray[np.int64]:
        """For each level and leaf, the number of its block: leaves under the same label."""
        numbers = np.empty((self.depth, len(self.paths)), dtype=np.int64)
        for level in range(self.depth):
            suffixes = [path[level:] for path in self.paths]
            changes = [a != b for a, b in zip(suffixes[1:], suffixes[:-1], strict=True)]
            numbers[level] = np.concatenate(([0], np.cumsum(changes)))
        return numbers

    @cached_property
    def labels(self) -> frozenset[str]:
        """All labels, leaves and root included."""
        return frozenset(label for path in self.paths for label in path)

    def leaf(self, value: Any) -> int:
        """Return the place of a value's leaf, spelled as it is or as a hierarchy writes it."""
        text = str(value)
        return self.place[text if text in self.place else leaf_text(value)]

    def cover(
        self, low: NDArray[np.integer[Any]], high: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the least label over leaves low..high: its level, first and last leaf.

        Cost: O(levels · boxes).
        """
        level = np.full(len(low), self.depth - 1, dtype=np.int64)
        for candidate in range(self.depth - 2, -1, -1):
            level[self.blocks[candidate][low] == self.blocks[candidate][high]] = candidate
        block = self.blocks[level, low]
        first, last = np.empty_like(level), np.empty_like(level)
        for candidate in range(self.depth):
            here = level == candidate
            first[here] = np.searchsorted(self.blocks[candidate], block[here], side="left")
            last[here] = np.searchsorted(self.blocks[candidate], block[here], side="right") - 1
        return level, first, last


def leaf_text(value: Any) -> str:
    """Return how a hierarchy writes a value: 31, 31.0 and the text `31.0` are all `31`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    found = number(value) if isinstance(value, str) else None
    if found is not None and found.adjusted() < _DIGITS and found == int(found):
        return str(int(found))
    return str(value)


def _rows(source: Any) -> list[list[str]]:
    rows = [listed(row, "A row of a hierarchy") for row in listed(source, "A hierarchy")]
    return [[c if isinstance(c, str) else leaf_text(c) for c in row] for row in rows]


def _file_rows(path: Path) -> list[list[str]]:
    text = text_of(path)
    first = text.partition("\n")[0]
    separator = max((";", ",", "\t"), key=first.count)
    rows = list(csv.reader(text.splitlines(), delimiter=separator))
    return [[cell.strip() for cell in row] for row in rows if row]


def _tree(rows: list[list[str]], name: str) -> tuple[tuple[str, ...], ...]:
    if not rows or not rows[0]:
        raise InvalidInputError(f"The hierarchy of {name!r} is empty; give a line per value.")
    depth = len(rows[0])
    for row in rows:
        if len(row) != depth:
            raise InvalidInputError(
                f"The hierarchy of {name!r} has lines of {depth} and of {len(row)} levels; give "
                "every value the same number."
            )
    if not all(cell for row in rows for cell in row):
        raise InvalidInputError(
            f"The hierarchy of {name!r} has an empty label; write {ROOT} for everything."
        )
    leaves = [row[0] for row in rows]
    twice = (
        next((leaf for leaf in leaves if leaves.count(leaf) > 1), None)
        if (len(set(leaves)) < len(leaves))
        else None
    )
    if twice is not None:
        raise InvalidInputError(f"The hierarchy of {name!r} has two lines for {twice!r}.")
    for level in range(1, depth):
        above: dict[str, str] = {}
        for row in rows:
            if above.setdefault(row[level - 1], row[level]) != row[level]:
                raise InvalidInputError(
                    f"The hierarchy of {name!r} is no tree: {row[level - 1]!r} is under both "
                    f"{above[row[level - 1]]!r} and {row[level]!r}."
                )
    if len({row[-1] for row in rows}) > 1:
        rows = [[*row, ROOT] for row in rows]
    _check_meanings(rows, name)
    return tuple(sorted(map(tuple, rows), key=_tree_order(rows)))


def _check_meanings(rows: list[list[str]], name: str) -> None:
    """Refuse a label that covers different values at two levels: readers could not tell which."""
    meaning: dict[str, frozenset[str]] = {}
    for level in range(len(rows[0])):
        covered: dict[str, set[str]] = {}
        for row in rows:
            covered.setdefault(row[level], set()).add(row[0])
        for label, values in covered.items():
            if meaning.setdefault(label, frozenset(values)) != values:
                raise InvalidInputError(
                    f"The hierarchy of {name!r} uses {label!r} for different values at two levels; "
                    "rename one of them."
                )


def _tree_order(rows: list[list[str]]) -> Any:
    """Order by first appearance at every level, from the root down."""
    seen: list[dict[str, int]] = [{} for _ in rows[0]]
    for row in rows:
        for level, label in enumerate(row):
            seen[level].setdefault(label, len(seen[level]))
    return lambda row: tuple(seen[level][row[level]] for level in range(len(row) - 1, -1, -1))
