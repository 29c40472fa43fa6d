from __future__ import annotations

import xml.etree.ElementTree as ET

from quiltwork.report import Estimate, IntervalChart, inline_svg, standalone_svg
from quiltwork.report.svg import NARROW

SVG = "{http://www.w3.org/2000/svg}"


def test_a_drawing_is_well_formed_described_and_without_scripts(chart, nasty):
    root = ET.fromstring(standalone_svg(chart))  # noqa: S314  (our own output)
    assert root.get("role") == "img"
    assert nasty in root.get("aria-label")
    assert not list(root.iter(f"{SVG}script"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert nasty in texts


def test_everything_lies_within_the_frame(chart):
    root = ET.fromstring(inline_svg(chart))  # noqa: S314
    width, height = map(float, root.get("viewBox").split()[2:])
    for element in root.iter():
        for name, limit in (("x", width), ("x1", width), ("cx", width), ("y", height)):
            place = float(element.get(name, 0))
            assert 0 <= place <= limit, (element.tag, element.attrib)


def test_the_interval_is_drawn_where_the_numbers_say():
    estimates = (Estimate("a", 50.0, 25.0, 75.0), Estimate("b", 100.0))
    root = ET.fromstring(inline_svg(IntervalChart("t", "d", "x", estimates)))  # noqa: S314
    ticks = {
        element.text: float(element.get("x"))
        for element in root.iter(f"{SVG}text")
        if element.get("class") == "small" and element.get("text-anchor") == "middle"
    }
    unit = (ticks["100"] - ticks["0"]) / 100
    bars = [e for e in root.iter(f"{SVG}line") if e.get("class") == "interval"]
    first, last = float(bars[-1].get("x1")), float(bars[-1].get("x2"))
    assert abs((first - ticks["0"]) / unit - 25) < 0.2
    assert abs((last - ticks["0"]) / unit - 75) < 0.2


def test_an_empty_chart_still_draws():
    ET.fromstring(inline_svg(IntervalChart("nothing", "no estimates", "x", ())))  # noqa: S314


def test_a_drawing_keeps_a_policy_that_forbids_styles_in_the_markup(chart):
    assert "style=" not in inline_svg(chart)


def test_a_legend_says_no_more_than_fits_its_drawing():
    rows = (Estimate("rest", 3, 1, 5, truth=4), Estimate("bicycle", 3, 1, 5, truth=4))
    chart = IntervalChart("t", "d", "steps", rows)
    assert ">truth (simulated data)<" in inline_svg(chart)
    assert ">truth<" in inline_svg(chart, NARROW)
