"""Sources: noticing that a belief was fitted on the data that are being released.

A fitted belief used on its own data makes the noise scale itself a leak. What is remembered says
where the data were, never what they held: a digest of a short series would give the series away to
whoever tries them all, and equal pieces of two people are not the same data. So

- sequences are recognised by their place in memory, for as long as the process has them;
- a file is recognised by its path, if all that was read from it was fitted on. Only this is written
  to the belief's file, as a digest salted by the belief's own matrix.

Whether something is noticed therefore never depends on a value in the data.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.origins import origin_of, owner, resolved
from quiltwork.errors import InvalidInputError


@dataclass(frozen=True)
class Sources:
    """Where the sequences of a fit were.

    Attributes:
        files: a salted digest of each file's path, as written to JSON.
        traces: the sequences in memory; they are not copied, pickled or written.
    """

    files: frozenset[str] = frozenset()
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, sequences: Sequence[Any], matrix: FloatArray) -> Sources:
        """Remember where the sequences are that a matrix was fitted on."""
        salt = hashlib.sha256(matrix.tobytes()).hexdigest()[:16]
        found = [origin for origin in map(origin_of, sequences) if origin is not None]
        seen = Counter(map(id, found))
        whole = {one.path for one in found if one.path and seen[id(one)] >= one.parts}
        return cls(
            frozenset(_mark(path, salt) for path in whole),
            tuple(_trace(sequence) for sequence in sequences),
        )

    def include(self, sequence: Any) -> bool:
        """Return whether a sequence, or the file at a path, is one of the sources."""
        if isinstance(sequence, (str, os.PathLike)):
            return self._has_file(resolved(sequence))
        origin = origin_of(sequence)
        if origin is not None and self._has_file(origin.path):
            return True
        return bool(self.traces) and any(_overlap(_trace(sequence), one) for one in self.traces)

    def _has_file(self, path: str | None) -> bool:
        return path is not None and any(
            mark == _mark(path, mark.partition(":")[0]) for mark in self.files
        )

    def __getstate__(self) -> frozenset[str]:
        """Pickle and copy the files only."""
        return self.files

    def __setstate__(self, files: frozenset[str]) -> None:
        """Restore the files."""
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "traces", ())


@dataclass(frozen=True, eq=False)
class Trace:
    """One sequence in memory: what keeps it there, and the addresses of its items if an array.

    `keeper` returns None once the memory may hold something else.
    """

    keeper: Callable[[], Any]
    first: int = 0
    end: int = 0
    stride: int = 0
    width: int = 0


NOWHERE = Sources()
"""Of beliefs that were not fitted."""


def origin_to_json(grid: Grid | None, sources: Sources) -> dict[str, Any]:
    """Return the fields of a belief's document that tell its grid and sources."""
    return {
        "grid": None if grid is None else grid.to_document(),
        "sources": sorted(sources.files),
    }


def origin_from_json(document: dict[str, Any]) -> dict[str, Any]:
    """Read what `origin_to_json` wrote, as arguments; what is absent is unknown.

    Digests of the data themselves, which older documents have as `fingerprints`, are dropped.

    Raises:
        InvalidInputError: if a field is damaged.
    """
    found = document.get("sources", [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise InvalidInputError(f"sources must be a list of text, not {found!r}.")
    grid = Grid.from_document(document.get("grid"))
    return {"grid": grid, "sources": Sources(frozenset(found))}


def _mark(path: str, salt: str) -> str:
    text = f"quiltwork/source/{salt}/{path}".encode("utf-8", "surrogatepass")
    return f"{salt}:{hashlib.sha256(text).hexdigest()[:32]}"


def _trace(sequence: Any) -> Trace:
    array = _array(sequence)
    if array is None or array.ndim != 1 or array.size == 0:
        return Trace(_kept(sequence))
    start, stride = array.__array_interface__["data"][0], array.strides[0]
    far = start + stride * (array.size - 1)
    return Trace(
        weakref.ref(owner(array)),
        min(start, far),
        max(start, far) + array.itemsize,
        abs(stride),
        array.itemsize,
    )


def _array(sequence: Any) -> NDArray[Any] | None:
    """Return the array that a sequence is, or that a pandas series shows; None for others."""
    if isinstance(sequence, np.ndarray):
        return sequence
    if isinstance(getattr(sequence, "dtype", None), np.dtype) and hasattr(sequence, "to_numpy"):
        return np.asarray(sequence.to_numpy())
    return None


def _kept(thing: Any) -> Callable[[], Any]:
    """Return a weak reference where there are such; a list must be held itself."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def _overlap(one: Trace, other: Trace) -> bool:
    """Return whether two sequences are the same object or have an item in common in memory."""
    mine, theirs = one.keeper(), other.keeper()
    if mine is None or theirs is None:
        return False
    if not one.width or not other.width:
        return mine is theirs
    if one.first >= other.end or other.first >= one.end:
        return False
    if one.stride != other.stride:
        return True
    apart = (one.first - other.first) % one.stride if one.stride else 0
    return apart < other.width or one.stride - apart < one.width
