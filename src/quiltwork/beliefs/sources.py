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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.memory import Memory
from quiltwork.beliefs.origins import origin_of, resolved
from quiltwork.errors import InvalidInputError


@dataclass(frozen=True)
class Sources:
    """Where the sequences of a fit were.

    Attributes:
        files: a salted digest of each file's path, as written to JSON.
        memory: the sequences themselves, by their place; it is not copied, pickled or written.
    """

    files: frozenset[str] = frozenset()
    memory: Memory = field(default=Memory(), compare=False, repr=False)

    @classmethod
    def of(cls, sequences: Sequence[Any], matrix: FloatArray) -> Sources:
        """Remember where the sequences are that a matrix was fitted on."""
        salt = hashlib.sha256(matrix.tobytes()).hexdigest()[:16]
        found = [origin for origin in map(origin_of, sequences) if origin is not None]
        seen = Counter(map(id, found))
        whole = {one.path for one in found if one.path and seen[id(one)] >= one.parts}
        return cls(
            frozenset(_mark(path, salt) for path in whole),
            Memory.of(sequences),
        )

    def include(self, sequence: Any) -> bool:
        """Return whether a sequence, or the file at a path, is one of the sources."""
        if isinstance(sequence, (str, os.PathLike)):
            return self._has_file(resolved(sequence))
        origin = origin_of(sequence)
        if origin is not None and self._has_file(origin.path):
            return True
        return self.memory.holds(sequence)

    def _has_file(self, path: str | None) -> bool:
        return path is not None and any(
            mark == _mark(path, mark.partition(":")[0]) for mark in self.files
        )

    @classmethod
    def from_document(cls, found: Any) -> Sources:
        """Read the field `sources` of a belief's JSON, a list of marks."""
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise InvalidInputError(f"sources must be a list of text, not {found!r}.")
        return cls(frozenset(found))

    def __getstate__(self) -> frozenset[str]:
        """Pickle and copy the files only."""
        return self.files

    def __setstate__(self, files: frozenset[str]) -> None:
        """Restore the files."""
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "memory", Memory())


NOWHERE = Sources()
"""Of beliefs that were not fitted."""


def _mark(path: str, salt: str) -> str:
    text = f"quiltwork/source/{salt}/{path}".encode("utf-8", "surrogatepass")
    return f"{salt}:{hashlib.sha256(text).hexdigest()[:32]}"
