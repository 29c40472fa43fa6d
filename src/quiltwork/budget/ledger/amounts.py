"""Amounts and names as a ledger takes them: exact, of sane size, and fit to be kept for ever."""

from __future__ import annotations

import sys
from fractions import Fraction

from quiltwork.errors import InvalidInputError
from quiltwork.exact import (
    integer,
    parse_stored_fraction,
    positive_fraction,
    shortened,
    to_fraction,
)

_SMALLEST = Fraction(sys.float_info.min)
_LARGEST = Fraction(sys.float_info.max)
_MOST_DIGITS = 1000
_TOO_LONG = 10**_MOST_DIGITS
_LONGEST_NAME = 200
_LONGEST_SERIES = 10**15


def amount(value: object, name: str) -> Fraction:
    """Read a budget or a level exactly.

    Raises:
        InvalidInputError: for what is no positive finite number, and for numbers outside the range
            of normal floats (about 2e-308 to 2e308) or of more than 1,000 digits.

    >>> amount(0.1, "budget")
    Fraction(1, 10)
    """
    if isinstance(value, Fraction) and value.numerator > 0:
        fraction = value
    else:
        fraction = positive_fraction(value, name)
    if not _SMALLEST <= fraction <= _LARGEST:
        raise InvalidInputError(
            f"{name} is {shortened(value)}, outside the range of normal numbers (about 2e-308 to "
            "2e308); give an ordinary amount such as 0.1."
        )
    if max(fraction.numerator, fraction.denominator) >= _TOO_LONG:
        raise InvalidInputError(
            f"{name} has more than {_MOST_DIGITS:,} digits; round it to a few, towards privacy."
        )
    return fraction


def allowance(value: object, name: str) -> Fraction:
    """Read a cap or a reserved share: as `amount`, or 0 for nothing."""
    found = to_fraction(value, name)
    if found < 0:
        raise InvalidInputError(f"{name} must be 0 or more, not {shortened(value)}.")
    return amount(value, name) if found else found


def read_amount(text: object, name: str) -> Fraction:
    """Read an amount that was written as text: `1/10` or `2`.

    Raises:
        InvalidInputError: for any other text, and for what `amount` refuses.
    """
    return amount(parse_stored_fraction(text, name), name)


def points(length: object) -> int:
    """Read the number of time points of a dataset."""
    found = integer(length, "length", 1)
    if found > _LONGEST_SERIES:
        raise InvalidInputError(
            f"length is {shortened(length)}; a dataset has at most 10¹⁵ points."
        )
    return found


def identifier(value: object, name: str, longest: int = _LONGEST_NAME) -> str:
    """Read the name of a dataset, an analyst or a request.

    Raises:
        InvalidInputError: for anything but 1 to `longest` printable characters.
    """
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInputError(
            f"{name} must be text of printable characters, not {shortened(value)}; give a name "
            "such as 'power-2024'."
        )
    if len(value) > longest:
        raise InvalidInputError(f"{name} has {len(value)} characters; give at most {longest}.")
    return value
