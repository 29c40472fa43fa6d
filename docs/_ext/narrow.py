"""Narrow a stored line chart for phones: horizontal positions are scaled, letters keep their size.

Charts of results are drawn in two widths (see `pictures`). A stored chart is an SVG file without
its numbers, but its parts have fixed places: first a legend, then the plot from the left axis on.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

SVG = "http://www.w3.org/2000/svg"
WIDE, NARROW = 720.0, 370.0
LEFT, RIGHT = 74.0, 16.0
LETTER = 7.0
ROW = 20.0

ET.register_namespace("", SVG)


def narrow(svg: str) -> str | None:
    """Return the same chart 370 wide, or None if it is not a line chart."""
    drawing = ET.fromstring(svg)  # noqa: S314
    parts = [part for part in drawing if not part.tag.endswith("style")]
    labels = [place for place, part in enumerate(parts) if part.get("x") == "0.0"]
    if not labels or any(part.get("class") == "cell" for part in parts):
        return None
    legend, rest = parts[: labels[0]], parts[labels[0] :]
    rows_before = 1 + max((int(float(part.get("y", 0)) // ROW) for part in legend), default=0)
    lower = ROW * (wrap(legend) - rows_before)
    for part in rest:
        for name in ("x", "x1", "x2", "cx"):
            if name in part.attrib:
                part.set(name, f"{across(float(part.get(name, 0))):.1f}")
        for name in ("y", "y1", "y2", "cy"):
            if name in part.attrib:
                part.set(name, f"{float(part.get(name, 0)) + lower:.1f}")
        if "points" in part.attrib:
            pairs = (pair.split(",") for pair in part.get("points", "").split())
            moved = (f"{across(float(x)):.1f},{float(y) + lower:.1f}" for x, y in pairs)
            part.set("points", " ".join(moved))
    for part in crowded(rest):
        drawing.remove(part)
    height = float(drawing.get("viewBox", "").split()[3]) + lower
    drawing.set("viewBox", f"0 0 {NARROW:.0f} {height:.0f}")
    return ET.tostring(drawing, encoding="unicode")


def across(x: float) -> float:
    return x if x <= LEFT else LEFT + (x - LEFT) * (NARROW - RIGHT - LEFT) / (WIDE - RIGHT - LEFT)


def wrap(legend: list[ET.Element]) -> int:
    """Wrap the marks and names of a legend into rows that fit; return the number of rows."""
    x, row = 0.0, 0
    for mark, name in zip(legend[::2], legend[1::2], strict=True):
        needed = 30 + LETTER * len(name.text or "") + 12
        if x and x + needed > NARROW:
            x, row = 0.0, row + 1
        y = 12 + ROW * row
        if "points" in mark.attrib:
            mark.set("points", f"{x:.1f},{y:.1f} {x + 22:.1f},{y:.1f}")
        else:
            mark.set("cx", f"{x + 11:.1f}")
            mark.set("cy", f"{y:.1f}")
        name.set("x", f"{x + 30:.1f}")
        name.set("y", f"{y + 4.5:.1f}")
        x += needed
    return row + 1


def crowded(parts: list[ET.Element]) -> list[ET.Element]:
    """Return the numbers of the x axis that would overlap the number before them."""
    overlapping, end = [], 0.0
    for part in parts:
        if part.get("text-anchor") == "middle":
            half = LETTER * len(part.text or "") / 2
            x = float(part.get("x", 0))
            if x - half < end:
                overlapping.append(part)
            else:
                end = x + half + 4
    return overlapping
