"""Queries as JSON values inside other documents, and back.

`{"kind": "count", "state": "walk", "window": [3, 9]}`; exact numbers are strings such as "1/2",
labels are written as in beliefs. A custom query keeps its name, its constant and its version, not
the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from quiltwork.beliefs.documents import labels_from_json
from quiltwork.errors import InvalidInputError
from quiltwork.exact import parse_stored_fraction, shortened
from quiltwork.queries.cells import Count, Frequencies, Histogram, MostCommon, Top, Transitions
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.days import ByHour, TimePerDay
from quiltwork.queries.numbers import Mean, NumericMean, NumericSum, Sum
from quiltwork.queries.query import Query, parse_query

_COMMON = ("kind", "window", "runs")
"""Fields that are not arguments of the query's class."""


def to_document(query: Query) -> dict[str, Any]:
    """Return a query as JSON values.

    >>> from quiltwork import queries
    >>> to_document(queries.count("walk").on(3, 9))
    {'kind': 'count', 'state': 'walk', 'window': [3, 9]}
    """
    parse_query(query)
    whole = query.start == 1 and query.stop is None
    window: dict[str, Any] = {} if whole else {"window": [query.start, query.stop]}
    if query.runs:
        window = {"runs": [list(run) for run in query.runs]}
    return {"kind": query.kind, **query.parameters(), **window}


def from_document(document: Mapping[str, Any]) -> Query:
    """Return the query of a document that `to_document` wrote.

    Raises:
        InvalidInputError: if the kind is unknown, or a field is missing or wrong.

    >>> from_document({"kind": "count", "state": "walk"}).state
    'walk'
    """
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"A query must be a JSON object, not {shortened(document)}.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInputError(
            f"{shortened(kind)} is not a kind of query. Known kinds: {', '.join(_KINDS)}."
        )
    fields = {name: v for name, v in document.items() if name not in _COMMON}
    if kind == CustomQuery.kind:
        cells = {"labels": fields.pop("cells")} if "cells" in fields else {}
        fields |= {"function": None, "name": fields.get("name"), **cells}
    window = document.get("window", [1, None])
    if not isinstance(window, list) or len(window) != 2:
        raise InvalidInputError(f"A window must be [start, stop], not {shortened(window)}.")
    try:
        query = _KINDS[kind](**{name: _READERS.get(name, _same)(v) for name, v in fields.items()})
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"The query of kind {kind!r} is incomplete: {error}.") from None
    return query.on_runs(document["runs"]) if "runs" in document else query.on(*window)


def _same(value: Any) -> Any:
    return value


def _exact(text: Any) -> Fraction:
    return parse_stored_fraction(text, "A number of the query")


_KINDS: dict[str, type[Query]] = {
    kind.kind: kind
    for kind in (
        *(Count, TimePerDay, ByHour, Top, Histogram, Frequencies, Transitions, MostCommon),
        *(Sum, Mean, NumericSum, NumericMean, CustomQuery),
    )
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "state": lambda label: labels_from_json([label])[0],
    **dict.fromkeys(("states", "labels"), labels_from_json),
    **dict.fromkeys(("lo", "hi", "lipschitz"), _exact),
}
"""Parsers of the fields that are not plain JSON values."""
