"""`SecretCounts`: the histogram of sensitive values of some records; constraints see no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SecretCounts:
    """The histogram of the sensitive values of a set of records.

    Attributes:
        size: the number of records, or of people if the table names its subjects.
        values: the codes of the sensitive values that occur, ascending.
        counts: the records (people) with each value; a person with two values counts for both.
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
        array = np.asarray(list(codes), dtype=np.int64)
        values, counts = np.unique(array, return_counts=True)
        return cls(len(array), values, counts.astype(np.int64))

    @classmethod
    def from_counts(cls, counts: Mapping[int, int]) -> SecretCounts:
        """Make a histogram from a mapping of code to number of records."""
        histogram = np.zeros(max(counts, default=-1) + 1, dtype=np.int64)
        histogram[list(counts)] = list(counts.values())
        return cls.from_histogram(histogram)

    @classmethod
    def from_histogram(cls, numbers: NDArray[np.int64], size: int | None = None) -> SecretCounts:
        """Make a histogram from the records of each code; `size` counts people instead."""
        present = np.flatnonzero(numbers)
        return cls(int(numbers.sum()) if size is None else size, present, numbers[present])

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def as_dict(self) -> dict[int, int]:
        """Return the histogram as a dict from code to number of records."""
        return dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))
