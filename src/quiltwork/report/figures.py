"""Charts drawn by matplotlib (the `plot` extra), onto given axes or as image files.

Figures are made without pyplot, so no global state is changed and threads do not interfere. Limits,
ticks and colours are those of the SVG drawing.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import shortened
from quiltwork.report.axes import Axis
from quiltwork.report.charts import (
    BarChart,
    Chart,
    IntervalChart,
    LineChart,
    MatrixChart,
    named_every,
    short,
)
from quiltwork.report.style import LIGHT
from quiltwork.report.svg import standalone_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = tuple(re.findall(r"--c\d:(#\w+)", LIGHT))
_RULE, _MUTED = (re.findall(rf"--{name}:(#\w+)", LIGHT)[0] for name in ("rule", "muted"))
_FORMATS = ("png", "svg", "pdf", "ps", "eps", "jpg", "jpeg", "tif", "tiff", "webp")
_WIDTH, _HEIGHT = 7.2, 4.2  # inches
_POINTS = 630  # of an axis, for the number of its ticks
_ROW, _MOST_HEIGHT = 0.32, 16.0
_LETTERS = 88  # of a legend's row


def available() -> bool:
    """Return whether the `plot` extra is installed."""
    return find_spec("matplotlib") is not None


def draw(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart onto axes, or onto those of a new figure; return the axes."""
    if ax is not None and not hasattr(ax, "set_title"):
        raise InvalidInputError(
            f"ax must be axes of matplotlib, not {shortened(ax)}; name other arguments, as in "
            "plot(confidence=0.9)."
        )
    axes: Any = figure_of(chart).axes[0] if ax is None else _drawn(chart, ax)
    return axes  # type: ignore[no-any-return]


def figure_of(*charts: Chart) -> Figure:
    """Draw charts side by side on a new figure."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    sizes = [_size(chart) for chart in charts]
    size = sum(width for width, _ in sizes), max(height for _, height in sizes)
    figure = Figure(figsize=size, layout="constrained")
    kind = {"axes_class": _displayed_axes()}
    places = figure.subplots(1, len(charts), squeeze=False, subplot_kw=kind)[0]
    for axes, chart in zip(places, charts, strict=True):
        _drawn(chart, axes)
    return figure


@cache
def _displayed_axes() -> type[Axes]:
    """Return a class of axes that notebooks display as their figure."""
    from matplotlib.axes import Axes

    class ShownAxes(Axes):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            figure: Any = self.figure
            figure.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

    return ShownAxes


def png(chart: Chart) -> bytes:
    """Draw a chart as a PNG image."""
    buffer = BytesIO()
    figure_of(chart).savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def check_figure_path(path: str) -> str:
    """Return the format of a figure's file name, if it can be drawn and the file can be written.

    For use before an answer is paid for. SVG is drawn without matplotlib.
    """
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in _FORMATS:
        raise InvalidInputError(
            f"{path!r} does not end in the name of a format for figures; use .png, .svg or .pdf."
        )
    if ending != "svg":
        _require_matplotlib()
    files.check_writable(path)
    return ending


def write_figure(path: str, *charts: Chart) -> None:
    """Write charts, side by side, in the format of the file name's ending."""
    ending = check_figure_path(path)
    if ending == "svg" and len(charts) == 1:
        files.write(path, standalone_svg(charts[0]))
        return
    buffer = BytesIO()
    figure_of(*charts).savefig(buffer, format=ending, dpi=150)
    files.write(path, buffer.getvalue())


def _require_matplotlib() -> None:
    if not available():
        raise UnsupportedError(
            "Figures need matplotlib; install it with: pip install 'quiltwork[plot]'."
        )


def _size(chart: Chart) -> tuple[float, float]:
    """Return width and height in inches."""
    if isinstance(chart, MatrixChart):
        return 5.2, 4.6
    if isinstance(chart, LineChart):
        return _WIDTH, _HEIGHT
    rows = len(chart.bars if isinstance(chart, BarChart) else chart.estimates)
    return _WIDTH, min(_MOST_HEIGHT, max(2.4, 1.4 + _ROW * rows))


def _drawn(chart: Chart, axes: Any) -> Any:
    axes.set_title(_plain(chart.title), loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    if isinstance(chart, IntervalChart):
        _intervals(axes, chart)
    elif isinstance(chart, LineChart):
        _lines(axes, chart)
    elif isinstance(chart, BarChart):
        _bars(axes, chart)
    else:
        _matrix(axes, chart)
    return axes


def _plain(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


def _scaled(axes: Any, side: str, axis: Axis) -> None:
    """Use the scale, limits and ticks of the SVG drawing."""
    getattr(axes, f"set_{side}scale")("log" if axis.logarithmic else "linear")
    getattr(axes, f"set_{side}lim")(axis.low, axis.high)
    getattr(axes, f"set_{side}ticks")([], minor=True)
    getattr(axes, f"set_{side}ticks")(axis.ticks(), [_plain(name) for name in axis.labels()])
    axes.grid(axis=side, color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)


def _rows(axes: Any, names: list[str], axis: Axis, quantity: str) -> None:
    """Name the rows of a chart from the top, and its quantity below."""
    axes.set_yticks(range(len(names)), [_plain(short(name)) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    _scaled(axes, "x", axis)
    axes.set_xlabel(_plain(quantity))


def _legend(axes: Any) -> None:
    """Draw the legend below the axes, in as many rows as needed."""
    from matplotlib.transforms import offset_copy

    names = axes.get_legend_handles_labels()[1]
    if not names:
        return
    longest = 5 + max(map(len, names))
    below = offset_copy(axes.transAxes, axes.figure, y=-0.5)
    axes.legend(
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=below,
        borderaxespad=0,
        ncols=max(1, min(len(names), _LETTERS // longest)),
        fontsize=9,
    )


def _intervals(axes: Any, chart: IntervalChart) -> None:
    rows, main, other = chart.estimates, COLOURS[0], COLOURS[1]
    places = list(range(len(rows)))
    axes.barh(places, [one.value for one in rows], height=0.5, color=main, alpha=0.16)

    def mark(name: str, at: dict[int, float], symbol: str, **style: Any) -> None:
        if at:
            axes.plot(list(at.values()), list(at), symbol, label=name, **style)

    for place, one in enumerate(rows):
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [place] * 2, color=main, linewidth=3, alpha=0.65)
    mark("released", {i: one.value for i, one in enumerate(rows)}, "o", color=main)
    truths = {i: one.truth for i, one in enumerate(rows) if one.truth is not None}
    mark("truth (simulated data)", truths, "D", color=other, fillstyle="none")
    _rows(axes, [one.label for one in rows], chart.scale(0, _POINTS), chart.axis)
    if truths:
        _legend(axes)


def _bars(axes: Any, chart: BarChart) -> None:
    for place, (name, value) in enumerate(chart.bars):
        hollow = name in chart.hollow
        style: dict[str, Any] = (
            {"facecolor": "none", "edgecolor": _MUTED, "linestyle": "--"}
            if hollow
            else {"color": COLOURS[0], "alpha": 0.75}
        )
        axes.barh(place, value, height=0.6, **style)
    _rows(axes, [name for name, _ in chart.bars], chart.scale(0, _POINTS), chart.axis)


def _lines(axes: Any, chart: LineChart) -> None:
    for i, one in enumerate(chart.lines):
        colour = COLOURS[i % len(COLOURS)]
        points = chart.visible(one)
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            "o" if one.marks else "--" if one.dashed else "-",
            color=colour,
            markersize=4.5,
            linewidth=1.3 if one.dashed else 1.8,
            label=_plain(one.name) or "_unnamed",
        )
        for (x, _), ends in zip(one.points, one.spread, strict=False):
            axes.plot([x, x], ends, color=colour, linewidth=1.2)
    _scaled(axes, "x", chart.across(0, _POINTS))
    _scaled(axes, "y", chart.up(0, _POINTS))
    axes.set_xlabel(_plain(chart.x_axis))
    axes.set_ylabel(_plain(chart.y_axis), rotation=90 if len(chart.y_axis) > 2 else 0)
    _legend(axes)


def _matrix(axes: Any, chart: MatrixChart) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("quiltwork", ["#ffffff", COLOURS[0]])
    values = [[abs(value) for value in row] for row in chart.values]
    aspect = "equal" if len(chart.columns) == len(chart.rows) else "auto"
    axes.imshow(values, cmap=shades, vmin=0, interpolation="nearest", aspect=aspect, alpha=0.75)
    for r, row in enumerate(chart.texts):
        for c, text in enumerate(row):
            axes.text(c, r, _plain(text), ha="center", va="center", fontsize=9)
    for side, names in (("x", chart.columns), ("y", chart.rows)):
        places = range(0, len(names), named_every(names))
        getattr(axes, f"set_{side}ticks")(places, [_plain(short(names[place])) for place in places])
    axes.set_xlabel(_plain(chart.column_axis))
    axes.set_ylabel(_plain(chart.row_axis))
