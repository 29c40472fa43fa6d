"""The figure of the frontier; it needs the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.report.plots import COLOURS, titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.counts.chains.comparison import Frontier


def frontier_figure(found: Frontier) -> Figure:
    """Draw the expected error of every route, largest first, on a logarithmic axis."""
    title = f"A count of {found.length} time points at epsilon {found.epsilon:g}"
    figure, axes = titled_axes(title, 8, 5)
    names = [row.route if row.private else f"{row.route} (not private here)" for row in found.rows]
    bars = axes.barh(names, [row.error for row in found.rows], color=COLOURS[0])
    for bar, row in zip(bars, found.rows, strict=True):
        if not row.private:
            bar.set(hatch="//", facecolor="0.85", edgecolor="0.4")
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="expected absolute error")
    return figure
