"""Parsers of arguments that are not numbers. Wrong types raise InvalidInputError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.wording import argument

Kind = TypeVar("Kind")


def flag(value: object, name: str) -> bool:
    """Return True or False, also from NumPy; a number or an array is refused.

    >>> flag(1, "exact")
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: exact must be True or False, not 1.
    """
    if type(value).__name__ in ("bool", "bool_") and getattr(value, "ndim", 0) == 0:
        return bool(value)
    raise InvalidInputError(f"{argument(name)} must be True or False, not {shortened(value)}.")


def choice(value: object, allowed: Sequence[str], name: str) -> str:
    """Return one of a few allowed words.

    >>> choice("mean", ("mean", "last"), "rule")
    'mean'
    """
    if isinstance(value, str) and value in allowed:
        return value
    words = " or ".join(filter(None, [", ".join(map(repr, allowed[:-1])), repr(allowed[-1])]))
    raise InvalidInputError(f"{argument(name)} must be {words}, not {shortened(value)}.")


def instance(value: object, kind: type[Kind], name: str) -> Kind:
    """Return an object of the given class.

    >>> instance("x", int, "the number")
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: the number must be of type int, not 'x'.
    """
    if isinstance(value, kind):
        return value
    wanted = "text" if kind is str else f"of type {kind.__name__}"
    raise InvalidInputError(f"{argument(name)} must be {wanted}, not {shortened(value)}.")


def listed(values: Any, name: str) -> list[Any]:
    """Return the items of a list, tuple, array or other iterable.

    Raises:
        InvalidInputError: for text, a mapping, and anything that is not iterable.
    """
    if not isinstance(values, (str, bytes, Mapping)) and isinstance(values, Iterable):
        try:
            return list(values)
        except TypeError:  # an array without dimensions
            pass
    raise InvalidInputError(f"{argument(name)} must be a list, not {shortened(values)}.")


def mapping_by_column(value: Any, name: str) -> dict[str, Any]:
    """Return declarations by column as a dict; empty for None.

    Raises:
        InvalidInputError: for anything but a dict.
    """
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    raise InvalidInputError(
        f"{argument(name)} must be a dict with columns as keys, not {shortened(value)}."
    )


def hashable(value: object) -> bool:
    """Return whether a value can be a label or a key; a list, or a tuple with one, cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
