"""`Hierarchy`: generalization hierarchies of a column, in ARX's CSV format.

Each line is a path from a value to the root: `12367;1236*;123**;12***;*`. Leaves are ordered so
that every label covers neighbours; a generalized value is then an interval of leaves. `intervals`,
`prefixes` and `dates` build a hierarchy by rule from the values to be covered, in any order and
with repetitions; missing values are left out, since tables keep them apart, and blanks around a
value too, as they are in a file of a hierarchy.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice, listed
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, positive_fraction, shortened, to_fraction
from quiltwork.files import read_text, write
from quiltwork.tables.input.canonical_values import number, ordered_key

_DIGITS = 20  # larger whole numbers keep the spelling that they have
DateLevel: TypeAlias = Literal["month", "quarter", "year", "decade"]
DATE_LEVELS: tuple[DateLevel, ...] = get_args(DateLevel)
ROOT = "*"
"""The label of everything, for hierarchies whose lines do not end in a common one."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of labels over the values of one column.

    Attributes:
        paths: for each leaf, its labels from the leaf to the root; all paths have equal length.

    >>> zips = Hierarchy.prefixes(["12367", "12399", "98745"], keep=[3])
    >>> zips.paths[0], zips.depth
    (('12367', '123**', '*'), 3)
    """

    paths: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, source: Any, name: str = "column") -> Hierarchy:
        """Read a hierarchy from its rows or the path of a CSV file.

        The separator is `;` (ARX's choice), comma or tab.

        >>> zips = Hierarchy.read([("12367", "123**", "*"), ("98745", "987**", "*")])
        >>> zips.leaves
        ('12367', '98745')
        """
        if isinstance(source, Hierarchy):
            return source
        rows = _file_rows(Path(source)) if isinstance(source, (str, Path)) else _rows(source)
        return cls(_tree(rows, name))

    @classmethod
    def intervals(
        cls, values: Iterable[Any], widths: Iterable[Number], origin: Number = 0
    ) -> Hierarchy:
        """Cover numbers by intervals of increasing width, each a multiple of the one before.

        Labels are `20-24` if all numbers, widths and the origin are whole, else `20 to under 25`.

        >>> Hierarchy.intervals([23, 24], widths=[5, 10]).paths
        (('23', '20-24', '20-29', '*'), ('24', '20-24', '20-29', '*'))

        Raises:
            InvalidInputError: if a value is not a number, or the widths do not nest.
        """
        steps = [positive_fraction(width, "width") for width in listed(widths, "widths")]
        if not steps or any(wide <= narrow or wide % narrow for narrow, wide in pairwise(steps)):
            raise InvalidInputError(
                "Give one width or more, each a multiple of the one before, such as 5, 10, 20."
            )
        start = to_fraction(origin, "origin")
        numbers = sorted({(_number(value), leaf_text(value).strip()) for value in _present(values)})
        integers = all(
            number.denominator == 1 for number in [start, *steps, *(n for n, _ in numbers)]
        )

        def label(number: Fraction, width: Fraction) -> str:
            low = start + width * floor((number - start) / width)
            if not integers:
                return f"{_decimal(low)} to under {_decimal(low + width)}"
            if width == 1:
                return str(low)
            return f"{low}{'-' if low >= 0 else ' to '}{low + width - 1}"

        return cls.read([(text, *(label(n, w) for w in steps), ROOT) for n, text in numbers])

    @classmethod
    def prefixes(cls, values: Iterable[Any], keep: Iterable[int] | None = None) -> Hierarchy:
        """Cover codes by their first characters, with a star for each hidden one.

        If the codes have different lengths, such as I10 and I50.0, one star stands for everything
        hidden. `keep` are the numbers of characters shown per level, decreasing; None: one less at
        each.

        >>> Hierarchy.prefixes([12367, 12399, 98745], keep=[3, 1]).paths[0]
        ('12367', '123**', '1****', '*')
        >>> Hierarchy.prefixes(["I10", "I50.0"], keep=[3, 1]).paths
        (('I10', 'I10*', 'I*', '*'), ('I50.0', 'I50*', 'I*', '*'))

        Raises:
            InvalidInputError: if the numbers do not decrease.
        """
        texts = sorted({leaf_text(value).strip() for value in _present(values)})
        longest = max(map(len, texts))
        shown = range(longest - 1, 0, -1) if keep is None else listed(keep, "keep")
        levels = [integer(number, "keep", 1, 2**31 - 1) for number in shown]
        if any(after >= before for before, after in pairwise(levels)):
            raise InvalidInputError("keep must decrease, such as 3, 2, 1.")
        equal_lengths = all(len(text) == longest for text in texts)

        def label(text: str, number: int) -> str:
            if equal_lengths:
                return text[:number] + "*" * (longest - number)
            return text if len(text) < number else f"{text[:number]}*"

        return cls.read([(text, *(label(text, n) for n in levels), ROOT) for text in texts])

    @classmethod
    def dates(
        cls, values: Iterable[Any], levels: Iterable[DateLevel] = DATE_LEVELS[::2]
    ) -> Hierarchy:
        """Cover dates (`2024-03-09`, with or without a time) by months, quarters, years or decades.

        >>> Hierarchy.dates(["2024-03-09", "2024-11-30"], levels=["quarter", "year"]).paths[0]
        ('2024-03-09', '2024-Q1', '2024', '*')

        Raises:
            InvalidInputError: if a value is not a date, or the levels do not get coarser.
        """
        chosen: list[DateLevel] = listed(levels, "levels")
        order = [DATE_LEVELS.index(choice(level, DATE_LEVELS, "A level")) for level in chosen]
        if not order or any(after <= before for before, after in pairwise(order)):
            raise InvalidInputError(
                f"Give one or more levels, from fine to coarse, out of {', '.join(DATE_LEVELS)}."
            )
        rows = set()
        for value in _present(values):
            text, key = str(value).strip(), ordered_key(value)
            if key is None or key[0] != "date":
                raise InvalidInputError(f"{shortened(value)} is not a date; write 2024-03-09.")
            rows.add(
                (key[1], (leaf_text(text), *(_PERIODS[level](text) for level in chosen), ROOT))
            )
        return cls.read([row for _, row in sorted(rows)])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The texts of the values, in the order of the tree."""
        return tuple(path[0] for path in self.paths)

    @property
    def depth(self) -> int:
        """The number of levels, leaves and root included."""
        return len(self.paths[0])

    @cached_property
    def place_of(self) -> dict[str, int]:
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
        """All labels, including leaves and root."""
        return frozenset(label for path in self.paths for label in path)

    def leaf(self, value: Any) -> int:
        """Return the index of a value's leaf, spelled as given or as a hierarchy writes it."""
        text = str(value)
        return self.place_of[text if text in self.place_of else leaf_text(value).strip()]

    def write(self, path: str | Path) -> Path:
        """Write it in ARX's format, `value;label;…;root`, one line per leaf in the tree's order.

        Raises:
            StorageError: if the file cannot be written; an existing file is then unchanged.
        """
        text = io.StringIO()
        csv.writer(text, delimiter=";", lineterminator="\n").writerows(self.paths)
        write(path, text.getvalue())
        return Path(path)

    def cover(
        self, low: NDArray[np.integer[Any]], high: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the lowest label that covers leaves low..high: its level, first and last leaf.

        Cost: O(levels · boxes).
        """
        level = common_label(self.blocks, low, high)
        first, last = (end[level, low] for end in block_ends(self.blocks))
        return level, first, last


def common_label(
    blocks: NDArray[np.int64], low: NDArray[Any], high: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the level of the lowest label that covers low..high; `blocks` is level × code."""
    level: NDArray[np.int64] = (blocks[:, low] == blocks[:, high]).argmax(axis=0)
    return level


def block_ends(blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last code of each code's block, as two arrays level × code."""
    first = np.stack([np.searchsorted(row, row, side="left") for row in blocks])
    last = np.stack([np.searchsorted(row, row, side="right") - 1 for row in blocks])
    return first, last


_PERIODS: dict[DateLevel, Callable[[str], str]] = {
    "month": lambda text: text[:7],
    "quarter": lambda text: f"{text[:4]}-Q{(int(text[5:7]) + 2) // 3}",
    "year": lambda text: text[:4],
    "decade": lambda text: f"{text[:3]}0s",
}


def _present(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values, without missing ones and blanks."""
    distinct = dict.fromkeys(listed(values, "values"))
    present = [v for v in distinct if v is not None and v == v and str(v).strip()]
    if not present:
        raise InvalidInputError("A hierarchy needs at least one value that is not missing.")
    return present


def _number(value: Any) -> Fraction:
    key = ordered_key(value)
    if key is None or key[0] != "number":
        raise InvalidInputError(
            f"{shortened(value)} is not a number; intervals cover numbers only."
        )
    return Fraction(key[1])


def _decimal(number: Fraction) -> str:
    return leaf_text(float(number))


def leaf_text(value: Any) -> str:
    """Return a value as hierarchies spell it: 31, 31.0 and the text `31.0` are all `31`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    decimal = number(value) if isinstance(value, str) else None
    if decimal is not None and decimal.adjusted() < _DIGITS and decimal == int(decimal):
        return str(int(decimal))
    return str(value)


def _rows(source: Any) -> list[list[str]]:
    rows = [listed(row, "A row of a hierarchy") for row in listed(source, "A hierarchy")]
    return [[c if isinstance(c, str) else leaf_text(c) for c in row] for row in rows]


def _file_rows(path: Path) -> list[list[str]]:
    """Read a file with the first separator by which all lines have equally many cells."""
    text = read_text(path)
    likeliest = max((";", ",", "\t"), key=text.partition("\n")[0].count)
    # The last one is for files that no separator splits evenly; their error names the lines.
    for separator in (";", "\t", ",", likeliest):
        rows = list(filter(None, csv.reader(io.StringIO(text, ""), delimiter=separator)))
        widths = {len(row) for row in rows}
        if len(widths) == 1 and widths != {1}:
            break
    return [[cell.strip() for cell in row] for row in rows]


def _tree(rows: list[list[str]], name: str) -> tuple[tuple[str, ...], ...]:
    if not rows or not rows[0]:
        raise InvalidInputError(f"The hierarchy of {name!r} is empty; add a line for each value.")
    depth = len(rows[0])
    for row in rows:
        if len(row) != depth:
            raise InvalidInputError(
                f"The hierarchy of {name!r} has lines with {depth} and with {len(row)} levels; "
                "give every line the same number."
            )
    if not all(cell for row in rows for cell in row):
        raise InvalidInputError(
            f"The hierarchy of {name!r} has an empty label; write {ROOT} for the root."
        )
    leaves = [row[0] for row in rows]
    repeated = next((leaf for leaf, times in Counter(leaves).items() if times > 1), None)
    if repeated is not None:
        raise InvalidInputError(
            f"The hierarchy of {name!r} has two lines for {repeated!r}; remove one."
        )
    for level in range(1, depth):
        above: dict[str, str] = {}
        for row in rows:
            if above.setdefault(row[level - 1], row[level]) != row[level]:
                raise InvalidInputError(
                    f"The hierarchy of {name!r} is not a tree: {row[level - 1]!r} is under both "
                    f"{above[row[level - 1]]!r} and {row[level]!r}; put it under one of them."
                )
    # ARX accepts hierarchies without a common root; every column needs a label for everything.
    if len({row[-1] for row in rows}) > 1:
        rows = [[*row, ROOT] for row in rows]
    _refuse_ambiguous_labels(rows, name)
    return tuple(sorted(map(tuple, rows), key=_tree_order(rows)))


def _refuse_ambiguous_labels(rows: list[list[str]], name: str) -> None:
    """Refuse a label that covers different values at two levels: readers could not tell which."""
    values_of: dict[str, frozenset[str]] = {}
    for level in range(len(rows[0])):
        covered: dict[str, set[str]] = {}
        for row in rows:
            covered.setdefault(row[level], set()).add(row[0])
        for label, values in covered.items():
            if values_of.setdefault(label, frozenset(values)) != values:
                raise InvalidInputError(
                    f"The hierarchy of {name!r} uses {label!r} for different values at two levels; "
                    "rename one of them."
                )


def _tree_order(rows: list[list[str]]) -> Any:
    """Return a sort key: by first appearance at every level, from the root down."""
    first_seen: list[dict[str, int]] = [{} for _ in rows[0]]
    for row in rows:
        for level, label in enumerate(row):
            first_seen[level].setdefault(label, len(first_seen[level]))
    return lambda row: tuple(first_seen[level][row[level]] for level in range(len(row) - 1, -1, -1))
