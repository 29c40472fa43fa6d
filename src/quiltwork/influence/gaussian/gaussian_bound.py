"""The bound of a Gaussian belief: the noise that it needs, and the leakage of what was spent.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Protocol

from quiltwork.beliefs import Gaussian, GaussianRows, GaussianSeries
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_up
from quiltwork.influence.belief_bound import (
    BeliefBound,
    CalibrationProblem,
    Charges,
    WorstPoint,
    WorstSecret,
)
from quiltwork.influence.gaussian.reach import reach_of
from quiltwork.influence.gaussian.worst_stretch import RowsLeakage, SeriesLeakage, SumLevels
from quiltwork.influence.profile import Profile, runs_of
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, quilt_families
from quiltwork.influence.sweep import Leak

if TYPE_CHECKING:
    from quiltwork.queries.numbers import Sum
    from quiltwork.queries.query import Query


_ROUNDING = 1 + Fraction(1, 2**40)
"""An account rounds every level up; with this factor it stays within the requested epsilon."""


class SecretLeakage(Protocol):
    """The leakage about every secret, for any spent levels."""

    def worst(self, spent: SumLevels, nodes: range) -> Leak:
        """The secret among `nodes` with the largest leakage."""

    def profile(self, spent: SumLevels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and the leakage about secrets that begin there."""


@dataclass(frozen=True, eq=False)
class GaussianBound(BeliefBound):
    """The bound of one Gaussian belief about a series of some length, or about rows."""

    belief: Gaussian
    length: int
    method: Literal["gaussian"] = "gaussian"
    theorem: ClassVar[str] = "Numbers"
    by_levels: ClassVar[bool] = False
    swept: ClassVar[bool] = False

    def hidden(self, span: Fraction, episode: int) -> SecretLeakage:
        """Return the leakage about secrets, for sums of numbers clipped to a range of this width.

        Raises:
            UnsupportedError: for episodes of rows in no order, and for too long ones.
        """
        ratio = float_up(self.belief.ratio(span))
        if isinstance(self.belief, GaussianSeries):
            return SeriesLeakage(reach_of(self.belief, episode, self.length - 1), episode, ratio)
        if episode > 1 or not isinstance(self.belief, GaussianRows):
            raise UnsupportedError(
                "episode is a number of consecutive time points, and these beliefs are about rows "
                "in no order. Leave episode out."
            )
        return RowsLeakage(self.belief, ratio)

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no secret leaks more than epsilon."""
        leak = self._unit_leak(problem)
        return self._answer(problem, leak, Fraction(leak.leak) * _ROUNDING / epsilon)

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """The leakage of noise of this scale about the worst secret, rounded up, and that
        secret.
        """
        unit_leak = self._unit_leak(problem)
        leak = float_up(Fraction(unit_leak.leak) / scale) if scale else 0.0
        return leak, self._answer(problem, unit_leak, scale)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The scale that each node needs."""
        query = sum_of(problem)
        hidden = self.hidden(query.span, problem.episode)
        first, last, leak = hidden.profile(SumLevels.of(query, self.length), problem.nodes)
        return runs_of(first, last, leak / float(epsilon) * (1 + 2.0**-50))

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst secret among numbers that are correlated."""
        hidden = self.hidden(charges.narrowest or Fraction(1), episode)
        worst = hidden.worst(charges.sum_levels(self.length), nodes)
        exact = min(Fraction(worst.leak), charges.total)
        return WorstPoint(exact, worst.node, worst.own, worst.before, worst.after)

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """The first nodes of runs of secrets, and the leakage about each run."""
        hidden = self.hidden(charges.narrowest or Fraction(1), episode)
        first, _, leak = hidden.profile(charges.sum_levels(self.length), nodes)
        return first, leak

    def _unit_leak(self, problem: CalibrationProblem) -> Leak:
        """The leakage at noise of scale 1."""
        query = sum_of(problem)
        hidden = self.hidden(query.span, problem.episode)
        return hidden.worst(SumLevels.of(query, self.length), problem.nodes)

    def _answer(self, problem: CalibrationProblem, leak: Leak, scale: Fraction) -> WorstSecret:
        """The worst secret with its sensitivity and influence."""
        stop = min(leak.node + problem.episode - 1, self.length)
        change = problem.charge.change(leak.node, stop)
        per = float(1 / scale) if scale else 0.0
        influence = (leak.before + leak.after) * per
        nearby = stop - leak.node + 1
        return WorstSecret(scale, leak.node, change, nearby, influence, (), leak.before * per)


def sum_of(problem: CalibrationProblem) -> Sum:
    """Return the sum or mean of a problem.

    Raises:
        UnsupportedError: for any other query.
    """
    from quiltwork.queries.numbers import Sum

    if isinstance(problem.query, Sum):
        return problem.query
    raise no_sum(problem.query)


ASK = (
    "Ask queries.mean(lo, hi) or sum(lo, hi), or use a chain over bins, which is a different "
    "belief."
)


def no_sum(query: Query | None, way_out: str = ASK) -> UnsupportedError:
    """The refusal of queries other than sums and means, with a remedy."""
    name = "any query" if query is None else f"a {query.kind}"
    return UnsupportedError(
        "Under a Gaussian belief all numbers are correlated, and only sums and means of clipped "
        f"numbers have a bounded leakage; {name} has none. {way_out}"
    )


@quilt_families.register
def _(belief: Gaussian, length: int, reach: int, method: str) -> NoReturn:
    raise UnsupportedError(
        "Gaussian beliefs have no quilts, since every number is correlated with every other. Use "
        "calibrate(…, query=queries.mean(lo, hi))."
    )
