"""Reading arguments of every kind: what is none of them gets a sentence, whatever its type is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened

MOST = 2**31 - 1
"""More than any table has of anything that is asked for by number."""


def shown(value: Any) -> str:
    """Return what was given, for a message; of a table or a list of values only its type.

    >>> shown(1.5), shown("x"), shown([1, 2])
    ('1.5', "'x'", 'a list')
    """
    if value is None or isinstance(value, str | int | float):
        return shortened(value)
    return f"a {type(value).__name__}"


def one_of(choices: Any, value: Any, name: str) -> None:
    """Refuse what is none of the texts of a Literal type.

    Raises:
        InvalidInputError: for anything else.
    """
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        *others, last = map(repr, allowed)
        raise InvalidInputError(
            f"{name} must be {', '.join(others)} or {last}, not {shown(value)}."
        )


def yes_or_no(value: Any, name: str) -> None:
    """Refuse what is neither True nor False.

    Raises:
        InvalidInputError: for anything else.
    """
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be True or False, not {shown(value)}.")


def number_of(value: Any, name: str, least: int) -> int:
    """Return a whole number that can be a number of records, values or providers.

    Raises:
        InvalidInputError: unless it is a whole number from `least` on, below 2^31.
    """
    number = integer(value, name, least)
    if number > MOST:
        raise InvalidInputError(
            f"{name} must be at most {MOST:,}, not {shown(value)}; no table has more."
        )
    return number


def by_column(value: Any, name: str) -> dict[str, Any]:
    """Return declarations by column; none for None.

    Raises:
        InvalidInputError: if it is no dict.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{name} must be a dict with columns as keys, not {shown(value)}.")
    return dict(value)
