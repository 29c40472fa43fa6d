"""What caution costs: the noise of a histogram against how wrong a chain may be."""

from __future__ import annotations

from collections.abc import Sequence

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.elicited import around
from quiltwork.exact import Number, to_fraction
from quiltwork.influence.calibration import calibrate
from quiltwork.queries import histogram
from quiltwork.report.charts import BarChart

DISTANCES: tuple[Number, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.2)


def noise_by_distance(
    chain: MarkovChain,
    length: int,
    epsilon: Number = 1,
    distances: Sequence[Number] = DISTANCES,
) -> tuple[tuple[float, float], ...]:
    """Return (distance, noise scale of a histogram) for boxes around a chain; see `around`.

    Cost: one calibration for each.

    >>> noise_by_distance(MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 24, distances=[0])
    ((0.0, 2.0),)
    """
    return tuple(
        (
            float(to_fraction(distance, "The distance")),
            calibrate(around(chain, distance), length, epsilon, query=histogram()).scale,
        )
        for distance in distances
    )


def caution_chart(noise: Sequence[tuple[float, float]], length: int, epsilon: Number) -> BarChart:
    """Draw the noise against the distance."""
    return BarChart(
        "Noise against how wrong the belief may be",
        f"The scale of the noise of a histogram of {length:,} time points at ε = "
        f"{float(to_fraction(epsilon, 'epsilon')):g}, if each probability may be off by so much.",
        "noise scale",
        tuple((f"off by {distance:g}", scale) for distance, scale in noise),
    )
