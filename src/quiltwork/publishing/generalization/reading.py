"""Which original values a published text covers, for a provider that has only its own rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.encoding import Column
from quiltwork.publishing.generalization.hierarchies import leaf_text
from quiltwork.publishing.generalization.labels import Label, parse_label, value_text

_DURATION = re.compile(r"(?:(-?\d+) days?, )?(\d+):(\d+):(\d+(?:\.\d+)?)")


def covers(text: Any, column: Column, order: Sequence[Any] = ()) -> NDArray[np.bool_]:
    """Tell which values of a column a published text covers; stars cover what they stand for.

    `order` is the declared order of the column, which may name values that do not occur in it.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> covers("20..30", ages).tolist(), covers("*", ages).tolist(), covers("2*", ages).tolist()
    ([True, True, False], [True, True, True], [True, True, False])
    """
    if text is None:
        return np.array([value is None for value in column.values])
    written = value_text(text) if not isinstance(text, str) else text.strip()
    label = parse_label(written)
    under = _leaves_under(written, column)
    place = {leaf_text(value): i for i, value in enumerate(order)}
    return np.array(
        [_inside(value, written, label, under, column, place) for value in column.values]
    )


def duration(text: str) -> timedelta | None:
    """Read a duration as Python writes it.

    >>> duration("1 day, 2:30:00") == timedelta(days=1, hours=2.5), duration("soon")
    (True, None)
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = found.groups()
    return timedelta(int(days or 0), float(seconds), 0, 0, int(minutes), int(hours))


def _leaves_under(text: str, column: Column) -> set[str]:
    if column.hierarchy is None:
        return set()
    return {path[0] for path in column.hierarchy.paths if text in path}


def _inside(
    value: Any, text: str, label: Label, under: set[str], column: Column, place: dict[str, int]
) -> bool:
    if value is None:
        return label.missing
    if leaf_text(value) in under or value_text(value) == text:
        return True
    if label.form == "set":
        return leaf_text(value) in label.values
    if text.endswith("*") and (len(leaf_text(value)) == len(text) or text.count("*") == 1):
        return leaf_text(value).startswith(text.rstrip("*"))
    return bool(label.values) and _between(value, label.values[0], label.values[1], column, place)


def _between(value: Any, low: str, high: str, column: Column, place: dict[str, int]) -> bool:
    if column.kind == "numeric":
        try:
            return float(low) <= float(value) <= float(high)
        except ValueError:
            return False
    if place:
        here = place[leaf_text(value)]
        return place.get(low, here + 1) <= here <= place.get(high, here - 1)
    if isinstance(value, timedelta):
        ends = duration(low), duration(high)
        return ends[0] is not None and ends[1] is not None and ends[0] <= value <= ends[1]
    if column.kind == "ordinal":
        return low <= str(value) <= high
    return low == high == leaf_text(value)
