"""`SecretCounts`: a set of records as its sensitive values, which is all that constraints see."""

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
    def from_counts(cls, counts: Mapping[int, int]) -> SecretCounts:
        """Take code → records."""
        numbers = np.zeros(max(counts, default=-1) + 1, dtype=np.int64)
        numbers[list(counts)] = list(counts.values())
        return cls.from_histogram(numbers)

    @classmethod
    def from_histogram(cls, numbers: NDArray[np.int64], size: int | None = None) -> SecretCounts:
        """Take the records of each code; their sum is the size, unless people have several."""
        there = np.flatnonzero(numbers)
        return cls(int(numbers.sum()) if size is None else size, there, numbers[there])

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def as_dict(self) -> dict[int, int]:
        """Return code → records."""
        return dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))
