"""A release as a picture: values with their error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.exact import Number
from quiltwork.report.charts import Chart, Estimate, IntervalChart, Line, LineChart
from quiltwork.series.releases.error_bars import read_confidence, refuse_label_interval

if TYPE_CHECKING:
    from quiltwork.series.releases.record import Release

_MOST_LABELS = 40
_QUANTITIES = {
    "count": "time points",
    "histogram": "time points",
    "frequencies": "share of time points",
    "transitions": "steps from one to the other",
}


def release_chart(release: Release, confidence: Number = 0.95) -> Chart:
    """Return each cell's value with the interval of its noise; many cells by their numbers.

    Raises:
        UnsupportedError: for a label.
    """
    if release.mechanism == "exponential":
        raise refuse_label_interval()
    ends = (np.asarray(end, dtype=float).ravel() for end in release.interval(confidence))
    spread = tuple((float(low), float(high)) for low, high in zip(*ends, strict=True))
    values = np.asarray(release.value, dtype=float).ravel().tolist()
    share = float(read_confidence(confidence)) * 100
    described = (
        f"Released with ε = {release.epsilon:g} and noise of scale {release.scale:.4g}; the truth "
        f"lies within each interval with {share:g} % confidence."
    )
    title = f"{title_of(release)} (ε = {release.epsilon:g}, {share:g} % intervals)"
    quantity = quantity_of(release)
    if len(values) > _MOST_LABELS:
        line = Line("", tuple(enumerate(values, start=1)), marks=True, spread=spread)
        return LineChart(title, described, "cell", quantity, (line,))
    rows = zip(release.cells, values, spread, strict=True)
    estimates = tuple(Estimate(cell_name(cell), value, *ends) for cell, value, ends in rows)
    return IntervalChart(title, described, quantity, estimates)


def title_of(release: Release) -> str:
    """Name what was asked, and of how much."""
    start, stop = release.window
    whole = (start, stop) == (1, release.length)
    when = f"{release.length:,} time points" if whole else f"time points {start:,} to {stop:,}"
    who = "" if release.subjects == 1 else f", {release.subjects:,} persons"
    kind = release.query.kind.removeprefix("numeric_").replace("_", " ").capitalize()
    return f"{kind}: {when}{who}"


def quantity_of(release: Release) -> str:
    """Name what the numbers count, with its unit."""
    kind = release.query.kind.removeprefix("numeric_")
    return _QUANTITIES.get(kind, kind.replace("_", " "))


def cell_name(cell: object) -> str:
    """Write the label of a cell."""
    return " → ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
