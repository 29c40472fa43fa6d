"""Exact numbers, and rounding towards privacy.

Budgets are fractions, never binary floats: a float is read as its shortest decimal, so that ten
releases of 0.1 fit a budget of 1.0. Where floats are needed, costs round up and budgets round down
(`docs/theory/rounding.md`).
"""

from __future__ import annotations

import math
import numbers
import re
import warnings
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.wording import argument

Number: TypeAlias = int | float | Fraction | Decimal

_LARGEST_EXPONENT = 10_000
"""Of a Decimal, which as a fraction has that many digits."""
_LARGEST = Fraction(10**300)
_SHOWN = 40
_IMPLAUSIBLE = 100
"""From here on odds change by e^100 or more: almost certainly a length passed as epsilon."""
_HUGE_EXPONENT = re.compile(r"[eE][+-]?[0_]*[1-9](_?\d){4}")
_STORED = re.compile("-?[0-9]{1,4000}(/[0-9]{1,4000})?")


def to_fraction(value: object, name: str) -> Fraction:
    """Return a number as an exact fraction; a float stands for its shortest decimal.

    Raises:
        InvalidInputError: for booleans, text, NaN, infinities and other types.

    >>> to_fraction(0.1, "epsilon")
    Fraction(1, 10)
    """
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, (numbers.Real, Decimal)):
        raise InvalidInputError(
            f"{argument(name)} must be a number, not {shortened(value)}; give an int, float, "
            "Fraction or Decimal."
        )
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise InvalidInputError(f"{argument(name)} must be finite, not {shortened(value)}.")
    if isinstance(value, Decimal) and abs(int(value.as_tuple().exponent)) > _LARGEST_EXPONENT:
        raise InvalidInputError(
            f"{argument(name)} is {shortened(value)}, far outside the range of any computation."
        )
    return Fraction(value) if isinstance(value, Decimal) else Fraction(str(value))


def positive_fraction(value: object, name: str) -> Fraction:
    """Return a number > 0 as `to_fraction` does, between 1e-300 and 1e300, the range of floats.

    >>> positive_fraction(-1, "epsilon")
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: epsilon must be greater than 0, not -1.
    """
    fraction = to_fraction(value, name)
    if fraction <= 0:
        raise InvalidInputError(f"{argument(name)} must be greater than 0, not {shortened(value)}.")
    if not 1 / _LARGEST <= fraction <= _LARGEST:
        raise InvalidInputError(
            f"{argument(name)} is {shortened(value)}, far outside the range of any computation; "
            "give a number between 1e-300 and 1e300."
        )
    return fraction


def proper_fraction(value: object, name: str) -> Fraction:
    """Return a number strictly between 0 and 1 as a fraction: a confidence, a share.

    >>> proper_fraction(0.95, "confidence")
    Fraction(19, 20)
    """
    number = to_fraction(value, name)
    if not 0 < number < 1:
        raise InvalidInputError(
            f"{argument(name)} must lie strictly between 0 and 1, not {shortened(value)}; write "
            "0.95 for 95 %."
        )
    return number


def privacy_level(value: object, name: str) -> Fraction:
    """Return a privacy level or a budget as `positive_fraction` does.

    Warns from 100 on: almost certainly a length passed as epsilon.

    >>> privacy_level(0.1, "epsilon")
    Fraction(1, 10)
    """
    level = positive_fraction(value, name)
    if level >= _IMPLAUSIBLE:
        warnings.warn(
            f"{argument(name)} is {shortened(value)}: odds may change by a factor of "
            f"e^{float(level):.6g}, which protects nothing. Was another argument meant, such as "
            "the length of the series?",
            QuiltworkWarning,
            stacklevel=3,
        )
    return level


def parse_fraction(text: str) -> Fraction | None:
    """Parse a typed number: 1, 0.5, 1e-3 or 1/3; None for other text.

    Exponents of five digits or more give None too: as exact numbers they would fill the memory.

    >>> parse_fraction(" 1/3 "), parse_fraction("1e99999999")
    (Fraction(1, 3), None)
    """
    if _HUGE_EXPONENT.search(text):
        return None
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        return None


def parse_stored_fraction(text: object, name: str) -> Fraction:
    """Parse an exact number of a stored file: "3" or "-1/10", as `str` writes a Fraction.

    Other notations are refused: `1e10000000` would take minutes, and our files have no such number.

    Raises:
        InvalidInputError: for any other text, and for other types.

    >>> parse_stored_fraction("1/10", "budget")
    Fraction(1, 10)
    """
    if isinstance(text, str) and _STORED.fullmatch(text):
        try:
            return Fraction(text)
        except ZeroDivisionError:
            pass
    raise InvalidInputError(
        f"{argument(name)} must be an exact number as text, such as '1/10', not {shortened(text)}."
    )


def shortened(value: object) -> str:
    """Return a value as short text for a message; a NumPy number as Python's own.

    Of arrays, frames and lists only the type is named: they may be data, which no message shows.

    >>> import numpy as np
    >>> shortened(np.float64("nan")), shortened(Fraction(1, 3)), shortened(np.arange(3))
    ('nan', '1/3', 'a ndarray')
    """
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        value = value.item()  # type: ignore[attr-defined]
    if getattr(value, "shape", None) or isinstance(value, (list, dict, set, frozenset)):
        return f"a {type(value).__name__}"
    try:
        text = str(value) if type(value) is Fraction else repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return "a number of thousands of digits"
    except Exception:  # an object's own repr may raise anything
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage; only 0 is shown as 0 %, and only 1 as 100 %.

    >>> percent(895 / 897), percent(2 / 12_317), percent(1 - 1e-9), percent(1), percent(0)
    ('99.8 %', '0.02 %', 'above 99.9999 %', '100 %', '0 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    for places in range(digits, 5):
        text = f"{100 * share:.{places}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "above 99.9999 %" if share > 0.5 else "below 0.0001 %"


def format_number(value: float, digits: int = 4) -> str:
    """Write a number for people: few digits, commas between thousands, an exponent if it must be.

    >>> format_number(12.2415), format_number(53572.1), format_number(0.00012), format_number(1e20)
    ('12.24', '53,570', '0.00012', '1e+20')
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    rounded = Context(prec=digits).create_decimal(repr(float(value))).normalize()
    return f"{rounded:,f}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: `1 group`, `1,000 groups`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def float_up(value: Fraction) -> float:
    """Return the least float at or above `value`: for costs and noise scales."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float at or below `value`: for budgets."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def format_down(value: float, digits: int = 4) -> str:
    """Write a number rounded down to so many digits: for levels that must fit when typed again.

    Stored levels are floats rounded down, so the next float up is written: the rest of 2 after 1.1
    is 0.9, not 0.899999.

    >>> format_down(1.99896), format_down(0.05, 2), format_down(12345.6)
    ('1.998', '0.05', '12340')
    >>> format_down(float_down(Fraction(9, 10)), 6)
    '0.9'
    """
    return _written(value and math.nextafter(value, math.inf), digits, ROUND_FLOOR)


def format_up(value: float, digits: int = 4) -> str:
    """Write a number rounded up to so many digits: for noise that must suffice when typed again.

    Stored noise is a float rounded up, so the float before it is written.

    >>> format_up(33.36409), format_up(0.1)
    ('33.37', '0.1')
    """
    return _written(value and math.nextafter(value, -math.inf), digits, ROUND_CEILING)


def _written(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    rounded = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value))).normalize()
    return f"{rounded:f}" if -6 <= rounded.adjusted() < 15 else f"{rounded:e}"


def private_integer(value: object, name: str) -> int:
    """Return a private integer of at least 0; the error does not show its value."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < 0:
        raise InvalidInputError(f"{argument(name)} must be an integer of at least 0.")
    return int(value)


def float_nearest(value: Fraction) -> float:
    """Return the nearest float, for display; infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def integer(value: object, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return an integer from `minimum` to `maximum`; booleans and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInputError(f"{argument(name)} must be an integer, not {shortened(value)}.")
    if int(value) < minimum:
        raise InvalidInputError(
            f"{argument(name)} must be at least {minimum}, not {shortened(value)}."
        )
    if maximum is not None and int(value) > maximum:
        raise InvalidInputError(
            f"{argument(name)} must be at most {maximum:,}, not {shortened(value)}."
        )
    return int(value)
