"""The result of an experiment as plain, frozen data that can be stored and shown again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from quiltwork.errors import InvalidInputError
from quiltwork.report.charts import (
    BarChart,
    Chart,
    Estimate,
    IntervalChart,
    Line,
    LineChart,
    MatrixChart,
)

Value: TypeAlias = int | float | str
"""A number, or text such as `"2/3"` for an exact one."""


@dataclass(frozen=True)
class Row:
    """A computed quantity, beside the published value if a paper prints one."""

    quantity: str
    ours: Value
    published: Value | None = None
    unit: str = ""
    note: str = ""

    def ours_text(self) -> str:
        """Show our value, floats to seven digits."""
        return _text(self.ours)

    def published_text(self) -> str:
        """Show the published value, if there is one."""
        return "" if self.published is None else _text(self.published)

    def comparison(self) -> str:
        """Return the relative difference of ours from the published value, as text.

        >>> Row("scale", 12.934051, published=13.0219).comparison()
        '-0.675 %'
        >>> Row("x(0,0)", "2/3", published="2/3").comparison()
        'equal'
        """
        if self.published is None:
            return ""
        if self.ours == self.published:
            return "equal"
        if isinstance(self.ours, str) or isinstance(self.published, str):
            return "differs"
        return f"{100 * (self.ours / self.published - 1):+.3g} %" if self.published else "differs"


@dataclass(frozen=True)
class Figure:
    """A chart and the name of its files."""

    name: str
    chart: Chart


@dataclass(frozen=True)
class Sheet:
    """A table that is written as CSV, and the name of its file."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Findings:
    """The results of an experiment; `summary` says in a sentence or two what they show."""

    summary: str
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...] = ()
    sheets: tuple[Sheet, ...] = ()


def result_to_dict(result: Findings) -> dict[str, Any]:
    """Return a result as JSON-ready data."""
    return {
        "summary": result.summary,
        "rows": [asdict(row) for row in result.rows],
        "figures": [{"name": f.name, "chart": chart_to_dict(f.chart)} for f in result.figures],
        "sheets": [asdict(sheet) for sheet in result.sheets],
    }


def result_from_dict(data: Mapping[str, Any]) -> Findings:
    """Parse a result that `result_to_dict` returned.

    Raises:
        InvalidInputError: if fields are missing or unknown.
    """
    try:
        return Findings(
            data["summary"],
            tuple(Row(**row) for row in data["rows"]),
            tuple(Figure(f["name"], chart_from_dict(f["chart"])) for f in data["figures"]),
            tuple(
                Sheet(s["name"], tuple(s["header"]), tuple(map(tuple, s["rows"])))
                for s in data["sheets"]
            ),
        )
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"Not an experiment's result: {error}; run the experiment again with --fresh."
        ) from None


def _text(value: Value) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


_KINDS: dict[str, type[Any]] = {
    "intervals": IntervalChart,
    "lines": LineChart,
    "matrix": MatrixChart,
    "bars": BarChart,
}


def chart_to_dict(chart: Chart) -> dict[str, Any]:
    """Return a chart as JSON-ready data with its kind."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(chart, cls))
    return {"kind": kind, **asdict(chart)}


def chart_from_dict(data: Mapping[str, Any]) -> Chart:
    """Parse a chart that `chart_to_dict` returned."""
    fields = {name: _tuples(value) for name, value in data.items() if name != "kind"}
    kind = data.get("kind")
    try:
        if kind == "intervals":
            fields["estimates"] = tuple(Estimate(**body) for body in fields["estimates"])
        if kind == "lines":
            fields["lines"] = tuple(
                Line(**{name: _tuples(value) for name, value in line.items()})
                for line in fields["lines"]
            )
        chart: Chart = _KINDS[str(kind)](**fields)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"Not a chart: {error} in a figure of kind {kind!r}; write the file again."
        ) from None
    return chart


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
