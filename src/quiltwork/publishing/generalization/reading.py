"""Which original values a published text covers, for those who hold original rows and the texts.

Values and texts are compared as they are written: 31, 31.0 and `31` are one, and so are a yes-or-no
and the words `true` and `false` that a file has for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.publishing.encoding import Column
from quiltwork.publishing.generalization.hierarchies import leaf_text
from quiltwork.publishing.generalization.labels import MISSING, Label, parse_label, value_text

Codes = NDArray[np.int64]
_DURATION = re.compile(r"(?:(-?\d+) days?, )?(\d+):(\d+):(\d+(?:\.\d+)?)")
_TRUTH = {"true", "false"}


def written(value: Any) -> Any:
    """Return a value as it is compared with those of another file: text, or tuples of texts.

    >>> written(31.0), written("31"), written(True), written(("a", None))
    ('31', '31', 'true', ('a', None))
    """
    if isinstance(value, tuple):
        return tuple(map(written, value))
    if value is None:
        return None
    text = leaf_text(float(value) if isinstance(value, Decimal) else value)
    return text.lower() if text.lower() in _TRUTH else text


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the published texts of one original column.

    Attributes:
        column: the original values; a missing one is the last.
        order: the declared order of the column, which may name values that do not occur in it.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> [Reader(ages).codes(text).tolist() for text in ("20..30", "*", "2*", "{20, 31}")]
    [[0, 1], [0, 1, 2], [0, 1], [0, 2]]
    """

    column: Column
    order: Sequence[Any] = ()

    def codes(self, text: Any) -> Codes:
        """Return the codes of the values that a text covers; stars cover what they stand for."""
        if text is None:
            return np.array(self._missing, dtype=np.int64)
        plain = text.strip() if isinstance(text, str) else MISSING
        if plain != MISSING and plain in self._under:  # a label may look like a range
            return np.array(self._under[plain], dtype=np.int64)
        label = label_of(text)
        found = [*self._missing] if label.missing else []
        if label.form == "range" and label.values[0] != label.values[1]:
            found += self._between(*label.values)
        else:
            for value in dict.fromkeys(label.values):
                found += self._one(value)
        return np.array(found, dtype=np.int64)

    @cached_property
    def _missing(self) -> list[int]:
        return [code for code, value in enumerate(self.column.values) if value is None]

    @cached_property
    def _known(self) -> dict[int, Any]:
        return {code: value for code, value in enumerate(self.column.values) if value is not None}

    @cached_property
    def _code_of(self) -> dict[str, int]:
        codes = {str(value): code for code, value in self._known.items()}
        return codes | {written(value): code for code, value in self._known.items()}

    @cached_property
    def _under(self) -> Mapping[str, list[int]]:
        """The codes under each label of the hierarchy."""
        found: dict[str, list[int]] = {}
        tree = self.column.hierarchy
        if tree is not None:
            for code, value in self._known.items():
                for label in dict.fromkeys(tree.paths[tree.place[leaf_text(value)]]):
                    found.setdefault(label, []).append(code)
        return found

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Where the values of an order lie; those of the column if none was declared."""
        values = self.order or list(self._known.values())
        return {leaf_text(value): rank for rank, value in enumerate(values)}

    def _one(self, text: str) -> list[int]:
        if text in self._under:
            return self._under[text]
        code = self._code_of.get(text, self._code_of.get(written(text)))
        if code is not None:
            return [code]
        if text.endswith("*"):
            return self._masked(text)
        return self._numbers(text, text) if self.column.kind == "numeric" else []

    def _masked(self, text: str) -> list[int]:
        beginning, any_length = text.rstrip("*"), text.count("*") == 1
        values = {code: leaf_text(value) for code, value in self._known.items()}
        return [
            code
            for code, value in values.items()
            if value.startswith(beginning) and (any_length or len(value) == len(text))
        ]

    def _between(self, low: str, high: str) -> list[int]:
        if self.column.kind == "numeric":
            return self._numbers(low, high)
        if self.column.kind != "ordinal":
            return []
        some = next(iter(self._known.values()), None)
        if isinstance(some, timedelta) and not self.order:
            ends = duration(low), duration(high)
            if ends[0] is None or ends[1] is None:
                return []
            return [code for code, value in self._known.items() if ends[0] <= value <= ends[1]]
        if low in self._ranks and high in self._ranks:
            first, last = self._ranks[low], self._ranks[high]
            ranks = {code: self._ranks[leaf_text(value)] for code, value in self._known.items()}
            return [code for code, rank in ranks.items() if first <= rank <= last]
        if self.order or isinstance(some, str):
            return []
        return [code for code, value in self._known.items() if low <= str(value) <= high]

    def _numbers(self, low: str, high: str) -> list[int]:
        try:
            ends = float(low), float(high)
        except ValueError:
            return []
        numbers = self.column.numbers
        inside: list[int] = np.flatnonzero((numbers >= ends[0]) & (numbers <= ends[1])).tolist()
        return inside


def label_of(text: Any) -> Label:
    """Read a published text; one that is none is a value as it stands, of a table made elsewhere.

    >>> label_of("20..25").values, label_of('"x').values
    (('20', '25'), ('"x', '"x'))
    """
    plain = text.strip() if isinstance(text, str) else value_text(text)
    try:
        return parse_label(plain)
    except InvalidInputError:
        return Label("range", (plain, plain))


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
