"""Exact sampling from a finite distribution by comparing random bits with its thresholds.

A uniform real U, revealed 32 bits at a time, falls below the cumulative probability t_j or not.
The first word decides unless it hits the cell of a threshold (probability thresholds/2^32); then
further words decide against a finer enclosure of t_j. So the sample has exactly the distribution
with cumulative probabilities t_j (Lemma 1), and the number of words is fixed but for a vanishing
fraction of draws. Cost: one binary search per draw.

Theorem: docs/theory/exact-sampling.md
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from quiltwork.noise.bits import WORD_BITS
from quiltwork.noise.enclosure import Enclosure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT_FROM_BITS = 256
"""Beyond this precision a rational threshold is compared as a fraction: it may be dyadic, and then
no enclosure decides."""


@dataclass(frozen=True)
class Thresholds:
    """The cumulative probabilities t_0 < t_1 < … of a distribution, as enclosures.

    Attributes:
        count: the number of thresholds; the distribution has one more outcome.
        enclose: (j, bits) → lo ≤ 2^bits · t_j ≤ hi, of bounded width.
        exact: j → t_j if rational, so that a dyadic t_j is decided exactly; None if every t_j is
            irrational.
    """

    count: int
    enclose: Callable[[int, int], Enclosure]
    exact: Callable[[int], Fraction] | None = None

    def floor(self, j: int, bits: int) -> int:
        """Return ⌊2^bits · t_j⌋ exactly."""
        guard = 64
        while True:
            if self.exact is not None and guard > _EXACT_FROM_BITS:
                value = self.exact(j)
                return (value.numerator << bits) // value.denominator
            lo, hi = self.enclose(j, bits + guard)
            below_one = min(hi, (1 << (bits + guard)) - 1)
            # both ends have the same floor, so the number between them has it
            if lo >> guard == below_one >> guard:
                return lo >> guard
            guard *= 2

    def outcome(self, prefix: int, bits: int) -> int | None:
        """Return the outcome of every U in [prefix, prefix+1)/2^bits, or None if undecided."""
        for j in range(self.count):
            lo, hi = self.enclose(j, bits)
            if prefix + 1 <= lo:
                return j
            if prefix < hi:
                return None
        return self.count


class SamplingTable:
    """Thresholds prepared for sampling with words of `word_bits` bits."""

    def __init__(self, thresholds: Thresholds, word_bits: int = WORD_BITS) -> None:
        self.thresholds = thresholds
        self.word_bits = word_bits
        self.cells = [thresholds.floor(j, word_bits) for j in range(thresholds.count)]

    @cached_property
    def _array(self) -> NDArray[np.uint32]:
        import numpy as np

        return np.array(self.cells, dtype=np.uint32)

    def outcome(self, first: int, more: Callable[[], int]) -> int:
        """Return the outcome for a first word, calling `more` for further words if needed."""
        position = bisect_left(self.cells, first)
        # no threshold lies in the cell of this word: it decides
        if position == len(self.cells) or self.cells[position] != first:
            return position
        prefix, bits = first, self.word_bits
        while True:
            prefix, bits = (prefix << self.word_bits) | more(), bits + self.word_bits
            outcome = self.thresholds.outcome(prefix, bits)
            if outcome is not None:
                return outcome

    def outcomes(self, first: NDArray[np.uint32], more: Callable[[], int]) -> NDArray[np.int64]:
        """Return the outcomes for an array of first words; as `outcome`, vectorized."""
        import numpy as np

        positions = np.searchsorted(self._array, first).astype(np.int64, copy=False)
        hit = self._array.take(positions, mode="clip") == first
        for index in np.flatnonzero(hit):
            positions[index] = self.outcome(int(first[index]), more)
        return positions
