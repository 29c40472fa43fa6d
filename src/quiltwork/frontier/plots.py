"""The figure of the frontier; it needs the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.frontier.comparison import Frontier


def frontier_figure(found: Frontier) -> Figure:
    """Draw the expected error of every route, largest first, on a logarithmic axis."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "Plots need matplotlib; install the extra quiltwork[plot]."
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    names = [row.route if row.private else f"{row.route} (not private here)" for row in found.rows]
    bars = axes.barh(names, [row.error for row in found.rows])
    for bar, row in zip(bars, found.rows, strict=True):
        if not row.private:
            bar.set(hatch="//", facecolor="0.85", edgecolor="0.4")
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="expected absolute error")
    axes.set_title(f"A count of {found.length} time points at epsilon {found.epsilon:g}")
    return figure
