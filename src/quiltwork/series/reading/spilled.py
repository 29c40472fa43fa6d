"""Arrays that are kept for a later pass: the first in memory, more in a temporary file.

The file has no name, only its owner can read it, and it goes with the process. What is held in
memory does not grow with the rows of a source.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import StorageError


class Spilled:
    """A list of arrays, of which `in_memory` bytes are held in memory."""

    def __init__(self, in_memory: int = 1 << 23) -> None:
        """Begin with none."""
        self._in_memory = in_memory
        self._parts: list[NDArray[Any] | tuple[int, int, Any]] = []
        self._held = 0
        self._file: Any = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._parts)

    def add(self, part: NDArray[Any]) -> None:
        """Keep one more."""
        if self._held + part.nbytes <= self._in_memory:
            self._held += part.nbytes
            self._parts.append(part)
            return
        try:
            if self._file is None:
                self._file = TemporaryFile(buffering=0)  # noqa: SIM115  (closed with this list)
                weakref.finalize(self, self._file.close)
            place, left = self._file.seek(0, os.SEEK_END), memoryview(part.tobytes())
            while left:  # a full disk takes a part, and then fails
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StorageError(
                f"Rows that memory should not hold go to a temporary file in {gettempdir()!r}, "
                f"which failed: {error.strerror}; name a folder with room in TMPDIR."
            ) from None
        self._parts.append((place, len(part), part.dtype))

    def cut(self, number: int) -> None:
        """Forget all but the first so many."""
        del self._parts[number:]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield them in order."""
        return map(self.__getitem__, range(len(self._parts)))

    def __getitem__(self, place: int) -> NDArray[Any]:
        """Return one of them."""
        part = self._parts[place]
        if isinstance(part, np.ndarray):
            return part
        begin, length, kind = part
        found = np.empty(length, kind)
        self._file.seek(begin)
        self._file.readinto(found.data)
        return found
