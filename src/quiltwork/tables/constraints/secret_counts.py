"""`SecretCounts`: how many records of each sensitive value a set of records holds.

Every constraint of this room depends on a group through this alone: neither providers nor
quasi-identifiers matter once a coalition's records are taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SecretCounts:
    """A set of records as its sensitive values.

    Attributes:
        size: how many records; how many people, if the table names its subjects.
        values: the codes of the sensitive values that occur, ascending.
        counts: how many records (people) have each of them; a person with two values is in both.
    """

    size: int
    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Iterable[int]) -> SecretCounts:
        """Count the codes of some records.

        >>> SecretCounts.of([2, 0, 2]).as_dict()
        {0: 1, 2: 2}
        """
        listed = np.asarray(list(codes), dtype=np.int64)
        values, counts = np.unique(listed, return_counts=True)
        return cls(len(listed), values, counts.astype(np.int64))

    @classmethod
    def from_counts(cls, counts: Mapping[int, int], size: int | None = None) -> SecretCounts:
        """Take code → records; the size is their sum unless people have several values."""
        kept = sorted((code, number) for code, number in counts.items() if number > 0)
        values = np.array([code for code, _ in kept], dtype=np.int64)
        numbers = np.array([number for _, number in kept], dtype=np.int64)
        return cls(int(numbers.sum()) if size is None else size, values, numbers)

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def as_dict(self) -> dict[int, int]:
        """Return code → records."""
        return dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))
