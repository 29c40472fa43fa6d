"""The nodes of interval families in stretches, each with the quilts tried there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.accounting.quilts import QuiltTable
from quiltwork.accounting.view import IntArray
from quiltwork.influence.families import IntervalFamily

_SMALLEST = 1024
_MOST_CELLS = 1 << 14


@dataclass(eq=False)
class Cells:
    """All nodes first..last in cells; cell c holds nodes first[c]..last[c] of table[c].

    `refine` replaces the cells of a table by those of sharper ones and notes it in `splices`:
    from cell `first` on, `old` cells became `new` ones.
    """

    tables: list[QuiltTable]
    table: IntArray = field(init=False)
    first: IntArray = field(init=False)
    last: IntArray = field(init=False)
    reach: IntArray = field(init=False)
    splices: list[Splice] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = [
            (number, nodes[0], nodes[-1], table.reach)
            for number, table in enumerate(self.tables)
            for nodes in _stretches(table.nodes)
        ]
        self.table, self.first, self.last, self.reach = (
            np.array(rows, dtype=np.int64).reshape(-1, 4).T
        )

    @classmethod
    def of(cls, families: Iterable[IntervalFamily]) -> Cells:
        """Cells for all nodes of the families."""
        return cls([QuiltTable.of(family) for family in families])

    def within(self, first: int, last: int) -> Cells:
        """Cells for the nodes in first..last only, sharing what was learnt about quilts."""
        return Cells([table.within(first, last) for table in self.tables])

    def __len__(self) -> int:
        """The number of cells."""
        return len(self.first)

    def table_of(self, cell: int) -> QuiltTable:
        """The table of a cell."""
        return self.tables[int(self.table[cell])]

    def nodes(self, cell: int) -> range:
        """The nodes of a cell."""
        step = self.table_of(cell).nodes.step
        return range(int(self.first[cell]), int(self.last[cell]) + 1, step)

    def touched(self, start: int, stop: int) -> IntArray:
        """The cells with a node whose quilts reach into start..stop."""
        reaching = (self.last + self.reach >= start) & (self.first - self.reach <= stop)
        return np.flatnonzero(reaching)

    def refine(self, cell: int) -> bool:
        """Replace the cell's family by sharper ones, if it has any."""
        number = int(self.table[cell])
        sharper = self.tables[number].refined()
        if sharper is None:
            return False
        first, before = int(np.searchsorted(self.table, number)), len(self)
        old = int((self.table == number).sum())
        self.tables[number : number + 1] = sharper
        self.__post_init__()
        self.splices.append(Splice(first, old, len(self) - before + old))
        return True


@dataclass(frozen=True)
class Splice:
    """From cell `first` on, `old` cells were replaced by `new` ones."""

    first: int
    old: int
    new: int

    def apply(self, kept: NDArray[Any], fresh: float) -> NDArray[Any]:
        """What was kept per cell, with `fresh` for the new ones."""
        added = np.full(self.new, fresh, dtype=kept.dtype)
        return np.concatenate((kept[: self.first], added, kept[self.first + self.old :]))


def _stretches(nodes: range) -> Iterator[range]:
    size = max(_SMALLEST, -(-len(nodes) // _MOST_CELLS))
    return (nodes[i : i + size] for i in range(0, len(nodes), size))
