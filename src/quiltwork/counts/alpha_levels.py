"""Privacy levels of counts: α exactly, and the conversion of ε into a rational α.

A mechanism is α-private if neighbouring counts change no output's probability by more than a factor
1/α; that is (−ln α)-differential privacy. Every conversion rounds towards privacy: α up, ε up.
Cost: O(1) big-integer operations.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, positive_fraction, privacy_level, to_fraction
from quiltwork.wording import argument

_PRECISION_BITS = 53
_LEAST_ALPHA = Fraction(1, 1 << 1000)  # rounding a huge ε up to this α only adds privacy
_LARGEST_EPSILON = 694  # e^-694 < 2^-1000 < e^-693
_DIGITS = 60


def parse_alpha(alpha: object) -> Fraction:
    """Validate a privacy level α in [0, 1] as an exact fraction; 0 is no privacy, 1 no information.

    >>> parse_alpha(0.1)
    Fraction(1, 10)
    """
    value = to_fraction(alpha, "alpha")
    if not 0 <= value <= 1:
        raise InvalidInputError(
            f"alpha must lie between 0 (no privacy) and 1 (no information), not {alpha!r}."
        )
    return value


def alpha_for_epsilon(epsilon: object) -> Fraction:
    """Return a rational α ≥ e^−ε, larger by a relative 2^-50 of ε at most.

    Its denominator is a power of two with about 53 bits more than needed to distinguish α from 0
    and 1. α is at least 2^-1000, about e^-693.15.

    >>> alpha_for_epsilon(1) >= math.exp(-1)
    True
    """
    level = positive_fraction(epsilon, "epsilon")
    if level >= _LARGEST_EPSILON:
        return _LEAST_ALPHA
    spread = level.denominator.bit_length() - level.numerator.bit_length() + 1
    bits = _PRECISION_BITS + max(0, spread) + math.ceil(float(level) / math.log(2))
    # Enough digits that the exponential errs by less than a unit of the denominator.
    with decimal.localcontext(prec=_DIGITS + bits // 3, rounding=decimal.ROUND_FLOOR):
        below = Decimal(level.numerator) / Decimal(level.denominator)
        scaled = Fraction((-below).exp().next_plus()) * (1 << bits)
    return min(Fraction(1), max(_LEAST_ALPHA, Fraction(math.ceil(scaled), 1 << bits)))


def epsilon_for_alpha(alpha: Fraction) -> Fraction:
    """Return a rational ε ≥ −ln α, larger by a relative 10^-50 at most.

    >>> float(epsilon_for_alpha(Fraction(1, 2)))
    0.6931471805599453
    """
    if alpha <= 0:
        raise InvalidInputError("alpha = 0 has no finite epsilon: it offers no privacy.")
    if alpha >= 1:
        return Fraction(0)
    digits = _DIGITS + len(str(alpha.denominator))
    with decimal.localcontext(prec=digits, rounding=decimal.ROUND_FLOOR):
        below = Decimal(alpha.numerator) / Decimal(alpha.denominator)
        log = below.ln().next_minus()
    return -Fraction(log)  # as a Fraction first: negating a Decimal would round it


def parse_level(alpha: Number | None, epsilon: Number | None) -> tuple[Fraction, Fraction | None]:
    """Return (α, ε) from exactly one of the two; ε is None at α = 0.

    A given ε is kept exactly; its α is rounded towards privacy.
    """
    if (alpha is None) == (epsilon is None):
        raise InvalidInputError(
            f"Give the privacy level once: either alpha=… (in [0, 1]) or {argument('epsilon')} (> "
            "0)."
        )
    if epsilon is not None:
        return alpha_for_epsilon(epsilon), privacy_level(epsilon, "epsilon")
    value = parse_alpha(alpha)
    return value, None if value == 0 else epsilon_for_alpha(value)
