from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from quiltwork.errors import UnsupportedError
from quiltwork.report import BarChart, Line, LineChart, figures, inline_svg

PNG = b"\x89PNG\r\n\x1a\n"
SVG = "{http://www.w3.org/2000/svg}"

LOGARITHMIC = LineChart(
    "t", "d", "x", "y",
    (Line("a", ((1.0, 0.0), (10.0, 3.0), (100.0, float("inf")))), Line("b", ((1.0, 9.0),))),
    log_x=True, log_y=True,
)  # fmt: skip
DOTS = Line("dots", ((0.0, 1.0), (1.0, 2.0)), marks=True)
NAMED = LineChart("t", "d", "", "y", (DOTS,), x_names=("day", "week"))
HOLLOW = BarChart("t", "d", "x", (("sound", 0.5), ("not", 5.0)), log=True, hollow=("not",))


def test_every_chart_becomes_a_png(chart):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    assert figures.png(chart).startswith(PNG)


@pytest.mark.parametrize("one", [LOGARITHMIC, NAMED, HOLLOW])
def test_both_drawings_have_the_same_ticks(one):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    root = ET.fromstring(inline_svg(one))  # noqa: S314  (our own output)
    drawn = {element.text for element in root.iter(f"{SVG}text")}
    axes = figures.draw(one)
    ticks = {tick.get_text() for tick in axes.get_xticklabels() + axes.get_yticklabels()}
    assert ticks
    assert ticks <= drawn


def test_points_without_a_place_are_left_out():
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    first = figures.draw(LOGARITHMIC).lines[0]
    assert list(first.get_ydata()) == [3.0]


def test_a_chart_goes_onto_axes_of_ones_own():
    figure = pytest.importorskip("matplotlib.figure", reason="no plot extra").Figure()
    left, right = figure.subplots(1, 2)
    assert figures.draw(HOLLOW, right) is right
    assert right.get_title(loc="left") == "t"
    assert not left.patches


def test_without_the_extra_it_says_what_to_install(chart, monkeypatch):
    monkeypatch.setattr(figures, "available", lambda: False)
    with pytest.raises(UnsupportedError, match="plot"):
        figures.png(chart)
