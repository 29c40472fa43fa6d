"""What a cell may mean, apart from how it is spelled.

`1.10` and `1.1` are one number, `12:00` and `12:00:00` one time, `Flu` and `flu ` one word, `yes`,
`True` and `1` one answer. Where that is asked decides whether a table looks safer than it is:

- Whoever reads a table tells apart what is spelled apart. So quasi-identifiers are compared as they
  are written: `1.1` and `1.10` are two groups.
- A secret spelled in two ways is one secret. So sensitive values are compared by what they may
  mean: `1.1` and `1.10` are one. Groups have fewer values then, and lower entropy.
- Where neither is safe it is refused: providers and subjects in two spellings (as one they may
  hide a coalition, as two its reach), and such values under t-closeness (as two they are further
  apart).

What cannot be told may be the same: a time without a zone and one of UTC, `02410` and a 2410 that
lost its zero elsewhere. Cells are published as they are written in either case. The list ends here:
other orders of dates, AM and PM, separators of thousands, decimal commas and synonyms (`y`) are
words like any other.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Any

from quiltwork.delimited import DECIMAL, MISSING_WORDS, unescape_formula

_WORDS = {"true": "1", "yes": "1", "false": "0", "no": "0", "-infinity": "-inf"}
_WORDS |= dict.fromkeys(("+inf", "infinity", "+infinity"), "inf")
_BEGINNINGS = frozenset("0123456789+-.")
_USUAL = re.compile(DECIMAL)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?0*[0-9]{1,6})?")
_ZERO = re.compile(r"[+-]?(0+(\.0*)?|\.0+)(e[+-]?[0-9]+)?")
_TIME = r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,99})?))?"
_CLOCK = re.compile(rf"(?:(-?[0-9]{{1,9}}) days?,? )?{_TIME}")
_ZONE = r"z|([+-])([0-9]{2}):?([0-9]{2})?"
_DIGIT = re.compile(r"\d")
_INVISIBLE = frozenset({"Cc", "Cf"})
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
_FILLERS = re.compile(  # Unicode's Default_Ignorable_Code_Point beyond the categories Cf and Cc
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_MOMENT = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[ t]{_TIME})? ?(?:{_ZONE})?")


def number(text: str) -> Decimal | None:
    """Read a number in its usual spelling; None for codes such as `02410`, `+5` and `12E4`.

    >>> number("1.10"), number("02410")
    (Decimal('1.10'), None)
    """
    plain = text.strip()
    return _decimal(plain.lower()) if _USUAL.match(plain) else None


def ordered_key(value: Any) -> tuple[str, Decimal] | None:
    """Return where a value lies: on which line (numbers, times, dates), and where on it.

    >>> ordered_key(" .5"), ordered_key("12:00") == ordered_key("12:00:00"), ordered_key("flu")
    (('number', Decimal('0.5')), True, None)
    """
    return _ordered_key(_folded(value))


def _ordered_key(text: str) -> tuple[str, Decimal] | None:
    if not text or text[0] not in _BEGINNINGS:
        return None
    if (found_number := _decimal(text)) is not None:
        return "number", found_number
    if found := _CLOCK.fullmatch(text):
        days, *time = found.groups()
        return "time", 86_400 * Decimal(days or 0) + _seconds(*time)
    if not (found := _MOMENT.fullmatch(text)):
        return None
    year, month, day, hour, minute, second, sign, ahead, also = found.groups()
    try:
        passed = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    zone = _seconds(ahead, also, None) * (-1 if sign == "-" else 1)
    return "date", 86_400 * passed + _seconds(hour, minute, second) - zone


def _decimal(text: str) -> Decimal | None:
    if _ZERO.fullmatch(text):  # whatever its exponent, which may be none that Decimal takes
        return Decimal(0)
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def canonical_value(value: Any) -> Any:
    """Return something that is equal for all values that may mean the same.

    >>> [canonical_value(one) for one in ("Flu ", "flu", "n/a")]
    ['flu', 'flu', None]
    >>> canonical_value("1.10") == canonical_value(1.1)
    True
    """
    if isinstance(value, tuple):
        return tuple(map(canonical_value, value))
    if value is None:
        return None
    text = _folded(value)
    if text in MISSING_WORDS:
        return None
    text = _WORDS.get(text, text)
    return _ordered_key(text) or text


def is_missing(value: Any) -> bool:
    """Tell whether a sensitive value says nothing; `none` may say that there is no illness.

    >>> is_missing(None), is_missing(" N/A"), is_missing("none")
    (True, True, False)
    """
    return value is None or _folded(value) in MISSING_WORDS - {"none"}


def _folded(value: Any) -> str:
    """Return a text without what readers overlook: case, spaces, the make of its letters.

    Letters are folded as Unicode's NFKC_Casefold does, digits of any script are 0 to 9, and
    invisible characters are left out.
    """
    text = unescape_formula(str(value))
    if not (text.isascii() and text.isprintable()):
        seen = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
        text = unicodedata.normalize("NFD", _FILLERS.sub("", seen))
        for _ in range(2):
            text = unicodedata.normalize("NFKC", text.casefold())
        text = _DIGIT.sub(lambda digit: str(int(digit[0])), _HYPHENS.sub("-", text))
    return " ".join(text.casefold().split())


def _seconds(hours: str | None, minutes: str | None, seconds: str | None) -> Decimal:
    return 3600 * Decimal(hours or 0) + 60 * Decimal(minutes or 0) + Decimal(seconds or 0)
