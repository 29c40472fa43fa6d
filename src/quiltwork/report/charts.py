"""Charts as plain data: their content, not their drawing.

`svg` draws them for pages, `figures` with matplotlib for notebooks and image files.

Every chart has a `title` and a `description`, which together are its alternative text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from quiltwork.report.axes import Axis, axis_for


@dataclass(frozen=True)
class Estimate:
    """A released number with its interval, and the true value where data are simulated."""

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

    def scale(self, start: float, stop: float) -> Axis:
        """Return the axis of the estimates."""
        ends = [(row.value, row.low, row.high, row.truth) for row in self.estimates]
        values = [value for row in ends for value in row if value is not None]
        return axis_for(values, start, stop, logarithmic=False, zero=True)


@dataclass(frozen=True)
class BarChart:
    """Named quantities, one bar per row, on one axis from 0 or a logarithmic one.

    Bars with a name in `hollow` are drawn as outlines, for values without a guarantee.
    """

    title: str
    description: str
    axis: str
    bars: tuple[tuple[str, float], ...]
    log: bool = False
    hollow: tuple[str, ...] = ()

    def scale(self, start: float, stop: float) -> Axis:
        """Return the axis of the quantities."""
        values = [value for _, value in self.bars]
        return axis_for(values, start, stop, logarithmic=self.log, zero=not self.log)


@dataclass(frozen=True)
class Line:
    """Points (x, y) with a name: joined by a line, a `dashed` one, or as dots if `marks`.

    `spread` gives each point's error bar as (low, high), or is empty.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    marks: bool = False
    spread: tuple[tuple[float, float], ...] = ()
    dashed: bool = False


@dataclass(frozen=True)
class LineChart:
    """Several lines over one x axis; each axis is linear or logarithmic.

    With `x_names`, the values 0, 1, … of the x axis are labelled by these names.
    """

    title: str
    description: str
    x_axis: str
    y_axis: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    x_names: tuple[str, ...] = ()

    def across(self, start: float, stop: float) -> Axis:
        """Return the x axis."""
        if self.x_names:
            return Axis(-0.5, len(self.x_names) - 0.5, start, stop, names=self.x_names)
        xs = [x for line in self.lines for x, _ in line.points]
        return axis_for(xs, start, stop, logarithmic=self.log_x)

    def up(self, start: float, stop: float) -> Axis:
        """Return the y axis."""
        ys = [y for line in self.lines for _, y in line.points]
        ys += [end for line in self.lines for ends in line.spread for end in ends]
        return axis_for(ys, start, stop, logarithmic=self.log_y, zero=not self.log_y)

    def visible(self, line: Line) -> tuple[tuple[float, float], ...]:
        """Return the points that can be drawn: finite ones, above 0 on a logarithmic axis."""
        return tuple(
            (x, y)
            for x, y in line.points
            if math.isfinite(x) and math.isfinite(y)
            if (x > 0 or not self.log_x) and (y > 0 or not self.log_y)
        )


def steps(starts: Iterable[float], stop: float, values: Iterable[float]) -> Line:
    """Return an unnamed step line that keeps each value from its start to the next start."""
    edges = [*map(float, starts), float(stop)]
    return Line(
        "",
        tuple(
            (edge, float(value))
            for index, value in enumerate(values)
            for edge in edges[index : index + 2]
        ),
    )


def level(name: str, at: float, others: Iterable[Line]) -> Line:
    """Return a dashed horizontal line across the range of other lines."""
    xs = [x for line in others for x, _ in line.points]
    return Line(name, ((min(xs), at), (max(xs), at)), dashed=True)


@dataclass(frozen=True)
class MatrixChart:
    """A matrix as a heat map, with a text in every cell unless `texts` is empty.

    `values` determine the shades alone.
    """

    title: str
    description: str
    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    texts: tuple[tuple[str, ...], ...]


_MOST_NAMES = 12
_MOST_LETTERS = 39


def short(name: str) -> str:
    """Shorten a name to 39 characters.

    >>> short("a state with a rather long name that nobody shortened")
    'a state with a rather long name that n…'
    """
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def named_every(names: Sequence[str]) -> int:
    """Return k such that every k-th row or column of a matrix has room for its name.

    >>> named_every(["x"] * 8), named_every(["x"] * 401)
    (1, 50)
    """
    round_numbers = (unit * int("1" + "0" * e) for e in count() for unit in (1, 2, 5))
    return next(every for every in round_numbers if every * _MOST_NAMES >= len(names))


Chart: TypeAlias = IntervalChart | LineChart | MatrixChart | BarChart
