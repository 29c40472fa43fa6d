"""Figures of profiles and curves; they need the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.report.plots import COLOURS, titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.influence.curve import InfluenceCurve
    from quiltwork.influence.profile import Profile

_COLOUR, _OTHER = COLOURS[:2]
_POINTS = 40


def profile_figure(profile: Profile, scale: float) -> Figure:
    """Draw the scale of every node as steps, and the largest as a line."""
    figure, axes = titled_axes("Noise that each time point needs")
    edges = [run.first - 0.5 for run in profile] + [profile.runs[-1].last + 0.5]
    axes.stairs([run.scale for run in profile], edges, color=_COLOUR, linewidth=2)
    axes.axhline(scale, color=_OTHER, linewidth=1, linestyle="--", label=f"scale {scale:.4g}")
    axes.set_xlabel("time point")
    axes.set_ylabel("noise scale")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def curve_figure(curve: InfluenceCurve) -> Figure:
    """Draw f and the line of independent nodes, for levels that leak between 0.01 and 10."""
    figure, axes = titled_axes("Influence curve")
    low, high = (curve.dp_epsilon(level) for level in (0.01, 10))
    if not np.isfinite(high):
        low, high = 0.01, 10.0
    levels = np.geomspace(low, high, _POINTS)
    axes.plot(levels, [curve.epsilon(float(x)) for x in levels], color=_COLOUR, label="belief")
    axes.plot(levels, levels, color=_OTHER, linestyle="--", label="independent")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("DP level for substituting one time point")
    axes.set_ylabel("leakage about a time point")
    axes.legend(frameon=False)
    return figure
