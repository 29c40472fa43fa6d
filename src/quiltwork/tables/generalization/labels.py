"""The texts of published values, and reading them back.

A value is published as itself, as `low..high` (numbers, dates and declared orders), as the label
of a hierarchy, or as a set `{x, y}` of categories. A missing value is `missing`; together with
numbers it is a set too: `{20..25, missing}`. Categories that contain signs with a meaning here are
quoted as in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quiltwork.errors import InvalidInputError

MISSING = "missing"
RANGE = ".."
_SPECIAL = re.compile(r'^[\s.]|[\s.]$|[{},"]|\.\.|^missing$|^$')


@dataclass(frozen=True)
class Label:
    """One published value: a range of values, or a set of them.

    Attributes:
        form: "range" (`values` are its two ends, equal for a single value) or "set".
        values: the texts in it, without None.
        missing: whether a missing value is in it.
    """

    form: Literal["range", "set"]
    values: tuple[str, ...]
    missing: bool = False


def value_text(value: Any) -> str:
    """Return how one value is written.

    >>> value_text(31.0), value_text("Never-married"), value_text("a, b"), value_text(None)
    ('31', 'Never-married', '"a, b"', 'missing')
    """
    if value is None:
        return MISSING
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if _SPECIAL.search(text) else text


def range_text(low: Any, high: Any, missing: bool = False) -> str:
    """Return `low..high`, or the value if they are equal.

    >>> range_text(20, 25), range_text(20, 20), range_text(20, 25, missing=True)
    ('20..25', '20', '{20..25, missing}')
    """
    text = value_text(low) if low == high else f"{value_text(low)}{RANGE}{value_text(high)}"
    return f"{{{text}, {MISSING}}}" if missing else text


def set_text(values: Sequence[Any]) -> str:
    """Return `{x, y}`, or the value if there is only one.

    >>> set_text(["flu", "asthma"]), set_text(["flu"])
    ('{flu, asthma}', 'flu')
    """
    if len(values) == 1:
        return value_text(values[0])
    return f"{{{', '.join(map(value_text, values))}}}"


def parse_label(text: str) -> Label:
    """Read a published text back.

    >>> parse_label("20..25").values, parse_label("{flu, asthma}").values
    (('20', '25'), ('flu', 'asthma'))
    >>> parse_label("{20..25, missing}")
    Label(form='range', values=('20', '25'), missing=True)
    """
    body = text.strip()
    pieces = _pieces(body[1:-1]) if body.startswith("{") and body.endswith("}") else [body]
    known = [piece for piece in pieces if piece != MISSING]
    missing = len(known) < len(pieces)
    if len(known) == 1:
        ends = _ends(known[0])
        return Label("range", ends if len(ends) == 2 else ends * 2, missing)
    return Label("set", tuple(_plain(piece) for piece in known), missing)


def _pieces(body: str) -> list[str]:
    found = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', body)
    if not found:
        raise InvalidInputError("A text in braces names no value; sets are written as {x, y}.")
    return [piece.strip() for piece in found]


def _ends(piece: str) -> tuple[str, ...]:
    found = re.fullmatch(r'("(?:[^"\\]|\\.)*"|[^"]+?)\.\.("(?:[^"\\]|\\.)*"|[^"]+)', piece)
    return tuple(map(_plain, found.groups() if found else (piece,)))


def _plain(piece: str) -> str:
    if not piece.startswith('"'):
        return piece
    try:
        return str(json.loads(piece))
    except ValueError:
        raise InvalidInputError(
            "A text begins with a quotation mark and is no quoted value; write it as in JSON."
        ) from None
