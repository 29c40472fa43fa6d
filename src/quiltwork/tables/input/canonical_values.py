"""Canonical values: one spelling for cells that may mean the same.

`1.10` and `1.1` are one number, `12:00` and `12:00:00` one time, `Flu` and `flu ` one word, `yes`,
`True` and `1` one answer. Which cells count as equal decides whether a table looks safer than it
is:

- Readers of a table distinguish what is spelled differently. So quasi-identifiers are compared as
  written: `1.1` and `1.10` are two groups.
- A secret in two spellings is one secret. So sensitive values are compared by canonical value:
  `1.1` and `1.10` are one. Groups then have fewer values, and lower entropy.
- Where neither is safe, such values are refused: providers and subjects in two spellings (merged,
  they may hide a coalition; apart, its reach), and sensitive values under t-closeness (apart,
  distances are larger).

Where cells may or may not be equal, they count as equal: a time without a zone and one in UTC,
`02410` and a 2410 that lost its zero elsewhere. Cells are always published as written. Nothing else
is merged: other orders of dates, AM and PM, thousands separators, decimal commas and synonyms (`y`)
are plain words.
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
    """Parse a number in its usual spelling; return None for codes such as `02410`, `+5` and `12E4`.

    >>> number("1.10"), number("02410")
    (Decimal('1.10'), None)
    """
    plain = text.strip()
    return _decimal(plain.lower()) if _USUAL.match(plain) else None


def ordered_key(value: Any) -> tuple[str, Decimal] | None:
    """Return the kind (number, time, date) and position of a value; None for other text.

    >>> ordered_key(" .5"), ordered_key("12:00") == ordered_key("12:00:00"), ordered_key("flu")
    (('number', Decimal('0.5')), True, None)
    """
    return _ordered_key(_folded(value))


def _ordered_key(text: str) -> tuple[str, Decimal] | None:
    if not text or text[0] not in _BEGINNINGS:
        return None
    if (decimal := _decimal(text)) is not None:
        return "number", decimal
    if match := _CLOCK.fullmatch(text):
        days, *time = match.groups()
        return "time", 86_400 * Decimal(days or 0) + _seconds(*time)
    if not (match := _MOMENT.fullmatch(text)):
        return None
    year, month, day, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    try:
        ordinal = date(int(year), int(month), int(day)).toordinal()
    # A day that no calendar has, such as 2024-02-31, is text.
    except ValueError:
        return None
    zone = _seconds(zone_hours, zone_minutes, None) * (-1 if sign == "-" else 1)
    return "date", 86_400 * ordinal + _seconds(hour, minute, second) - zone


def _decimal(text: str) -> Decimal | None:
    if _ZERO.fullmatch(text):  # zero for any exponent, also one that Decimal rejects
        return Decimal(0)
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def canonical_value(value: Any) -> Any:
    """Return a value that is equal for all cells that may mean the same.

    >>> [canonical_value(cell) for cell in ("Flu ", "flu", "n/a")]
    ['flu', 'flu', None]
    >>> canonical_value("1.10") == canonical_value(1.1)
    True
    """
    if isinstance(value, tuple):
        return tuple(map(canonical_value, value))
    if value is None:
        return None
    text = _folded(value)
    # Words for missing values in two spellings are one missing value.
    if text in MISSING_WORDS:
        return None
    text = _WORDS.get(text, text)
    return _ordered_key(text) or text


def is_missing(value: Any) -> bool:
    """Return whether a sensitive value is missing; `none` is a value, as it may mean no illness.

    >>> is_missing(None), is_missing(" N/A"), is_missing("none")
    (True, True, False)
    """
    # Among diagnoses `none` can mean that somebody is healthy.
    return value is None or _folded(value) in MISSING_WORDS - {"none"}


def _folded(value: Any) -> str:
    """Return a text without differences that readers overlook: case, spaces, variants of letters.

    Letters are folded as in Unicode's NFKC_Casefold, digits of any script become 0 to 9, and
    invisible characters are removed.
    """
    text = unescape_formula(str(value))
    # Most cells are plain ASCII: they skip the costly normalization.
    if not (text.isascii() and text.isprintable()):
        visible = "".join(
            c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE
        )
        text = unicodedata.normalize("NFD", _FILLERS.sub("", visible))
        for _ in range(2):  # NFKC_Casefold: normalizing can undo the folding once
            text = unicodedata.normalize("NFKC", text.casefold())
        text = _DIGIT.sub(lambda digit: str(int(digit[0])), _HYPHENS.sub("-", text))
    return " ".join(text.casefold().split())


def _seconds(hours: str | None, minutes: str | None, seconds: str | None) -> Decimal:
    return 3600 * Decimal(hours or 0) + 60 * Decimal(minutes or 0) + Decimal(seconds or 0)
