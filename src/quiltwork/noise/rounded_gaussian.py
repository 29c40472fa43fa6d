"""Gaussian noise, sampled exactly from the continuous law and rounded to integers.

|N(0, 1)| = k + x with k ∝ e^(−k²/2) and x in [0, 1) accepted with probability e^(−x(2k + x)/2)
(Karney 2016). Both are decided by comparing random bits with enclosures; of x only as many bits are
revealed as the rounding of σ(k + x) needs. Rounding a variable with the law N(0, σ²) is
post-processing, so levels (Δ/σ)² of several releases add up. Cost: some words per draw, whatever
the scale; arrays are decided by floats, except for values too close to a threshold, which are
decided by integers (all of them at scales near 2^48).

Theorem: docs/theory/exact-sampling.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, proper_fraction, to_fraction
from quiltwork.noise import bits as random_bits
from quiltwork.noise import enclosure
from quiltwork.noise.bits import WORD_BITS
from quiltwork.noise.enclosure import Enclosure
from quiltwork.noise.finite_law import SamplingTable, Thresholds
from quiltwork.noise.geometric import MAX_SCALE_BITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_WHOLE = 8
"""A whole part of 8 or more has probability below 2^-46; a second table starts there."""
_BATCH = 1 << 16
_FLOAT_BITS = 52
_UNDECIDED = 2.0**-36
"""Coins within this distance of their probability are decided by integers: far more than the
rounding error of an exponential."""
_ROUNDED = 2.0**-49
"""Relative error of σ(k + x): the unknown bits of x, and the rounding of a sum and a product."""
_UP = 1 + 2.0**-45


@dataclass(frozen=True)
class RoundedGaussian:
    """The law of ⌊σN + ½⌋ for N standard normal; scale 0 means no noise.

    >>> law = RoundedGaussian.from_scale(Fraction(3, 2))
    >>> law.draw(1000).dtype
    dtype('int64')
    >>> law.quantile(0.95)
    3
    """

    scale: Fraction

    @classmethod
    def from_scale(cls, scale: object) -> RoundedGaussian:
        """Noise of standard deviation `scale` before rounding.

        Raises:
            InvalidInputError: if the scale is negative, not a finite number or above 2^48.
        """
        value = to_fraction(scale, "scale")
        if value < 0 or value > 1 << MAX_SCALE_BITS:
            raise InvalidInputError(
                f"scale must lie between 0 and 2^{MAX_SCALE_BITS}, not {scale!r}; "
                "measure the query in larger steps."
            )
        return cls(value)

    @property
    def is_zero(self) -> bool:
        """Whether there is no noise."""
        return self.scale == 0

    def probability(self, value: int) -> float:
        """P(Z = value), up to rounding."""
        if self.is_zero:
            return float(value == 0)
        distance = abs(value)
        return _upper_tail((distance - 0.5) / float(self.scale)) - _upper_tail(
            (distance + 0.5) / float(self.scale)
        )

    @property
    def expected_absolute(self) -> float:
        """E|Z| = Σ P(|Z| ≥ n); for large scales σ√(2/π)."""
        sigma = float(self.scale)
        if sigma == 0:
            return 0.0
        if sigma > 64:
            return sigma * math.sqrt(2 / math.pi)
        return 2 * math.fsum(_upper_tail((n - 0.5) / sigma) for n in range(1, int(40 * sigma) + 3))

    @property
    def variance(self) -> float:
        """Var Z: σ² and at most 1/12 for the rounding."""
        sigma = float(self.scale)
        if sigma > 64:
            return sigma**2 + 1 / 12
        if sigma == 0:
            return 0.0
        terms = (
            (2 * n - 1) * _upper_tail((n - 0.5) / sigma) for n in range(1, int(40 * sigma) + 3)
        )
        return 2 * math.fsum(terms)

    def tail(self, bound: int) -> float:
        """An upper bound of P(|Z| > bound)."""
        place = integer(bound, "bound", 0) + 0.5
        return 0.0 if self.is_zero else min(1.0, 2 * _upper_tail(place / float(self.scale)) * _UP)

    def quantile(self, confidence: object) -> int:
        """Return the least c with P(|Z| ≤ c) ≥ confidence."""
        return self.simultaneous_quantile(confidence, 1)

    def simultaneous_quantile(self, confidence: object, cells: int) -> int:
        """Return the least c such that `cells` independent draws all stay within ±c.

        If rounding could decide, the next larger integer.

        >>> RoundedGaussian.from_scale(10).simultaneous_quantile(0.95, 4)
        25
        """
        level = proper_fraction(confidence, "confidence")
        integer(cells, "cells", 1)
        if self.is_zero:
            return 0
        miss = -math.expm1(math.log1p(-float(1 - level)) / cells)
        # only a start: the loop below decides by the tail
        guess = float(self.scale) * -NormalDist().inv_cdf(max(miss / 2, 1e-300)) - 0.5
        bound = max(0, math.ceil(guess) - 1)
        while self.tail(bound) > miss * (1 - 2.0**-40):
            bound += 1
        return bound

    def draw(self, size: int) -> NDArray[np.int64]:
        """Draw `size` independent values, in batches."""
        import numpy as np

        count = integer(size, "size", 0)
        drawn = np.zeros(count, dtype=np.int64)
        if self.is_zero:
            return drawn
        filled = 0
        while filled < count:
            batch = _batch(self.scale, min(_BATCH, 64 + 3 * (count - filled) // 2))
            drawn[filled : filled + len(batch)] = batch[: count - filled]
            filled += len(batch)
        return drawn

    def draw_one(self) -> int:
        """Draw one value, as a Python integer."""
        while not self.is_zero:
            whole = draw_whole()
            part = PartialUniform()
            if accepted(whole, part, PartialUniform()):
                value = rounded_value(self.scale, whole, part)
                return value if random_bits.word() & 1 else -value
        return 0


def _upper_tail(place: float) -> float:
    """P(N > place)."""
    return math.erfc(place / math.sqrt(2)) / 2


class PartialUniform:
    """A uniform number in [0, 1) of which the leading bits are drawn."""

    def __init__(self, prefix: int = 0, bits: int = 0) -> None:
        self.prefix, self.bits = prefix, bits

    def more(self) -> None:
        """Draw another word."""
        self.prefix = (self.prefix << WORD_BITS) | random_bits.word()
        self.bits += WORD_BITS

    @property
    def between(self) -> tuple[Fraction, Fraction]:
        """The least and the largest value that the number can have."""
        whole = 1 << self.bits
        return Fraction(self.prefix, whole), Fraction(self.prefix + 1, whole)


def accepted(whole: int, part: PartialUniform, coin: PartialUniform) -> bool:
    """Whether the coin lies below e^(−x(2k + x)/2); draws bits until that is decided."""
    while True:
        bits = part.bits + 32
        low, high = (enclosure.exp_minus(x * (2 * whole + x) / 2, bits) for x in part.between)
        first, last = coin.between
        if last <= Fraction(high[0], 1 << bits):
            return True
        if first >= Fraction(low[1], 1 << bits):
            return False
        part.more()
        coin.more()


def rounded_value(scale: Fraction, whole: int, part: PartialUniform) -> int:
    """⌊σ(k + x) + ½⌋; draws bits until it is decided."""
    while True:
        low, high = (scale * (whole + x) + Fraction(1, 2) for x in part.between)
        if math.floor(low) == math.ceil(high) - 1:
            return math.floor(low)
        part.more()


def whole_thresholds(count: int, first: int = 0) -> Thresholds:
    """The law of k ≥ first with P(k) ∝ e^(−k²/2); outcome j < count is first + j, the last is more.

    The sum of all further terms is below the last term that is added.
    """

    @lru_cache(maxsize=64)
    def sums(bits: int) -> tuple[list[int], list[int], int]:
        lows, highs, k = [0], [0], first
        while True:
            lo, hi = enclosure.exp_minus(Fraction(k * k - first * first, 2), bits)
            lows.append(lows[-1] + lo)
            highs.append(highs[-1] + hi)
            k += 1
            if lo == 0 and k > first + count:
                return lows, highs, highs[-1] + 2

    def enclose(j: int, bits: int) -> Enclosure:
        working = bits + 16
        lows, highs, most = sums(working)
        low = (lows[j + 1] << bits) // most
        return low, -(-(highs[j + 1] << bits) // lows[-1])

    return Thresholds(count, enclose)


@lru_cache(maxsize=4)
def _whole_table(first: int) -> SamplingTable:
    return SamplingTable(whole_thresholds(MOST_WHOLE, first))


def draw_whole() -> int:
    """Draw k ≥ 0 with P(k) ∝ e^(−k²/2)."""
    first = 0
    while True:
        outcome = _whole_table(first).outcome(random_bits.word(), random_bits.word)
        if outcome < MOST_WHOLE:
            return first + outcome
        first += MOST_WHOLE


def _batch(scale: Fraction, count: int) -> NDArray[np.int64]:
    """Draw `count` candidates and return those accepted, in order."""
    import numpy as np

    whole = _whole_table(0).outcomes(random_bits.words(count), random_bits.word)
    beyond_table = np.flatnonzero(whole == MOST_WHOLE)
    parts, coins = (_float_bits(count) for _ in range(2))
    x = parts * 2.0**-_FLOAT_BITS
    probability = np.exp(-x * (2 * whole + x) / 2)
    coin = coins * 2.0**-_FLOAT_BITS
    is_accepted = coin < probability
    scaled = float(scale) * (whole + x) + 0.5
    values = np.floor(scaled)
    margin = float(scale) * (whole + 1) * _ROUNDED
    distance = np.minimum(scaled - values, values + 1 - scaled)
    undecided = (np.abs(coin - probability) <= _UNDECIDED) | (is_accepted & (distance <= margin))
    undecided[beyond_table] = True
    rounded_values = values.astype(np.int64)
    # the bits drawn so far are kept: drawing anew would bias the result
    for index in np.flatnonzero(undecided).tolist():
        k = int(whole[index])
        if k == MOST_WHOLE:
            k = _draw_far()
        part = PartialUniform(int(parts[index]), _FLOAT_BITS)
        is_accepted[index] = accepted(k, part, PartialUniform(int(coins[index]), _FLOAT_BITS))
        rounded_values[index] = rounded_value(scale, k, part) if is_accepted[index] else 0
    np.negative(rounded_values, out=rounded_values, where=random_bits.signs(count))
    return rounded_values[is_accepted]


def _draw_far() -> int:
    """Draw k given that it is MOST_WHOLE or more."""
    first = MOST_WHOLE
    while True:
        outcome = _whole_table(first).outcome(random_bits.word(), random_bits.word)
        if outcome < MOST_WHOLE:
            return first + outcome
        first += MOST_WHOLE


def _float_bits(count: int) -> NDArray[np.int64]:
    """Draw uniform integers with as many bits as a float holds exactly."""
    import numpy as np

    pairs = random_bits.words(2 * count).astype(np.int64)
    return np.asarray((pairs[:count] << 20) | (pairs[count:] >> 12))
