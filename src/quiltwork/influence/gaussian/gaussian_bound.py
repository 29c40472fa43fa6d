"""A Gaussian belief seen as calibration sees every belief: the noise it asks for, and why.

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
"""An account, which rounds every level up, finds no more than was asked for."""


class SecretLeakage(Protocol):
    """What tells, for whatever was spent, what leaks about every secret."""

    def worst(self, spent: SumLevels, nodes: range) -> Leak:
        """The secret among `nodes` about which most leaks."""

    def profile(self, spent: SumLevels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and what leaks about secrets that begin there."""


@dataclass(frozen=True, eq=False)
class GaussianBound(BeliefBound):
    """One Gaussian belief about a series of some length, or about rows."""

    belief: Gaussian
    length: int
    method: Literal["gaussian"] = "gaussian"
    theorem: ClassVar[str] = "Numbers"
    by_levels: ClassVar[bool] = False
    swept: ClassVar[bool] = False

    def hidden(self, span: Fraction, episode: int) -> SecretLeakage:
        """Return what is hidden by sums of numbers clipped to a range of this width.

        Raises:
            UnsupportedError: for episodes of rows in no order, and for too long ones.
        """
        ratio = float_up(self.belief.ratio(span))
        if isinstance(self.belief, GaussianSeries):
            return SeriesLeakage(reach_of(self.belief, episode, self.length - 1), episode, ratio)
        if episode > 1 or not isinstance(self.belief, GaussianRows):
            raise UnsupportedError(
                "episode is a number of time points in a row, and these beliefs are about rows in "
                "no order; leave it out."
            )
        return RowsLeakage(self.belief, ratio)

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no secret leaks more than epsilon."""
        found = self._alone(problem)
        return self._answer(problem, found, Fraction(found.leak) * _ROUNDING / epsilon)

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """What noise of this scale leaks about the worst secret, rounded up, and which that is."""
        found = self._alone(problem)
        leak = float_up(Fraction(found.leak) / scale) if scale else 0.0
        return leak, self._answer(problem, found, scale)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The scale that each node needs."""
        query = sum_of(problem)
        hidden = self.hidden(query.span, problem.episode)
        first, last, leak = hidden.profile(SumLevels.of(query, self.length), problem.nodes)
        return runs_of(first, last, leak / float(epsilon) * (1 + 2.0**-50))

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst secret among numbers that move together."""
        hidden = self.hidden(charges.narrowest or Fraction(1), episode)
        found = hidden.worst(charges.sum_levels(self.length), nodes)
        exact = min(Fraction(found.leak), charges.total)
        return WorstPoint(exact, found.node, found.own, found.before, found.after)

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """Where runs of secrets begin and what each of them leaks at most."""
        hidden = self.hidden(charges.narrowest or Fraction(1), episode)
        first, _, leak = hidden.profile(charges.sum_levels(self.length), nodes)
        return first, leak

    def _alone(self, problem: CalibrationProblem) -> Leak:
        """What leaks at noise of scale 1."""
        query = sum_of(problem)
        hidden = self.hidden(query.span, problem.episode)
        return hidden.worst(SumLevels.of(query, self.length), problem.nodes)

    def _answer(self, problem: CalibrationProblem, found: Leak, scale: Fraction) -> WorstSecret:
        stop = min(found.node + problem.episode - 1, self.length)
        change = problem.charge.change(found.node, stop)
        per = float(1 / scale) if scale else 0.0
        added = (found.before + found.after) * per
        nearby = stop - found.node + 1
        return WorstSecret(scale, found.node, change, nearby, added, (), found.before * per)


def sum_of(problem: CalibrationProblem) -> Sum:
    """Return the sum or mean that is asked.

    Raises:
        UnsupportedError: for everything else.
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
    """The refusal of everything but sums and means, with a way out."""
    asked = "any query" if query is None else f"a {query.kind}"
    return UnsupportedError(
        f"Under a Gaussian belief every number moves a little when one does, which {asked} may "
        "feel at every time point at once; only sums and means of clipped numbers are sure not to. "
        f"{way_out}"
    )


@quilt_families.register
def _(belief: Gaussian, length: int, reach: int, method: str) -> NoReturn:
    raise UnsupportedError(
        "Gaussian beliefs have no quilts: every number tells a little about every other. "
        "calibrate(…, query=queries.mean(lo, hi)) says what noise they ask for."
    )
