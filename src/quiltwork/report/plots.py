"""With the `plot` extra: charts as PNG files, and matplotlib figures on a page.

Figures are made without pyplot, so that nothing global is touched and threads do not meet.
"""

from __future__ import annotations

import html
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.report.axes import axis_for, label
from quiltwork.report.charts import BarChart, Chart, IntervalChart, LineChart, MatrixChart
from quiltwork.report.elements import Html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#23667a", "#b0692a", "#5b7a3a", "#8a4f7d", "#7a7466", "#a8323e")


def available() -> bool:
    """Tell whether the `plot` extra is installed."""
    return find_spec("matplotlib") is not None


def png(chart: Chart) -> bytes:
    """Draw a chart as a PNG image.

    Raises:
        UnsupportedError: without the `plot` extra.
    """
    buffer = BytesIO()
    chart_figure(chart).savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def check_figure_path(path: str) -> str:
    """Return the format that a figure's file name asks for, if it can be drawn and written there.

    For use before an answer is paid for.

    Raises:
        InvalidInputError: if the name has no ending, or that of no format.
        StorageError: if nothing can be written there.
        UnsupportedError: without the `plot` extra.
    """
    _require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in FigureCanvasBase.filetypes:
        raise InvalidInputError(
            f"{path!r} does not end in the name of a format for figures; use .png, .svg or .pdf."
        )
    files.check_writable(path)
    return ending


def write_figure(figure: Figure, path: str) -> None:
    """Write a figure in the format of the file name's ending; see `check_figure_path`."""
    buffer = BytesIO()
    figure.savefig(buffer, format=check_figure_path(path), dpi=150)
    files.write(path, buffer.getvalue())


def embedded(figure: Figure, alternative: str) -> Html:
    """Put a matplotlib figure on a page: an SVG image within the page itself, text as outlines.

    It is an image of its own, so that the names inside two figures never clash.
    """
    from base64 import b64encode

    import matplotlib

    buffer = BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "quiltwork"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = b64encode(buffer.getvalue()).decode("ascii")
    return Html(
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alternative)}">'
        "</figure>"
    )


def new_figure(width: float = 7.2, height: float = 4.2) -> Figure:
    """Return an empty figure of a size in inches.

    Raises:
        UnsupportedError: without the `plot` extra.
    """
    _require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def titled_axes(title: str, width: float = 7.2, height: float = 4.2) -> tuple[Figure, Any]:
    """Return a figure with one pair of axes in the product's style, and these; see `new_figure`."""
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_prop_cycle(color=COLOURS)
    return figure, axes


def chart_figure(chart: Chart) -> Figure:
    """Draw a chart with matplotlib.

    Raises:
        UnsupportedError: without the `plot` extra.
    """
    figure, axes = titled_axes(chart.title)
    if isinstance(chart, IntervalChart):
        _intervals(axes, chart)
    elif isinstance(chart, LineChart):
        _lines(axes, chart)
    elif isinstance(chart, BarChart):
        _bars(axes, chart)
    else:
        _matrix(axes, chart)
    return figure


def _require_matplotlib() -> None:
    if not available():
        raise UnsupportedError(
            "Figures need matplotlib; install it with: pip install 'quiltwork[plot]'."
        )


def _intervals(axes: Any, chart: IntervalChart) -> None:
    places = range(len(chart.estimates))
    axes.barh(places, [one.value for one in chart.estimates], color=COLOURS[0], alpha=0.2)
    for place, one in zip(places, chart.estimates, strict=True):
        if one.low is not None and one.high is not None:
            axes.plot([one.low, one.high], [place, place], color=COLOURS[0], linewidth=2.5)
        axes.plot([one.value], [place], "o", color=COLOURS[0])
        if one.truth is not None:
            axes.plot([one.truth], [place], "D", color=COLOURS[1], fillstyle="none")
    axes.set_yticks(list(places), [one.label for one in chart.estimates])
    axes.invert_yaxis()
    axes.set_xlabel(chart.axis)


def _bars(axes: Any, chart: BarChart) -> None:
    places = range(len(chart.bars))
    axes.barh(places, [value for _, value in chart.bars], color=COLOURS[0], alpha=0.75)
    axes.set_yticks(list(places), [name for name, _ in chart.bars])
    axes.invert_yaxis()
    axes.set_xlabel(chart.axis)


def _lines(axes: Any, chart: LineChart) -> None:
    for i, one in enumerate(chart.series):
        xs, ys = zip(*one.points, strict=True)
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(xs, ys, "o" if one.marks else "-", color=colour, label=one.name)
        for (x, _), ends in zip(one.points, one.spread, strict=False):
            axes.plot([x, x], ends, color=colour, linewidth=1.2)
    points = [point for one in chart.series for point in one.points]
    for side, logarithmic, values in (
        ("x", chart.log_x, [x for x, _ in points]),
        ("y", chart.log_y, [y for _, y in points]),
    ):
        if logarithmic:
            _logarithmic(axes, side, values)
    axes.set_xlabel(chart.x_axis)
    axes.set_ylabel(chart.y_axis, rotation=90 if len(chart.y_axis) > 2 else 0)
    axes.figure.legend(frameon=False, loc="outside upper center", ncols=len(chart.series))


def _logarithmic(axes: Any, side: str, values: list[float]) -> None:
    """Use the ticks of the SVG drawing; matplotlib's own run into each other on short ranges."""
    ticks = axis_for(values, 0, 1, logarithmic=True).ticks()
    getattr(axes, f"set_{side}scale")("log")
    getattr(axes, f"set_{side}ticks")(ticks, [label(tick) for tick in ticks])
    getattr(axes, f"set_{side}ticks")([], minor=True)


def _matrix(axes: Any, chart: MatrixChart) -> None:
    axes.imshow([[abs(v) for v in row] for row in chart.values], cmap="YlGnBu", alpha=0.75)
    for r, row in enumerate(chart.texts):
        for c, text in enumerate(row):
            axes.text(c, r, text, ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(chart.columns)), chart.columns)
    axes.set_yticks(range(len(chart.rows)), chart.rows)
    axes.set_xlabel(chart.column_axis)
    axes.set_ylabel(chart.row_axis)
