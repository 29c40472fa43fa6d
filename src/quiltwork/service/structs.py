"""Documents of the API: structs that refuse what they do not know, and a reader that is strict.

`read_document` also refuses what msgspec lets through or JSON leaves open: keys that stand twice,
numbers that are no ordinary floats (NaN, infinite, subnormal), deep nesting, half surrogates and
the zero character, which not every database can hold.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import parse_fraction, positive_fraction
from quiltwork.service.problems import Problem

Item = TypeVar("Item")
Kind = TypeVar("Kind")

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)"  # Python's $ alone lets a last newline in
Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=NAME, max_length=100)]
"""A dataset, a member, a table: fit for a path."""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1000)]
Number: TypeAlias = int | float | Annotated[str, msgspec.Meta(max_length=100)]
"""An exact number: 1, 0.1 (read as one tenth) or "1/3"."""

_NO_LETTER = re.compile("[\0\ud800-\udfff]")


class Document(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False
):
    """Base of what is sent and answered."""


class Page(Document, Generic[Item], frozen=True):
    """A page of a list: ask for the next with `after=` its `next`."""

    items: list[Item]
    next: str | None = None

    def shown(self, each: Callable[[Item], Kind]) -> Page[Kind]:
        """Return the page with its items as they are told."""
        return Page(items=[each(one) for one in self.items], next=self.next)


class PageQuery(Document, frozen=True):
    """How a list is asked for."""

    after: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


def paged(items: list[Item], limit: int, cursor: Callable[[Item], object]) -> Page[Item]:
    """Return a page from `limit` items or one more, which says that more follow."""
    page = items[:limit]
    return Page(items=page, next=str(cursor(page[-1])) if len(items) > limit else None)


def shown_as(kind: type[Kind], source: Any, /, **others: Any) -> Kind:
    """Return a record with the fields that `source` has under the same names, and `others`."""
    fields = getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__  # type: ignore[attr-defined]
    named = (name for name in fields if name not in others)
    return kind(**{name: getattr(source, name) for name in named}, **others)


def exact_number(value: Number, name: str) -> Fraction:
    """Read a positive number of a document exactly."""
    found = parse_fraction(value) if isinstance(value, str) else value
    if found is None:
        raise InvalidInputError(f"{name} is written as a number, or as text such as 1/3.")
    return positive_fraction(found, name)


def read_document(text: bytes, kind: type[Kind], depth: int) -> Kind:
    """Read a JSON document as a struct; 400 for what is no JSON, 422 for another document."""
    try:
        found = files.parse(text.decode("utf-8"))
    except ValueError as error:
        raise Problem(400, "bad-request", f"The body cannot be read. {error}") from None
    _check(found, depth)
    return converted(found, kind)


def converted(found: Any, kind: type[Kind], strict: bool = True) -> Kind:
    """Read plain values as a struct; texts as numbers too if not `strict`."""
    try:
        return msgspec.convert(found, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid-input", f"{error}.") from None
    except RecursionError:
        raise _not_taken("it is nested too deeply") from None


def _check(found: Any, depth: int) -> None:
    if isinstance(found, str):
        if _NO_LETTER.search(found):
            raise _not_taken("it has the zero character, or half a pair of surrogates")
    elif isinstance(found, float):
        if not math.isfinite(found) or 0 < abs(found) < sys.float_info.min:
            raise _not_taken("a number is outside the range of ordinary floats")
    elif isinstance(found, list | dict):
        if not depth:
            raise _not_taken("it is nested too deeply")
        for part in (*found, *found.values()) if isinstance(found, dict) else found:
            _check(part, depth - 1)


def _not_taken(reason: str) -> Problem:
    return Problem(422, "invalid-input", f"The document is not taken: {reason}.")
