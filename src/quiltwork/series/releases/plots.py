"""A release as a picture: values with their error bars. Needs matplotlib (`quiltwork[plot]`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.exact import Number
from quiltwork.report.plots import COLOURS, titled_axes
from quiltwork.series.releases.error_bars import read_confidence, refuse_label_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.series.releases.record import Release

_MOST_LABELS = 40


def plot_release(release: Release, confidence: Number = 0.95) -> Figure:
    """Draw each cell's value with the interval of its noise; returns the figure.

    Raises:
        UnsupportedError: for a label, or if matplotlib is not installed.
    """
    if release.mechanism == "exponential":
        raise refuse_label_interval()
    interval = release.interval(confidence)
    values = np.asarray(release.value, dtype=float).ravel()
    low, high = (np.asarray(end, dtype=float).ravel() for end in interval)
    share = float(read_confidence(confidence)) * 100
    title = f"ε = {release.epsilon:g}, noise scale {release.scale:.4g}, {share:g} % intervals"
    figure, axes = titled_axes(title, max(4.0, min(16.0, 0.4 * len(values) + 3)), 4)
    places = np.arange(len(values))
    axes.vlines(places, low, high, color=COLOURS[0], alpha=0.6, linewidth=3)
    axes.plot(places, values, "o", color=COLOURS[0])
    axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    if len(values) <= _MOST_LABELS:
        axes.set_xticks(places, [_name(cell) for cell in release.cells])
        axes.tick_params(axis="x", rotation=45 if len(values) > 6 else 0)
    else:
        axes.set_xlabel("cell")
    axes.set_ylabel(release.query.kind.replace("_", " "))
    return figure


def _name(cell: object) -> str:
    """Cells are data: a dollar sign in a label is not mathematics."""
    text = " → ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
    return text.replace("$", r"\$")
