"""State labels: str, int, float, bool, None and tuples of them; validated and compared.

Labels are compared as Python compares them, so 1, 1.0 and True are one label: data read as 1.0
match a state given as 1, and a list of states with two of them is refused as a duplicate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from quiltwork.arguments import listed
from quiltwork.errors import InvalidInputError

Label: TypeAlias = "str | int | float | bool | tuple[Label, ...] | None"


def parse_label(value: Any, where: str) -> Label:
    """Return `value` as a plain Python label; NumPy scalars lose their wrapping.

    >>> parse_label(np.int64(3), "State 1")
    3
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidInputError(
                f"{where} is NaN, which is not equal to itself; use None or a word such as "
                "'missing' for a state of missing values."
            )
        return float(value) + 0.0
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidInputError(f"{where} is {value!r}, which is not valid Unicode text.")
        return str.__str__(value)
    if isinstance(value, tuple):
        return tuple(parse_label(part, where) for part in value)
    raise InvalidInputError(
        f"{where} is {value!r} of type {type(value).__name__}; a label is a str, int, float, "
        "bool, None or a tuple of them."
    )


def parse_states(states: Iterable[Any] | None, size: int) -> tuple[Label, ...]:
    """Return `size` distinct labels; None stands for 0..size−1."""
    if states is None:
        return tuple(range(size))
    labels = distinct_labels(states)
    if len(labels) != size:
        raise InvalidInputError(
            f"There are {len(labels)} states for {size} rows of the transition matrix; "
            "give one label per row."
        )
    return labels


def distinct_labels(states: Iterable[Any]) -> tuple[Label, ...]:
    """Return distinct labels, at least one, in the order given."""
    if isinstance(states, Set):
        raise InvalidInputError("states must be a list, not a set: their order matters.")
    values = listed(states, "states")
    labels = tuple(parse_label(value, f"State {i}") for i, value in enumerate(values, start=1))
    if not labels:
        raise InvalidInputError("states is empty; list the states, or leave it out.")
    _check_distinct(labels)
    return labels


def _check_distinct(labels: tuple[Label, ...]) -> None:
    """Raise InvalidInputError for two equal labels, naming both."""
    position: dict[Label, int] = {}
    for i, label in enumerate(labels):
        if label in position:
            first = labels[position[label]]
            hint = "" if repr(first) == repr(label) else " (in Python 1, 1.0 and True are equal)"
            raise InvalidInputError(
                f"States {position[label] + 1} and {i + 1} are the same label: {first!r} and "
                f"{label!r}{hint}; give every state its own."
            )
        position[label] = i


def sorted_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return labels of any types in one fixed order: None, numbers, text, tuples."""
    return tuple(sorted(labels, key=_order))


def _order(label: Any) -> tuple[Any, ...]:
    if label is None:
        return (0,)
    if isinstance(label, str):
        return (2, label)
    if isinstance(label, tuple):
        return (3, *map(_order, label))
    if isinstance(label, Real):
        return (1, label)
    return (4, type(label).__name__, str(label))  # a frame's cell may not be a label


def list_labels(labels: tuple[Label, ...], most: int = 4) -> str:
    """Return the first few labels for a text that people read, without quotation marks.

    >>> list_labels(("rest", "walk")), list_labels((0, 1, 2, 3, 4, 5))
    ('rest, walk', '0, 1, 2, 3 and 2 more')
    """
    shown = ", ".join(map(str, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"


def show_labels(labels: tuple[Label, ...], most: int = 4) -> str:
    """Return the first few labels for a message."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown}, … ({len(labels)} in all)"
