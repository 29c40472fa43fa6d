"""Queries as JSON values inside other documents, and back.

`{"kind": "count", "state": "walk", "window": [3, 9]}`; exact numbers are strings such as "1/2",
labels are written as in beliefs. A custom query keeps its name, its constant and a digest of its
code, not the code itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from quiltwork.beliefs.documents import labels_from_json
from quiltwork.errors import InvalidInputError
from quiltwork.exact import written_fraction
from quiltwork.queries.base import Query, read_query
from quiltwork.queries.cells import Count, Frequencies, Histogram, MostCommon, Top, Transitions
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.days import ByHour, TimePerDay
from quiltwork.queries.numbers import Mean, NumericMean, NumericSum, Sum

_PLACES = ("kind", "window", "runs")


def to_document(query: Query) -> dict[str, Any]:
    """Write a query as JSON values.

    >>> from quiltwork import queries
    >>> to_document(queries.count("walk").on(3, 9))
    {'kind': 'count', 'state': 'walk', 'window': [3, 9]}
    """
    read_query(query)
    whole = query.start == 1 and query.stop is None
    window: dict[str, Any] = {} if whole else {"window": [query.start, query.stop]}
    if query.runs:
        window = {"runs": [list(run) for run in query.runs]}
    return {"kind": query.kind, **query.parameters(), **window}


def from_document(document: Mapping[str, Any]) -> Query:
    """Read a query back.

    Raises:
        InvalidInputError: if the kind is unknown or a field is missing or wrong.
    """
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"A query is written as a JSON object, not {document!r}.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        raise InvalidInputError(f"{kind!r} is no kind of query; known are {', '.join(_READERS)}.")
    fields = {name: v for name, v in document.items() if name not in _PLACES}
    window = document.get("window", [1, None])
    if not isinstance(window, list) or len(window) != 2:
        raise InvalidInputError(f"A window is written as [start, stop], not {window!r}.")
    try:
        query = _READERS[kind](fields)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"The query of kind {kind!r} is incomplete: {error}.") from None
    return query.on_runs(document["runs"]) if "runs" in document else query.on(*window)


def _of_state(kind: Callable[..., Query]) -> Callable[[dict[str, Any]], Query]:
    def read(fields: dict[str, Any]) -> Query:
        (state,) = labels_from_json([fields.pop("state")])
        return kind(state=state, **fields)

    return read


def _over_states(kind: Callable[..., Query]) -> Callable[[dict[str, Any]], Query]:
    def read(fields: dict[str, Any]) -> Query:
        states = fields.pop("states", None)
        return kind(states=None if states is None else labels_from_json(states), **fields)

    return read


def _between_bounds(kind: Callable[..., Query]) -> Callable[[dict[str, Any]], Query]:
    def read(fields: dict[str, Any]) -> Query:
        return kind(lo=_exact(fields.pop("lo")), hi=_exact(fields.pop("hi")), **fields)

    return read


def _custom(fields: dict[str, Any]) -> Query:
    name, lipschitz = fields.pop("name"), _exact(fields.pop("lipschitz"))
    cells = fields.pop("cells", None)
    labels = None if cells is None else labels_from_json(cells)
    digest = fields.pop("digest", None)
    return CustomQuery(
        function=None,
        lipschitz=lipschitz,
        labels=labels,
        name=name,
        known_digest=digest,
        **fields,
    )


def _exact(text: Any) -> Fraction:
    return written_fraction(text, "A number of the query")


_READERS: dict[str, Callable[[dict[str, Any]], Query]] = {
    "count": _of_state(Count),
    "time_per_day": _of_state(TimePerDay),
    "by_hour": _over_states(ByHour),
    "top": _over_states(Top),
    "histogram": _over_states(Histogram),
    "frequencies": _over_states(Frequencies),
    "transitions": _over_states(Transitions),
    "most_common": _over_states(MostCommon),
    "sum": _between_bounds(Sum),
    "mean": _between_bounds(Mean),
    "numeric_sum": _between_bounds(NumericSum),
    "numeric_mean": _between_bounds(NumericMean),
    "custom": _custom,
}
