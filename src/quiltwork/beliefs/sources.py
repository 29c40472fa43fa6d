"""Sources: recognizing that a belief was fitted on the data that are being released.

A belief fitted on the released data makes the noise scale itself a leak. Sources record where the
data were, never their values: a digest of a short series could be inverted by enumeration, and
equal values of two people are not the same data. So

- sequences are recognized by their address in memory, for as long as they live in the process;
- a file is recognized by its path, if everything read from it was used in the fit. Only this is
  written to the belief's file, as a digest salted by the belief's own matrix.

Recognition therefore never depends on a value in the data. Freed memory is forgotten, so reused
memory is not mistaken for it. Cost: O(n log n) to record n sequences, O(log n) to look one up, and
O(n) at worst where they are interleaved in memory.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.origins import codes_behind, memory_owner, origin_of, real_path
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened


@dataclass(frozen=True)
class Stretch:
    """The memory of an array: bytes from `first` to `end`, `width` of every `stride`."""

    first: int
    end: int
    stride: int
    width: int

    def overlaps(self, other: Stretch) -> bool:
        """Return whether two stretches share a byte; True in doubt, if their strides differ."""
        if self.first >= other.end or other.first >= self.end:
            return False
        if self.stride != other.stride or self.stride == 0:
            return True
        apart = (self.first - other.first) % self.stride
        return apart < other.width or self.stride - apart < self.width


@dataclass(frozen=True, eq=False)
class Memory:
    """Recorded sequences; each `keeper` returns None once its memory may have been reused."""

    arrays: tuple[tuple[Stretch, Callable[[], Any]], ...] = ()
    things: Mapping[int, Callable[[], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, sequences: Iterable[Any]) -> Memory:
        """Return a record of sequences: arrays and numeric series by address, others by object."""
        arrays: list[tuple[Stretch, Callable[[], Any]]] = []
        things: dict[int, Callable[[], Any]] = {}
        for sequence in sequences:
            array = _array(sequence)
            if array is None:
                things[id(sequence)] = _keeper(sequence)
            else:
                arrays.append((_stretch(array), weakref.ref(memory_owner(array))))
        return cls(tuple(sorted(arrays, key=lambda one: one[0].first)), things)

    def holds(self, sequence: Any) -> bool:
        """Return whether a sequence is one of these, or shares memory with one."""
        array = _array(sequence)
        if array is None:
            keeper = self.things.get(id(sequence))
            return keeper is not None and keeper() is sequence
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
        """The largest end of the arrays up to each one."""
        return list(accumulate((stretch.end for stretch, _ in self.arrays), max))


def _array(sequence: Any) -> NDArray[Any] | None:
    """Return the array behind a sequence or a pandas series; None for others.

    For sequences stored as codes, and labels made from them, it is the codes.
    """
    if (codes := codes_behind(sequence)) is not None:
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
    """Return a weak reference, or for objects without one, such as lists, a strong one."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


@dataclass(frozen=True)
class Sources:
    """The sources of a fit.

    Attributes:
        files: a salted digest of each file's path, as written to JSON.
        memory: the sequences by address in memory; not copied, pickled or written.
    """

    files: frozenset[str] = frozenset()
    memory: Memory = field(default=Memory(), compare=False, repr=False)

    @classmethod
    def of(cls, sequences: Sequence[Any], matrix: FloatArray) -> Sources:
        """Return the sources of sequences on which a matrix was fitted."""
        salt = hashlib.sha256(matrix.tobytes()).hexdigest()[:16]
        origins = [origin for origin in map(origin_of, sequences) if origin is not None]
        used = Counter(map(id, origins))
        whole = {
            origin.path for origin in origins if origin.path and used[id(origin)] >= origin.parts
        }
        return cls(
            frozenset(_mark(path, salt) for path in whole),
            Memory.of(sequences),
        )

    def include(self, sequence: Any) -> bool:
        """Return whether a sequence, or the file at a path, is one of the sources."""
        if isinstance(sequence, (str, os.PathLike)):
            return self._has_file(real_path(sequence))
        origin = origin_of(sequence)
        if origin is not None and self._has_file(origin.path):
            return True
        return self.memory.holds(sequence)

    def _has_file(self, path: str | None) -> bool:
        return path is not None and any(
            mark == _mark(path, mark.partition(":")[0]) for mark in self.files
        )

    @classmethod
    def from_document(cls, document: Any) -> Sources:
        """Return the sources from a belief's JSON, a list of salted digests."""
        if not isinstance(document, list) or not all(isinstance(item, str) for item in document):
            raise InvalidInputError(f"sources must be a list of text, not {shortened(document)}.")
        return cls(frozenset(document))

    def __getstate__(self) -> frozenset[str]:
        """Return the files only, for pickling and copying."""
        return self.files

    def __setstate__(self, files: frozenset[str]) -> None:
        """Restore the files, with no memory."""
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "memory", Memory())


NO_SOURCES = Sources()
"""The sources of beliefs that were not fitted."""


def _mark(path: str, salt: str) -> str:
    text = f"quiltwork/source/{salt}/{path}".encode("utf-8", "surrogatepass")
    return f"{salt}:{hashlib.sha256(text).hexdigest()[:32]}"
