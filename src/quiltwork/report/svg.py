"""Charts as SVG, drawn without a plotting library, so that the core install has pictures."""

from __future__ import annotations

import html

from quiltwork.report.axes import Axis, label
from quiltwork.report.charts import (
    BarChart,
    Chart,
    Estimate,
    IntervalChart,
    LineChart,
    MatrixChart,
    named_every,
    short,
)
from quiltwork.report.style import FIGURE_STYLE

WIDTH, NARROW = 720, 350
_LETTER = 7.9  # width of a wide letter at 13 px, for margins
_ROOM = 110  # pixels that bars need beside their numbers


def inline_svg(chart: Chart, width: float = WIDTH) -> str:
    """Return a chart for a page with the project's style; the size of letters is fixed."""
    return _frame(chart, "", width)


def both_widths(chart: Chart) -> str:
    """Return a chart for wide pages and one for phones; the page's style shows one of them."""
    wide, narrow = inline_svg(chart), inline_svg(chart, NARROW)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def standalone_svg(chart: Chart) -> str:
    """Return a chart as a standalone SVG file."""
    return _frame(chart, f"<style>{FIGURE_STYLE}</style>", WIDTH)


def _frame(chart: Chart, style: str, width: float) -> str:
    if isinstance(chart, IntervalChart):
        body, height = _intervals(chart, width)
    elif isinstance(chart, LineChart):
        body, height = _lines(chart, width)
    elif isinstance(chart, BarChart):
        body, height = _bars(chart, width)
    else:
        body, height = _matrix(chart, width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="qw" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(f"{chart.title}. {chart.description}")}">'
        f"{style}{body}</svg>"
    )


def _intervals(chart: IntervalChart, width: float) -> tuple[str, float]:
    rows = chart.estimates
    left = 16 + _LETTER * max((len(short(one.label)) for one in rows), default=0)
    right = 24 + _LETTER * max((len(_reading(one)) for one in rows), default=0)
    top, step = 34.0, 32.0
    below = width - left - right < _ROOM
    if below:  # numbers under the bars
        right, step = 16.0, 46.0
        left = min(left, width - right - _ROOM)
    bottom = top + step * len(rows)
    axis = chart.scale(left, width - right)
    places = [top + step * i + (12 if below else step / 2) for i in range(len(rows))]
    marks = "".join(_estimate(one, axis, y, below) for one, y in zip(rows, places, strict=True))
    legend = _interval_legend(chart, left, width)
    return legend + _x_axis(axis, top, bottom, chart.axis) + marks, bottom + 44


def _estimate(one: Estimate, axis: Axis, y: float, below: bool) -> str:
    zero, value = axis.place(0.0), axis.place(one.value)
    name = short(one.label)[: int((axis.start - 10) / _LETTER) + 1]
    parts = [
        _text(axis.start - 10, y + 4.5, name, anchor="end"),
        f'<rect class="bar" x="{min(zero, value):.1f}" y="{y - 8:.1f}" '
        f'width="{abs(value - zero):.1f}" height="16" rx="2"/>',
    ]
    if one.low is not None and one.high is not None:
        parts.append(_line("interval", axis.place(one.low), y, axis.place(one.high), y))
    parts.append(f'<circle class="value" cx="{value:.1f}" cy="{y:.1f}" r="4.5"/>')
    if one.truth is not None:
        parts.append(_diamond(axis.place(one.truth), y))
    at = (axis.start, y + 24.5) if below else (axis.stop + 14, y + 4.5)
    parts.append(_text(*at, _reading(one)))
    return "".join(parts)


def _reading(one: Estimate) -> str:
    if one.low is None or one.high is None:
        return label(one.value)
    return f"{label(one.value)}  [{label(one.low)}, {label(one.high)}]"


def _interval_legend(chart: IntervalChart, left: float, width: float) -> str:
    drawn = f'<circle class="value" cx="{left + 6:.1f}" cy="12" r="4.5"/>'
    drawn += _text(left + 16, 16.5, "released", css="small")
    x = left + 22 + _LETTER * len("released")
    if any(one.low is not None for one in chart.estimates):
        drawn += _line("interval", x, 12, x + 22, 12) + _text(x + 30, 16.5, "interval", css="small")
        x += 44 + _LETTER * len("interval")
    if any(one.truth is not None for one in chart.estimates):
        truth = "truth (simulated data)"
        truth = truth if x + 12 + _LETTER * len(truth) < width else "truth"
        drawn += _diamond(x, 12) + _text(x + 12, 16.5, truth, css="small")
    return drawn


def _bars(chart: BarChart, width: float) -> tuple[str, float]:
    names, values = [short(name) for name, _ in chart.bars], [value for _, value in chart.bars]
    left = 16 + _LETTER * max(map(len, names), default=0)
    right = 24 + _LETTER * max((len(label(value)) for value in values), default=0)
    top, step = 10.0, 28.0
    bottom = top + step * len(values)
    axis = chart.scale(left, width - right)
    drawn = [_x_axis(axis, top, bottom, chart.axis)]
    for i, (name, value) in enumerate(chart.bars):
        y = top + step * (i + 0.5)
        zero, end = axis.place(axis.low if chart.log else 0.0), axis.place(value)
        kind = "hollow" if name in chart.hollow else "solid"
        drawn.append(
            f'<rect class="{kind}" x="{min(zero, end):.1f}" y="{y - 8:.1f}" '
            f'width="{abs(end - zero):.1f}" height="16" rx="2"/>'
        )
        drawn.append(_text(left - 10, y + 4.5, short(name), anchor="end"))
        drawn.append(_text(axis.stop + 14, y + 4.5, label(value)))
    return "".join(drawn), bottom + 44


def _lines(chart: LineChart, width: float) -> tuple[str, float]:
    left, right = 74.0, 16.0
    legend, legend_height = _line_legend(chart, left, width)
    top = legend_height + 26
    bottom = top + 280
    across, up = chart.across(left, width - right), chart.up(bottom, top)
    drawn = [legend, _text(0, top - 10, chart.y_axis, css="small")]
    drawn += [_x_axis(across, top, bottom, chart.x_axis), _y_axis(up, left, width - right)]
    for i, one in enumerate(chart.lines):
        places = [(across.place(x), up.place(y)) for x, y in chart.visible(one)]
        drawn.append(_dots(places, i) if one.marks else _path(places, i, one.dashed))
        for (x, _), ends in zip(one.points, one.spread, strict=False):
            low, high = map(up.place, ends)
            drawn.append(_path([(across.place(x), low), (across.place(x), high)], i))
    return "".join(drawn), bottom + 44


def _line_legend(chart: LineChart, left: float, width: float) -> tuple[str, float]:
    """Return the legend of the lines, in as many rows as needed, and its height."""
    drawn, x, y = [], left, 12.0
    for i, one in enumerate(chart.lines):
        if not one.name:
            continue
        entry = 30 + _LETTER * len(one.name) + 18
        if x > left and x + entry > width:
            x, y = left, y + 20
        sample = (
            _dots([(x + 11, y)], i) if one.marks else _path([(x, y), (x + 22, y)], i, one.dashed)
        )
        drawn += [sample, _text(x + 30, y + 4.5, one.name, css="small")]
        x += entry
    return "".join(drawn), y + 12 if drawn else 0.0


def _matrix(chart: MatrixChart, width: float) -> tuple[str, float]:
    longest = max((len(short(text)) for text in (*chart.rows, chart.row_axis)), default=1)
    left, top = 14 + _LETTER * longest, 46.0
    size = min(84.0, (width - left - 4) / max(1, len(chart.columns)))
    tall = min(44.0, size)
    peak = max((abs(v) for row in chart.values for v in row), default=1.0) or 1.0
    drawn = [
        _text(left, 14, chart.column_axis, css="small"),
        _text(left - 10, top - 8, chart.row_axis, anchor="end", css="small"),
    ]
    drawn += [
        _text(left + size * (c + 0.5), top - 8, chart.columns[c], anchor="middle")
        for c in range(0, len(chart.columns), named_every(chart.columns))
    ]
    drawn += [
        _text(left - 10, top + tall * (r + 0.5) + 4.5, short(chart.rows[r]), anchor="end")
        for r in range(0, len(chart.rows), named_every(chart.rows))
    ]
    for r, row in enumerate(chart.values):
        y = top + tall * r
        for c, value in enumerate(row):
            x = left + size * c
            drawn.append(
                f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" '
                f'height="{tall:.1f}" fill-opacity="{0.04 + 0.66 * abs(value) / peak:.3f}"/>'
            )
            if chart.texts:
                text = chart.texts[r][c]
                drawn.append(_text(x + size / 2, y + tall / 2 + 4.5, text, "middle", "cell-text"))
    return "".join(drawn), top + tall * len(chart.rows) + 6


def _x_axis(axis: Axis, top: float, bottom: float, name: str) -> str:
    drawn = [_line("axis", axis.start, bottom, axis.stop, bottom)]
    for tick, name_of_tick in zip(axis.ticks(), axis.labels(), strict=True):
        x = axis.place(tick)
        drawn.append(_line("grid", x, top, x, bottom))
        drawn.append(_text(x, bottom + 17, name_of_tick, anchor="middle", css="small"))
    drawn.append(_text(axis.stop, bottom + 36, name, anchor="end", css="small"))
    return "".join(drawn)


def _y_axis(axis: Axis, left: float, right: float) -> str:
    drawn = []
    for tick in axis.ticks():
        y = axis.place(tick)
        drawn.append(_line("grid", left, y, right, y))
        drawn.append(_text(left - 8, y + 4, label(tick), anchor="end", css="small"))
    return "".join(drawn)


def _line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _path(places: list[tuple[float, float]], number: int, dashed: bool = False) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    css = "line dashed" if dashed else "line"
    return f'<polyline class="{css}" stroke="{_colour(number)}" points="{points}"/>'


def _dots(places: list[tuple[float, float]], number: int) -> str:
    return "".join(
        f'<circle fill="{_colour(number)}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places
    )


def _colour(number: int) -> str:
    return f"var(--c{1 + number % 6})"


def _diamond(x: float, y: float) -> str:
    return (
        f'<path class="truth" d="M{x:.1f} {y - 7:.1f}L{x + 6:.1f} {y:.1f}L{x:.1f} {y + 7:.1f}'
        f'L{x - 6:.1f} {y:.1f}Z"/>'
    )


def _text(x: float, y: float, content: str, anchor: str = "start", css: str = "") -> str:
    classes = f' class="{css}"' if css else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{classes}>'
        f"{html.escape(content)}</text>"
    )
