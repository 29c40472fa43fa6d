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
    title = f"ε = {release.epsilon:g}, noise scale {release.scale:.4g}, {share:g} % intervals"
    kind = release.query.kind.replace("_", " ")
    described = f"The released {kind} with the interval of each number."
    if len(values) > _MOST_LABELS:
        line = Line("", tuple(enumerate(values, start=1)), marks=True, spread=spread)
        return LineChart(title, described, "cell", kind, (line,))
    rows = zip(release.cells, values, spread, strict=True)
    estimates = tuple(Estimate(_name(cell), value, *ends) for cell, value, ends in rows)
    return IntervalChart(title, described, kind, estimates)


def _name(cell: object) -> str:
    return " → ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
