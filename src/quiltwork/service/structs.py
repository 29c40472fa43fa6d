"""The API's documents: structs that refuse unknown fields, and a strict JSON parser.

`parse_document` also refuses what msgspec accepts or JSON leaves open: repeated keys, numbers that
are not normal floats (NaN, infinite, subnormal), deep nesting, lone surrogates, and the zero
character, which PostgreSQL cannot store.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import parse_fraction, positive_fraction
from quiltwork.service.problems import Problem

Item = TypeVar("Item")
Kind = TypeVar("Kind")

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)"  # Python's $ alone lets a last newline in
Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=NAME, max_length=100)]
"""The name of a dataset, a member or a table; it needs no escaping in a path."""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1000)]
Number: TypeAlias = int | float | Annotated[str, msgspec.Meta(max_length=100)]
"""An exact number: 1, 0.1 (read as one tenth) or "1/3"."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Document(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False
):
    """Base of all request and response bodies."""


class Page(Document, Generic[Item], frozen=True):
    """One page of a list; `next` is the `after=` of the following page, None on the last."""

    items: list[Item]
    next: str | None = None

    def map(self, convert: Callable[[Item], Kind]) -> Page[Kind]:
        """Return the page with every item as_struct."""
        return Page(items=[convert(item) for item in self.items], next=self.next)


class PageQuery(Document, frozen=True):
    """Query parameters of a list."""

    after: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


def paged(items: list[Item], limit: int, cursor: Callable[[Item], object]) -> Page[Item]:
    """Return a page from up to `limit` + 1 items; the extra item means that more follow."""
    page = items[:limit]
    return Page(items=page, next=str(cursor(page[-1])) if len(items) > limit else None)


def copy_fields(kind: type[Kind], source: Any, /, **others: Any) -> Kind:
    """Return a record whose fields are those of `source` with the same names, and `others`."""
    fields = getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__  # type: ignore[attr-defined]
    shared = (name for name in fields if name not in others)
    return kind(**{name: getattr(source, name) for name in shared}, **others)


def exact_number(value: Number, name: str) -> Fraction:
    """Return a positive number of a document as an exact fraction."""
    number = parse_fraction(value) if isinstance(value, str) else value
    if number is None:
        raise InvalidInputError(f"{name} must be a number, or a text such as '1/3'.")
    return positive_fraction(number, name)


def parse_document(text: bytes, kind: type[Kind], depth: int) -> Kind:
    """Parse a JSON body into a struct; 400 if it is not JSON, 422 if it does not fit the struct."""
    try:
        document = files.parse(text.decode("utf-8"))
    except ValueError as error:
        raise Problem(400, "bad-request", f"The body is not valid JSON. {error}") from None
    _check(document, depth)
    return as_struct(document, kind)


def as_struct(document: Any, kind: type[Kind], strict: bool = True) -> Kind:
    """Convert plain values to a struct; without `strict` texts may stand for numbers."""
    try:
        return msgspec.convert(document, kind, strict=strict)
    except msgspec.ValidationError as error:
        detail = f"{error}.{_possible_values(str(error), kind)}"
        raise Problem(422, "invalid-input", detail) from None
    except RecursionError:
        raise _refused("it is nested too deeply") from None


def _possible_values(message: str, kind: Any) -> str:
    """Return the sentence that lists the values of the choice that a message is about, if any."""
    if not message.startswith("Invalid enum value"):
        return ""
    types = [inspect.type_info(kind)]
    # A path such as $.rules.types[...] leads from the document to the choice.
    for step in re.findall(r"\.(\w+)|\[", message.rpartition("`$")[2]):
        types = [part for outer in _alternatives(types) for part in _inside(outer, step)]
    choices = [kind for kind in _alternatives(types) if isinstance(kind, inspect.LiteralType)]
    values = [value for choice in choices for value in choice.values]
    return f" Possible values: {', '.join(map(str, values))}." if values else ""


def _alternatives(types: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    """Yield the types, and instead of each union the types that it unites."""
    for kind in types:
        yield from kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _inside(kind: inspect.Type, field: str) -> list[inspect.Type]:
    """Return the type of a struct's field, or of the items of a container if `field` is empty."""
    if isinstance(kind, inspect.StructType):
        return [part.type for part in kind.fields if part.encode_name == field]
    if isinstance(kind, inspect.DictType):
        return [kind.value_type]
    return [kind.item_type] if isinstance(kind, inspect.CollectionType) else []


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _refused("a text holds the zero character or a lone surrogate")
    elif isinstance(value, float):
        if not math.isfinite(value) or 0 < abs(value) < sys.float_info.min:
            raise _refused("a number is outside the range of normal floats")
    elif isinstance(value, list | dict):
        if not depth:
            raise _refused("it is nested too deeply")
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(part, depth - 1)


def _refused(reason: str) -> Problem:
    return Problem(422, "invalid-input", f"The document was refused: {reason}.")
