"""Profiles and curves as charts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.report.charts import Line, LineChart, level, steps

if TYPE_CHECKING:
    from quiltwork.influence.curve import InfluenceCurve
    from quiltwork.influence.profile import Profile

_POINTS = 40


def profile_chart(profile: Profile, scale: float) -> LineChart:
    """Return the scale of every node as steps, and the largest as a line."""
    starts = [run.first - 0.5 for run in profile]
    needed = steps(starts, profile.runs[-1].last + 0.5, [run.scale for run in profile])
    return LineChart(
        "Noise that each time point needs",
        f"The largest, {scale:.4g}, is what is added.",
        "time point",
        "noise scale",
        (replace(needed, name="needed"), level(f"scale {scale:.4g}", scale, [needed])),
    )


def curve_chart(curve: InfluenceCurve) -> LineChart:
    """Return f and the line of independent nodes, for levels that leak between 0.01 and 10."""
    low, high = (curve.dp_epsilon(leaked) for leaked in (0.01, 10))
    if not np.isfinite(high):
        low, high = 0.01, 10.0
    levels = np.geomspace(low, high, _POINTS).tolist()
    return LineChart(
        "Influence curve",
        "What a mechanism of each DP level leaks under the belief, and under independence.",
        "DP level for substituting one time point",
        "leakage about a time point",
        (
            Line("belief", tuple((x, curve.epsilon(x)) for x in levels)),
            Line("independent", tuple((x, x) for x in levels), dashed=True),
        ),
        log_x=True,
        log_y=True,
    )
