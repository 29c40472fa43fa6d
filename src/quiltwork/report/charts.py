"""Figures as plain data: what is shown, not how. `draw` makes SVG of them, `plots` makes PNG.

Every chart has a `title` and a `description`, which together are its text for people who do not
see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from quiltwork.errors import InvalidInputError


@dataclass(frozen=True)
class Estimate:
    """One released number with its interval, and the true value where data are simulated."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    truth: float | None = None


@dataclass(frozen=True)
class IntervalChart:
    """Estimates with their intervals, one per row, on one axis from 0."""

    title: str
    description: str
    axis: str
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class BarChart:
    """Named quantities, one bar per row, on one axis from 0."""

    title: str
    description: str
    axis: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Series:
    """Points (x, y) under one name; joined by a line unless `marks` asks for dots.

    `spread` gives each point's error bar as (low, high), or is empty.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    marks: bool = False
    spread: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class LineChart:
    """Several series over one x axis, each axis linear or logarithmic."""

    title: str
    description: str
    x_axis: str
    y_axis: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class MatrixChart:
    """A matrix as a heat map, with a text in every cell."""

    title: str
    description: str
    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    texts: tuple[tuple[str, ...], ...]


Chart: TypeAlias = IntervalChart | LineChart | MatrixChart | BarChart

_KINDS: dict[str, type[Any]] = {
    "intervals": IntervalChart,
    "lines": LineChart,
    "matrix": MatrixChart,
    "bars": BarChart,
}


def chart_to_dict(chart: Chart) -> dict[str, Any]:
    """Write a chart as JSON-ready data with its kind."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(chart, cls))
    return {"kind": kind, **asdict(chart)}


def chart_from_dict(data: Mapping[str, Any]) -> Chart:
    """Read a chart back.

    Raises:
        InvalidInputError: if the kind is unknown or a field is missing.
    """
    fields = {name: _tuples(value) for name, value in data.items() if name != "kind"}
    kind = data.get("kind")
    try:
        if kind == "intervals":
            fields["estimates"] = tuple(Estimate(**one) for one in fields["estimates"])
        if kind == "lines":
            fields["series"] = tuple(
                Series(
                    one["name"],
                    _tuples(one["points"]),
                    one["marks"],
                    _tuples(one.get("spread", ())),
                )
                for one in fields["series"]
            )
        chart: Chart = _KINDS[str(kind)](**fields)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"Not a chart: {error} in a figure of kind {kind!r}; write the file again."
        ) from None
    return chart


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
