"""Columns in few bytes: times and subjects that go on as they began, numbers that repeat.

Moments of regular series, and the subjects that they belong to, are runs of equal differences, of
which only the ends are kept; other moments take four bytes. Numbers that repeat are kept once.
Everything is read back exactly. O(rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_MOST_DISTINCT = 32_767


@dataclass(frozen=True, eq=False)
class Progressions:
    """Integers whose differences are equal for a while."""

    first: int
    differences: NDArray[np.int64]
    lengths: NDArray[np.int32]
    kind: Any

    def unpacked(self) -> NDArray[Any]:
        """The integers."""
        steps = np.repeat(self.differences, self.lengths)
        return (self.first + np.concatenate([[0], np.cumsum(steps)])).astype(self.kind)


@dataclass(frozen=True, eq=False)
class Offsets:
    """Integers as their distances from the smallest."""

    smallest: int
    distances: NDArray[np.uint32]

    def unpacked(self) -> NDArray[Any]:
        """The integers."""
        return self.smallest + self.distances.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Repeated:
    """Numbers by their place among those that differ."""

    distinct: NDArray[np.float64]
    places: NDArray[np.int16]

    def unpacked(self) -> NDArray[Any]:
        """The numbers."""
        return self.distinct[self.places]


Packed: TypeAlias = "Progressions | Offsets | Repeated | NDArray[Any]"


def packed(part: NDArray[Any]) -> Packed:
    """Return integers or floats in fewer bytes, if that is possible.

    >>> moments = np.arange(0, 900_000, 900)
    >>> kept = packed(moments)
    >>> len(kept.lengths), bool((unpacked(kept) == moments).all())
    (1, True)
    """
    if len(part) < 2:
        return part
    return _numbers(part) if part.dtype.kind == "f" else _integers(part)


def unpacked(part: Packed) -> NDArray[Any]:
    """Return what was packed."""
    return part if isinstance(part, np.ndarray) else part.unpacked()


def _integers(part: NDArray[Any]) -> Packed:
    differences = np.diff(part.astype(np.int64, copy=False))
    turns = np.flatnonzero(differences[1:] != differences[:-1]) + 1
    if 24 * (len(turns) + 1) <= part.nbytes:
        ends = np.concatenate([[0], turns, [len(differences)]])
        lengths = np.diff(ends).astype(np.int32)
        return Progressions(int(part[0]), differences[ends[:-1]], lengths, part.dtype)
    low, high = int(part.min()), int(part.max())
    if part.dtype == np.int64 and high - low < 2**32:
        return Offsets(low, (part - low).astype(np.uint32))
    return part


def _numbers(part: NDArray[Any]) -> Packed:
    try:
        import pyarrow as pa
    except ImportError:
        return part
    found = pa.array(part).dictionary_encode()
    if len(found.dictionary) > min(_MOST_DISTINCT, len(part) // 4):
        return part
    places = found.indices.to_numpy().astype(np.int16)
    return Repeated(found.dictionary.to_numpy(zero_copy_only=False), places)
