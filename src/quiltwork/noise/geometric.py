"""The two-sided geometric (discrete Laplace) distribution, sampled exactly.

P(Z = z) = (1−α)/(1+α)·α^|z| for α = p/q or α = e^(−p/q). The magnitude of a geometric variable
splits into independent digits, each drawn from a small table, so a draw takes the same few words
for every scale; there is no rejection. Cost: O(log scale) binary searches per draw; the tables are
O(log scale) small tables of big integers, cached.

Theorem: docs/theory/exact-sampling.md
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up, integer, proper_fraction, to_fraction
from quiltwork.noise import bits as random_bits
from quiltwork.noise import enclosure
from quiltwork.noise.enclosure import Enclosure
from quiltwork.noise.finite_law import SamplingTable, Thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SCALE_BITS = 48
"""Draws at larger scales might not fit into 64-bit integers."""
_DIGIT_BITS = 8
_BATCH = 1 << 16
"""Draws per batch, a fixed amount of memory."""
_STEEPEST = 2.0**60  # beyond it, floats that only estimate table sizes stop growing
_FLATTEST = Fraction(1, 1 << 50)


@dataclass(frozen=True)
class TwoSidedGeometric:
    """The law of integer noise with ratio α between neighbouring values.

    Build it with `from_scale` (α = e^(−1/scale)) or `from_alpha` (α rational). Exactly one of
    `scale` and `ratio` is set. `α = 0` (scale 0) is no noise at all.

    >>> law = TwoSidedGeometric.from_scale(Fraction(3, 2))
    >>> law.draw(1000).dtype
    dtype('int64')
    >>> law.quantile(0.95)
    4
    """

    scale: Fraction | None = None
    ratio: Fraction | None = None

    @classmethod
    def from_scale(cls, scale: object) -> TwoSidedGeometric:
        """Noise with α = e^(−1/scale): ε-private for integers that move by ε·scale at most.

        Raises:
            InvalidInputError: if the scale is negative, not a finite number or above 2^48.
        """
        value = to_fraction(scale, "scale")
        if value < 0 or value > 1 << MAX_SCALE_BITS:
            raise InvalidInputError(
                f"scale must lie between 0 and 2^{MAX_SCALE_BITS}, not {scale!r}; "
                "measure the query in larger steps."
            )
        return cls(scale=value)

    @classmethod
    def from_alpha(cls, alpha: object) -> TwoSidedGeometric:
        """Noise with rational α in [0, 1): (−ln α)-private for integers that move by 1.

        Raises:
            InvalidInputError: if α lies outside [0, 1) or is closer to 1 than 2^-48.
        """
        value = to_fraction(alpha, "alpha")
        if not 0 <= value < 1:
            raise InvalidInputError(f"alpha must be at least 0 and below 1, not {alpha!r}.")
        if value > 1 - Fraction(1, 1 << MAX_SCALE_BITS):
            raise InvalidInputError(
                f"alpha must not lie within 2^-{MAX_SCALE_BITS} of 1: noise so large would leave "
                "nothing of the answer. Choose a smaller alpha, that is a larger epsilon."
            )
        return cls(ratio=value)

    @property
    def is_zero(self) -> bool:
        """Whether there is no noise."""
        return self.scale == 0 or self.ratio == 0

    @property
    def alpha(self) -> float:
        """The ratio α between neighbouring probabilities, to the nearest float."""
        if self.is_zero:
            return 0.0
        return float(self.ratio) if self.ratio is not None else math.exp(self._log_alpha)

    @property
    def expected_absolute(self) -> float:
        """E|Z| = 2α/(1−α²)."""
        return 0.0 if self.is_zero else self.alpha / (1 + self.alpha) * 2 / self._one_minus_alpha

    @property
    def variance(self) -> float:
        """Var Z = 2α/(1−α)²."""
        return 0.0 if self.is_zero else 2 * self.alpha / self._one_minus_alpha**2

    def probability(self, value: int) -> float:
        """P(Z = value), up to rounding."""
        if self.is_zero:
            return float(value == 0)
        weight = math.exp(abs(value) * self._log_alpha)
        return self._one_minus_alpha / (1 + self.alpha) * weight

    def tail(self, bound: int) -> float:
        """An upper bound of P(|Z| > bound) = 2α^(bound+1)/(1+α), tight to 2^-60."""
        upper = self._tail(integer(bound, "bound", 0), 64)[1]
        return min(1.0, float_up(Fraction(upper, 1 << 64)))

    def quantile(self, confidence: object) -> int:
        """Return the least c with P(|Z| ≤ c) ≥ confidence, decided by integer enclosures."""
        return self.simultaneous_quantile(confidence, 1)

    def simultaneous_quantile(self, confidence: object, cells: int) -> int:
        """Return the least c such that `cells` independent draws all stay within ±c.

        Cost: O(log(scale·ln cells)) enclosures.

        >>> TwoSidedGeometric.from_scale(1).simultaneous_quantile(0.95, 4)
        4
        """
        level = proper_fraction(confidence, "confidence")
        return _least_bound(self, level, integer(cells, "cells", 1))

    def draw(self, size: int) -> NDArray[np.int64]:
        """Draw `size` independent values, in batches of fixed size.

        The time of a call depends on `size` and the scale, not on the values, except for the
        vanishing fraction of draws that need more words.
        """
        import numpy as np

        count = integer(size, "size", 0)
        if self.is_zero:
            return np.zeros(count, dtype=np.int64)
        sampler = _sampler(self)
        batches = [sampler.batch(min(_BATCH, count - at)) for at in range(0, count, _BATCH)]
        return np.concatenate(batches) if batches else np.empty(0, dtype=np.int64)

    def draw_one(self) -> int:
        """Draw one value, as a Python integer."""
        return 0 if self.is_zero else _sampler(self).one()

    @property
    def _scale(self) -> float:
        return -1 / self._log_alpha

    @property
    def _log_alpha(self) -> float:
        if self.ratio is not None:
            return math.log1p(float(self.ratio - 1)) if self.ratio > _FLATTEST else -_STEEPEST
        return -float(min(1 / self.scale, Fraction(_STEEPEST))) if self.scale else -_STEEPEST

    @property
    def _one_minus_alpha(self) -> float:
        return -math.expm1(self._log_alpha)

    def _tail(self, bound: int, bits: int) -> Enclosure:
        if self.is_zero:
            return 0, 0
        excess = alpha_power(self, bound + 1, bits)
        doubled = (2 * excess[0], 2 * excess[1])
        alpha = alpha_power(self, 1, bits)
        return enclosure.divide(doubled, (alpha[0] + (1 << bits), alpha[1] + (1 << bits)), bits)

    def _covers(self, bound: int, level: Fraction, cells: int) -> bool:
        bits = 128 + cells.bit_length() + int(1 / (1 - level)).bit_length()
        inside = enclosure.complement(self._tail(bound, bits), bits)
        return Fraction(enclosure.power(inside, cells, bits)[0], 1 << bits) >= level


@lru_cache(maxsize=1024)
def _least_bound(law: TwoSidedGeometric, level: Fraction, cells: int) -> int:
    """The quantile by bisection; cached, since one answer shows it in several places."""
    high = 1
    # doubling, then bisection: O(log) enclosures
    while not law._covers(high, level, cells):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law._covers(middle, level, cells) else (middle, high)
    return high


@lru_cache(maxsize=4096)
def alpha_power(law: TwoSidedGeometric, exponent: int, bits: int) -> Enclosure:
    """Enclose α^exponent, 0 < α < 1."""
    if law.scale is not None:
        return enclosure.exp_minus(exponent / law.scale, bits)
    assert law.ratio is not None  # noqa: S101  (exactly one of the two is set)
    guard = 2 * exponent.bit_length() + 8
    lo, hi = enclosure.power(enclosure.of_fraction(law.ratio, bits + guard), exponent, bits + guard)
    return lo >> guard, -(-hi >> guard)


def magnitude_thresholds(law: TwoSidedGeometric, place: int, count: int) -> Thresholds:
    """Outcome 0: Z = 0. Outcome j ≥ 1: Z ≠ 0 and ⌊(|Z|−1)/place⌋ = j−1; the last one: ≥ count−1.

    1 − t_j = 2α/(1+α) · α^(place·j), since |Z|−1 given Z ≠ 0 is geometric.
    """

    def enclose(j: int, bits: int) -> Enclosure:
        working = bits + 8
        lo, hi = law._tail(place * j, working)
        below = enclosure.complement((lo, hi), working)
        return below[0] >> 8, -(-below[1] >> 8)

    def exact(j: int) -> Fraction:
        assert law.ratio is not None  # noqa: S101
        return 1 - 2 * law.ratio ** (place * j + 1) / (1 + law.ratio)

    return Thresholds(count, enclose, None if law.ratio is None else exact)


def digit_thresholds(law: TwoSidedGeometric, place: int, base: int) -> Thresholds:
    """The digit of weight `place` of a geometric variable in base `base`.

    P(digit ≤ d) = (1 − α^(place·(d+1)))/(1 − α^(place·base)); digits are independent.
    """
    spread = max(8, math.ceil(-math.log2(-math.expm1(place * base * law._log_alpha))) + 8)

    def enclose(j: int, bits: int) -> Enclosure:
        working = bits + spread
        below = enclosure.complement(alpha_power(law, place * (j + 1), working), working)
        whole = enclosure.complement(alpha_power(law, place * base, working), working)
        lo, hi = enclosure.divide(below, whole, working)
        return lo >> spread, -(-hi >> spread)

    def exact(j: int) -> Fraction:
        assert law.ratio is not None  # noqa: S101
        return (1 - law.ratio ** (place * (j + 1))) / (1 - law.ratio ** (place * base))

    return Thresholds(base - 1, enclose, None if law.ratio is None else exact)


@dataclass(frozen=True, eq=False)
class Sampler:
    """The tables of one law: |Z| = 1 + digits + place·(magnitude outcome − 1), then a fair sign."""

    law: TwoSidedGeometric
    place: int
    magnitude: SamplingTable
    digits: tuple[tuple[int, SamplingTable], ...]
    excess: SamplingTable

    def one(self) -> int:
        """One draw: a fixed number of words, but for a vanishing fraction of draws."""
        # one system call per draw, whatever is drawn
        source = os.urandom(4 * (1 + len(self.digits)) + 1)
        outcome = self.magnitude.outcome(int.from_bytes(source[:4], "little"), random_bits.word)
        value = 1
        for index, (place, table) in enumerate(self.digits, start=1):
            first = int.from_bytes(source[4 * index : 4 * index + 4], "little")
            value += place * table.outcome(first, random_bits.word)
        if outcome == 0:
            return 0
        value += self.place * (outcome - 1)
        if outcome == len(self.magnitude.cells):
            value += self.place * self.draw_excess()
        return -value if source[-1] & 1 else value

    def batch(self, count: int) -> NDArray[np.int64]:
        """`count` draws with vectorized searches."""
        import numpy as np

        outcome = self.magnitude.outcomes(random_bits.words(count), random_bits.word)
        value = (outcome - 1) * self.place
        value += 1
        for place, table in self.digits:
            value += place * table.outcomes(random_bits.words(count), random_bits.word)
        for index in np.flatnonzero(outcome == len(self.magnitude.cells)):
            value[index] += self.place * self.draw_excess()
        np.negative(value, out=value, where=random_bits.signs(count))
        # after the sign, so that zero is drawn once and not as +0 and −0
        value[outcome == 0] = 0
        return value

    def draw_excess(self) -> int:
        """The excess of a magnitude beyond the table: geometric again, since it is memoryless."""
        total = 0
        while True:
            outcome = self.excess.outcome(random_bits.word(), random_bits.word)
            total += outcome
            if outcome < len(self.excess.cells):
                return total


def build_sampler(law: TwoSidedGeometric, word_bits: int, digit_bits: int) -> Sampler:
    """Choose the place value near the scale and build the tables.

    The magnitude table ends where less than one word in 2^word_bits lies beyond it.
    """
    place_bits = max(0, math.ceil(math.log2(law._scale)))
    place = 1 << place_bits
    decay = -place * law._log_alpha
    count = 1 + max(0, math.ceil((word_bits * math.log(2) + math.log(2)) / decay))
    digits = [
        (1 << low, SamplingTable(digit_thresholds(law, 1 << low, 1 << width), word_bits))
        for low in range(0, place_bits, digit_bits)
        for width in [min(digit_bits, place_bits - low)]
    ]
    return Sampler(
        law,
        place,
        SamplingTable(magnitude_thresholds(law, place, count), word_bits),
        tuple(digits),
        SamplingTable(excess_thresholds(law, place, count), word_bits),
    )


def excess_thresholds(law: TwoSidedGeometric, place: int, count: int) -> Thresholds:
    """A geometric variable of ratio α^place, cut at `count`: 1 − t_j = α^(place·(j+1))."""

    def enclose(j: int, bits: int) -> Enclosure:
        return enclosure.complement(alpha_power(law, place * (j + 1), bits), bits)

    def exact(j: int) -> Fraction:
        assert law.ratio is not None  # noqa: S101
        return 1 - law.ratio ** (place * (j + 1))

    return Thresholds(count, enclose, None if law.ratio is None else exact)


@lru_cache(maxsize=256)
def _sampler(law: TwoSidedGeometric) -> Sampler:
    return build_sampler(law, random_bits.WORD_BITS, _DIGIT_BITS)
