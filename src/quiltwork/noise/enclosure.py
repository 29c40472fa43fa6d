"""Integer enclosures of real numbers: lo ≤ 2^bits · x ≤ hi, by integer arithmetic alone.

They make the samplers exact: an enclosure decides the comparison of random bits with a real
threshold, and an undecided comparison is repeated with more bits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

Enclosure: TypeAlias = tuple[int, int]

_GUARD_BITS = 32
"""Extra working bits, so that rounding widens an enclosure by at most one unit."""


def of_fraction(value: Fraction, bits: int) -> Enclosure:
    """Enclose a rational number as tightly as integers can.

    >>> of_fraction(Fraction(1, 3), 4)
    (5, 6)
    """
    scaled = value.numerator << bits
    return scaled // value.denominator, -(-scaled // value.denominator)


def multiply(a: Enclosure, b: Enclosure, bits: int) -> Enclosure:
    """Enclose the product of two non-negative numbers."""
    return (a[0] * b[0]) >> bits, -((-a[1] * b[1]) >> bits)


def complement(a: Enclosure, bits: int) -> Enclosure:
    """Enclose 1 − a."""
    return (1 << bits) - a[1], (1 << bits) - a[0]


def divide(a: Enclosure, b: Enclosure, bits: int) -> Enclosure:
    """Enclose a/b for a ≥ 0 and b > 0."""
    return (a[0] << bits) // b[1], -(-(a[1] << bits) // b[0])


def power(base: Enclosure, exponent: int, bits: int) -> Enclosure:
    """Enclose base**exponent for 0 ≤ base ≤ 1, by squaring: O(log exponent) products."""
    result = (1 << bits, 1 << bits)
    while exponent:
        if exponent & 1:
            result = multiply(result, base, bits)
        exponent >>= 1
        if exponent:
            base = multiply(base, base, bits)
    return result


def exp_minus(exponent: Fraction, bits: int) -> Enclosure:
    """Enclose e^(−exponent) for a rational exponent ≥ 0.

    e^y is summed from its Taylor series at y = exponent/2^s ≤ 1/2, inverted and squared s times.
    Each floored term loses less than 2 units, and what is left of the series is below the last
    term, so 2·terms + 2 units enclose the sum; every later step rounds outwards. Cost: O(bits)
    products of numbers of O(bits) bits.

    >>> lo, hi = exp_minus(Fraction(1), 20)
    >>> (lo, hi), round(0.36787944117144233 * 2**20, 2)
    ((385749, 385750), 385749.55)
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent > bits + 1:  # e^-x < 2^-x: below half a unit
        return 0, 1
    halvings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 2)
    working = bits + halvings + _GUARD_BITS
    numerator, denominator = exponent.numerator, exponent.denominator << halvings
    term = total = 1 << working
    terms = 0
    while term:
        terms += 1
        term = term * numerator // (denominator * terms)
        total += term
    # the upper end of e^y gives the lower end of e^−y
    lo = (1 << 2 * working) // (total + 2 * terms + 2)
    hi = -(-(1 << 2 * working) // total)
    result = (lo, hi)
    for _ in range(halvings):
        result = multiply(result, result, working)
    shift = working - bits
    return result[0] >> shift, -(-result[1] >> shift)
