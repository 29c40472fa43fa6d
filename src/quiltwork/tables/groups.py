"""`Group` and `Groups`: the published groups one by one, read off arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.encoding import Column
from quiltwork.tables.generalization.boxes import Boxes


@dataclass(frozen=True)
class PublishedGroup:
    """One group of records that look alike.

    Attributes:
        values: quasi-identifier → the published text.
        lower: quasi-identifier → the least value in the box.
        upper: quasi-identifier → the largest; for sets of categories the last in sorted order.
        members: quasi-identifier → the values of a set; only for those published as sets.
        size: how many records there are.
    """

    values: dict[str, str]
    lower: dict[str, Any]
    upper: dict[str, Any]
    members: dict[str, tuple[Any, ...]]
    size: int


@dataclass(frozen=True, eq=False)
class Groups(Sequence[PublishedGroup]):
    """All groups, in the order of the published table; each is made when it is asked for."""

    columns: tuple[Column, ...]
    boxes: Boxes
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the groups."""
        return self.boxes.count

    @overload
    def __getitem__(self, index: int) -> PublishedGroup: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PublishedGroup]: ...
    def __getitem__(self, index: int | slice) -> PublishedGroup | Sequence[PublishedGroup]:
        """Return one group, or some of them as a list."""
        if isinstance(index, slice):
            return [self._one(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} groups")
        return self._one(index % len(self))

    def __iter__(self) -> Iterator[PublishedGroup]:
        """Go through the groups in order."""
        return (self._one(i) for i in range(len(self)))

    def _one(self, i: int) -> PublishedGroup:
        boxes = self.boxes
        named = list(enumerate(self.columns))
        return PublishedGroup(
            values={c.name: boxes.texts[j][boxes.text_of[i, j]] for j, c in named},
            lower={c.name: c.values[boxes.lower[i, j]] for j, c in named},
            upper={c.name: c.values[boxes.upper[i, j]] for j, c in named},
            members={
                c.name: tuple(c.values[code] for code in sets.of(i))
                for (_, c), sets in zip(named, boxes.members, strict=True)
                if sets is not None
            },
            size=int(self.sizes[i]),
        )
