"""Sequences by their place in memory: whether one is, or overlaps, one that was seen before.

Compared are addresses and identities, never what is stored there; what is gone is forgotten, so
memory that is used again is nobody's. Cost: O(n log n) to remember n sequences, O(log n) to look
one up, and O(n) at worst where they lie interleaved.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.origins import codes_of, owner


@dataclass(frozen=True)
class Stretch:
    """Where the items of an array are: bytes from `first` to `end`, `width` of every `stride`."""

    first: int
    end: int
    stride: int
    width: int

    def overlaps(self, other: Stretch) -> bool:
        """Return whether they have a byte in common; on the safe side if their strides differ."""
        if self.first >= other.end or other.first >= self.end:
            return False
        if self.stride != other.stride or self.stride == 0:
            return True
        apart = (self.first - other.first) % self.stride
        return apart < other.width or self.stride - apart < self.width


@dataclass(frozen=True, eq=False)
class Memory:
    """Sequences that were seen; each `keeper` returns None once its memory may be another's."""

    arrays: tuple[tuple[Stretch, Callable[[], Any]], ...] = ()
    things: Mapping[int, Callable[[], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, sequences: Iterable[Any]) -> Memory:
        """Remember arrays and pandas series of numbers by their addresses, others as objects."""
        arrays: list[tuple[Stretch, Callable[[], Any]]] = []
        things: dict[int, Callable[[], Any]] = {}
        for sequence in sequences:
            array = _array(sequence)
            if array is None:
                things[id(sequence)] = _keeper(sequence)
            else:
                arrays.append((_stretch(array), weakref.ref(owner(array))))
        return cls(tuple(sorted(arrays, key=lambda one: one[0].first)), things)

    def holds(self, sequence: Any) -> bool:
        """Return whether a sequence is one of these, or shares an item with one in memory."""
        array = _array(sequence)
        if array is None:
            seen = self.things.get(id(sequence))
            return seen is not None and seen() is sequence
        sought = _stretch(array)
        at = bisect_left(self.arrays, sought.end, key=lambda one: one[0].first)
        while at > 0 and self._reach[at - 1] > sought.first:
            at -= 1
            stretch, keeper = self.arrays[at]
            if sought.overlaps(stretch) and keeper() is not None:
                return True
        return False

    @cached_property
    def _reach(self) -> list[int]:
        """How far the arrays up to each one reach."""
        return list(accumulate((stretch.end for stretch, _ in self.arrays), max))


def _array(sequence: Any) -> NDArray[Any] | None:
    """Return the array that a sequence is, or that a pandas series shows; None for others.

    For what was read as codes, and for labels made of codes, it is these.
    """
    if (codes := codes_of(sequence)) is not None:
        return codes if codes.size else None
    if isinstance(getattr(sequence, "dtype", None), np.dtype) and hasattr(sequence, "to_numpy"):
        sequence = sequence.to_numpy()
    is_one = isinstance(sequence, np.ndarray) and sequence.ndim == 1 and sequence.size > 0
    return sequence if is_one else None


def _stretch(array: NDArray[Any]) -> Stretch:
    start, stride = array.__array_interface__["data"][0], array.strides[0]
    ends = sorted((start, start + stride * (array.size - 1)))
    return Stretch(ends[0], ends[1] + array.itemsize, abs(stride), array.itemsize)


def _keeper(thing: Any) -> Callable[[], Any]:
    """Return a weak reference where there are such; a list must be held itself."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
