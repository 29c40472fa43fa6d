"""Draw a stored chart of lines again for phones: what lies across moves together, letters do not.

Charts of results are drawn in two widths (see `pictures`). A stored one is a file whose numbers are
gone, but its parts have known places: a legend, then everything else, from the left axis on.
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
    """The same chart 370 wide; None where it is not one of lines."""
    drawing = ET.fromstring(svg)  # noqa: S314
    parts = [one for one in drawing if not one.tag.endswith("style")]
    labels = [place for place, one in enumerate(parts) if one.get("x") == "0.0"]
    if not labels or any(one.get("class") == "cell" for one in parts):
        return None
    legend, rest = parts[: labels[0]], parts[labels[0] :]
    rows_before = 1 + max((int(float(one.get("y", 0)) // ROW) for one in legend), default=0)
    lower = ROW * (wrap(legend) - rows_before)
    for one in rest:
        for name in ("x", "x1", "x2", "cx"):
            if name in one.attrib:
                one.set(name, f"{across(float(one.get(name, 0))):.1f}")
        for name in ("y", "y1", "y2", "cy"):
            if name in one.attrib:
                one.set(name, f"{float(one.get(name, 0)) + lower:.1f}")
        if "points" in one.attrib:
            pairs = (pair.split(",") for pair in one.get("points", "").split())
            moved = (f"{across(float(x)):.1f},{float(y) + lower:.1f}" for x, y in pairs)
            one.set("points", " ".join(moved))
    for one in crowded(rest):
        drawing.remove(one)
    height = float(drawing.get("viewBox", "").split()[3]) + lower
    drawing.set("viewBox", f"0 0 {NARROW:.0f} {height:.0f}")
    return ET.tostring(drawing, encoding="unicode")


def across(x: float) -> float:
    return x if x <= LEFT else LEFT + (x - LEFT) * (NARROW - RIGHT - LEFT) / (WIDE - RIGHT - LEFT)


def wrap(legend: list[ET.Element]) -> int:
    """Place marks and their names in rows that fit; how many rows there are."""
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
    """Numbers of the x axis that would touch the one before."""
    found, end = [], 0.0
    for one in parts:
        if one.get("text-anchor") == "middle":
            half = LETTER * len(one.text or "") / 2
            x = float(one.get("x", 0))
            if x - half < end:
                found.append(one)
            else:
                end = x + half + 4
    return found
