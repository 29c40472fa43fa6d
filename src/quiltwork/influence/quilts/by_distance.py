"""Influences by distance: what one side of a quilt betrays, per pair of states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from quiltwork.influence.quilts.protocol import FloatArray, IntArray

_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rows computed when they are asked for: matrices [x, x'] by distance, plus a fixed one.

    Entries are made ≥ 0, and fall with distance.

    Args:
        reach: the largest distance.
        matrices: from distances to one matrix each.
        tilt: added to each.
        pairs: the entries that count.
        silent_from: rows at this distance and beyond are 0.
    """

    reach: int
    matrices: Callable[[IntArray], FloatArray]
    tilt: FloatArray
    pairs: IntArray
    silent_from: int
    _most: dict[int, float] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """The largest distance."""
        return self.reach

    def take(self, distances: IntArray) -> FloatArray:
        """The rows at these distances."""
        result = np.zeros((len(distances), len(self.pairs)))
        heard = np.flatnonzero(distances < self.silent_from)
        step = max(1, _CHUNK // self.tilt.size)
        for first in range(0, len(heard), step):
            part = heard[first : first + step]
            found = self.matrices(distances[part]).reshape(len(part), -1)[:, self.pairs]
            result[part] = np.maximum(found + self.tilt.ravel()[self.pairs], 0.0)
        return result

    def most(self, distances: IntArray) -> FloatArray:
        """The largest entry of each of these rows, each computed once."""
        missing = np.array([d for d in distances.tolist() if d not in self._most], dtype=np.int64)
        step = max(1, _CHUNK // max(1, len(self.pairs)))
        for first in range(0, len(missing), step):
            part = missing[first : first + step]
            largest = self.take(part).max(axis=1, initial=0.0)
            self._most.update(zip(part.tolist(), largest.tolist(), strict=True))
        return np.array([self._most[d] for d in distances.tolist()], dtype=np.float64)

    def times(self, factor: float) -> PairRows:
        """All influences times a power of two, which loses nothing in floating point."""
        return replace(
            self, matrices=lambda d: factor * self.matrices(d), tilt=factor * self.tilt, _most={}
        )


def bounded_rows(reach: int, at: Callable[[IntArray], FloatArray]) -> PairRows:
    """One bound per distance, whatever the states: `at` gives it for an array of distances."""
    return replace(silent_rows(reach), matrices=at, silent_from=reach + 1)


def silent_rows(reach: int = 0) -> PairRows:
    """No influence at any distance; without a reach no quilt node on that side."""
    return PairRows(reach, np.zeros_like, np.zeros(1), np.array([0]), silent_from=1)
