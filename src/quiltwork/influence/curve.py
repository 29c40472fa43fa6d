"""The influence curve: the leakage of any pure-DP mechanism under a belief.

A mechanism that is x-DP for substituting one node leaks at most f(x) about any node: by the sweep
its own level and what its neighbours add, by quilts max_i min_Q [|N|·x + e(Q|i)].

Theorem: docs/theory/sweep.md, docs/theory/influence-curve.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.caching import cached_property
from quiltwork.exact import Number, float_down, positive_fraction, privacy_level, to_fraction
from quiltwork.influence.belief_bound import BeliefBound, CalibrationProblem
from quiltwork.influence.calibration_arguments import bounds_for, refuse_entry
from quiltwork.influence.gaussian import no_sum
from quiltwork.results import ChartedResult

if TYPE_CHECKING:
    from quiltwork.report.charts import LineChart


_POINTS = 40
_SLACK = Fraction(1, 2**39)
"""Twice the relative amount by which `epsilon` rounds a leakage up."""


@dataclass(frozen=True)
class InfluenceCurve(ChartedResult):
    """Converts between the level of a DP mechanism and its leakage under beliefs.

    Attributes:
        length: of the series.
        bounds: the bound of each belief.
    """

    drawn_at_once = False

    length: int
    bounds: tuple[BeliefBound, ...]

    def epsilon(self, dp_epsilon: Number) -> float:
        """Return the leakage of a mechanism of this level about a node, rounded up.

        `dp_epsilon` is the level for *substituting* one time point; for several releases on the
        whole series, the sum of their levels. 0 leaks 0.

        Theorem: docs/theory/influence-curve.md
        """
        level = to_fraction(dp_epsilon, "dp_epsilon")
        if level == 0:
            return 0.0
        scale = 1 / positive_fraction(level, "dp_epsilon")
        return max(bound.leakage_of(self._problem, scale)[0] for bound in self.bounds)

    @cached_property
    def _problem(self) -> CalibrationProblem:
        return CalibrationProblem(None, self.length, range(1, self.length + 1))

    def dp_epsilon(self, epsilon: Number) -> float:
        """Return the largest level whose leakage is at most `epsilon`, rounded down.

        Theorem: docs/theory/influence-curve.md

        Raises:
            InvalidInputError: unless epsilon is a number > 0.
        """
        target = privacy_level(epsilon, "epsilon")
        answers = [bound.required_scale(self._problem, target) for bound in self.bounds]
        highest = max(answers, key=lambda answer: answer.scale)
        scale = highest.scale
        if scale == 0:
            return math.inf
        # `epsilon` rounds a leakage with influence up, so the level must leave room for that
        if highest.quilt and highest.influence > 0:
            scale *= 1 + _SLACK * target / (target - Fraction(highest.influence))
        level, step = float_down(1 / scale), 2.0**-52
        # a caller may pass the float or its decimal text: both must fit
        while self.epsilon(max(Fraction(level), Fraction(str(level)))) > target:
            level, step = level * (1 - step), step * 2**6
        return level

    def records(self) -> list[dict[str, Any]]:
        """Return four points of the curve."""
        levels = (0.01, 0.1, 1.0, 10.0)
        return [{"dp_epsilon": level, "epsilon": self.epsilon(level)} for level in levels]

    def body(self) -> dict[str, Any]:
        """Return the length and four points as JSON values."""
        return {"length": self.length, "points": self.records()}

    def explain(self) -> str:
        """Return the leakage of mechanisms of some levels, one sentence each."""
        return "\n".join(
            f"A mechanism that is {point['dp_epsilon']:g}-DP for substituting one of "
            f"{self.length:,} time points leaks at most {point['epsilon']:.6g} about any of them."
            for point in self.records()
        )

    def chart(self) -> LineChart:
        """Return a chart of the curve, beside that of independent nodes."""
        from quiltwork.report.charts import Line, LineChart

        low, high = (self.dp_epsilon(leaked) for leaked in (0.01, 10))
        if not math.isfinite(high):
            low, high = 0.01, 10.0
        levels = np.geomspace(low, high, _POINTS).tolist()
        return LineChart(
            "Influence curve",
            "The leakage of a mechanism by its DP level, under the belief and for independent "
            "time points.",
            "DP level for substituting one time point",
            "leakage about a time point",
            (
                Line("belief", tuple((x, self.epsilon(x)) for x in levels)),
                Line("independent", tuple((x, x) for x in levels), dashed=True),
            ),
            log_x=True,
            log_y=True,
        )


def influence_curve(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | None,
    method: str | None = None,
) -> InfluenceCurve:
    """Return the influence curve of the beliefs, for any pure-DP mechanism on the whole series.

    Each evaluation costs as much as a calibration and does not grow with the length.

    Theorem: docs/theory/influence-curve.md

    Args:
        beliefs: one belief or a list; the curve holds under each of them.
        length: as in `calibrate`.
        method: as in `calibrate`, except "entry", whose levels hold under no belief.

    Raises:
        InvalidInputError: for invalid arguments, with the offending value.
        UnsupportedError: if the method does not support a belief.

    >>> from quiltwork.beliefs import MarkovChain
    >>> curve = influence_curve(MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2]), 100)
    >>> round(curve.epsilon(10 / 12.839964), 4)
    2.675
    """
    refuse_entry(method)
    bounds = bounds_for(beliefs, length, method)
    if not all(bound.by_levels for bound in bounds):
        raise no_sum(None)
    return InfluenceCurve(bounds[0].length, bounds)
