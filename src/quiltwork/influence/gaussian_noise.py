"""Gaussian noise for (ε, δ): the least σ for several equal releases from dependent data.

All releases together may have a level μ per time point: Σ (Δ/σ)² ≤ μ², with Δ the L2 sensitivity to
one point. For chains μ comes from the f-sweep; for clusters from group privacy; under Gaussian
beliefs the worlds differ by a translation, and the level of a release is the shift of its answer
over σ, exactly.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from quiltwork.beliefs import Belief, Gaussian, Label
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    format_number,
    integer,
    positive_fraction,
    privacy_level,
    proper_fraction,
    shortened,
)
from quiltwork.influence.belief_bound import CalibrationProblem
from quiltwork.influence.calibration_arguments import (
    answer_unit,
    as_problem,
    bounds_for,
    check_states,
    parse_lengths,
)
from quiltwork.influence.tradeoffs.curves import gaussian_epsilon, gaussian_level
from quiltwork.influence.tradeoffs.noise_level import epsilon_of_level, largest_level
from quiltwork.influence.tradeoffs.sweep import Window
from quiltwork.results import ResultBase
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.queries.query import Query

GaussianMethod = Literal["f-sweep", "group", "gaussian"]
MOST_RELEASES = 10**9
_UP = 1 + 2.0**-48


@dataclass(frozen=True)
class GaussianCalibration(ResultBase):
    """The standard deviation of Gaussian noise for each of some releases, and why it is needed.

    Attributes:
        scale: σ, in units of the answer; without a query for one of L2 sensitivity 1 per time
            point. Rounded up.
        exact_scale: the same as a fraction.
        epsilon: as passed.
        delta: as passed.
        releases: the number of releases that share (epsilon, delta).
        level: μ of a time point for all of them together: the most that (ε, δ) allows under the
            beliefs, rounded down.
        alone: μ for independent time points.
        method: "f-sweep", "group" (all points of the query at once), or "gaussian" for Gaussian
            beliefs.
        belief: the number of the belief that determined the scale, from 1.
        length: of the series (the longest one).
        sensitivity_squared: the squared L2 sensitivity of the query's integers to one point.
        unit: the value of one integer of the query in the answer; 1 without a query.

    >>> from quiltwork import MarkovChain, calibrate
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> calibration = calibrate(chain, 100, 1, noise="gaussian", delta=1e-6)
    >>> round(calibration.scale, 2), calibration.method
    (14.07, 'f-sweep')
    """

    schema = ("gaussian-calibration", 1)

    scale: float
    exact_scale: Fraction
    epsilon: Number
    delta: Number
    releases: int
    level: float
    alone: float
    method: GaussianMethod
    belief: int
    length: int
    sensitivity_squared: int
    problem: CalibrationProblem = field(repr=False, compare=False)
    members: tuple[Belief, ...] = field(repr=False, compare=False)
    unit: Fraction = Fraction(1)
    quilt: ClassVar[None] = None
    influence: ClassVar[float] = 0.0
    before: ClassVar[float] = 0.0

    @property
    def guarantee(self) -> Fraction:
        """ε as a fraction; it holds with δ for all releases together."""
        return positive_fraction(self.epsilon, "epsilon")

    @property
    def integer_scale(self) -> Fraction:
        """σ of the noise on the query's integers, before its grid is refined."""
        return self.exact_scale / self.unit

    @property
    def excess(self) -> float:
        """The ratio of the noise to the noise for independent time points."""
        return self.alone / self.level

    @property
    def node(self) -> int:
        """A time point in the middle of the query's window, where the influence of neighbours is
        largest.
        """
        query = self.problem.query
        first, last = (1, self.length) if query is None else query.window(self.length)
        return (first + last) // 2

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states of the beliefs; None where they are about rows of any kind."""
        return next((belief.states for belief in self.members if belief.states is not None), None)

    def body(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        return {
            "noise": "gaussian",
            "scale": self.scale,
            "exact_scale": str(self.exact_scale),
            "epsilon": str(positive_fraction(self.epsilon, "epsilon")),
            "delta": str(proper_fraction(self.delta, "delta")),
            "releases": self.releases,
            "level": self.level,
            "alone": self.alone,
            "sensitivity_squared": self.sensitivity_squared,
            "episode": self.problem.episode,
            "method": self.method,
            "belief": self.belief,
            "length": self.length,
        }

    def explain(self) -> str:
        """Return a few lines: how much noise there is, and why."""
        if self.exact_scale == 0:
            return "Noise scale 0: under the given beliefs no protected time point has a secret."
        per_release = (
            "" if self.releases == 1 else f", for each of {self.releases:,} releases like it"
        )
        target = f"epsilon {float(self.epsilon):g} and delta {float(self.delta):g}"
        lines = [
            f"Gaussian noise of standard deviation {self.scale:.6g} keeps {target}{per_release} "
            f"(method {self.method}, {self.length} time points)."
        ]
        if self.problem.episode > 1:
            lines.append(f"Every {self.problem.episode} time points in a row are one secret.")
        ratio = self.excess
        if ratio > 1 + 1e-3:
            lines.append(
                f"If time points were independent, {self.scale / ratio:.6g} would suffice: the "
                f"dependence needs {format_number(ratio, 3)} times as much noise."
            )
        return "\n".join(lines)


def gaussian_calibration(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    delta: Number,
    method: str | None = None,
    query: Query | None = None,
    secrets: tuple[int, int] | None = None,
    episode: int = 1,
    releases: int = 1,
) -> GaussianCalibration:
    """Return the least Gaussian noise with which every protected node keeps (ε, δ).

    As `calibrate`; `secrets` cannot lower Gaussian noise. Cost: about four f-sweeps per belief.

    Raises:
        InvalidInputError: for invalid arguments, with the offending value.
        UnsupportedError: for beliefs without an order in time, and queries that choose a label.
    """
    level, delta_fraction = privacy_level(epsilon, "epsilon"), proper_fraction(delta, "delta")
    count = integer(releases, "releases", 1, MOST_RELEASES)
    if method not in (None, "group"):
        raise InvalidInputError(
            f"method={shortened(method)} is for geometric noise. With noise='gaussian' leave "
            f"method out (chains use the f-sweep), or pass {argument('method', 'group')}."
        )
    bounds = bounds_for(beliefs, length, None)
    members = tuple(member.belief for member in bounds)
    points = bounds[0].length
    query = check_states(query, members)
    problem = as_problem(query, points, secrets, episode)
    if query is not None and query.mechanism == "exponential":
        raise UnsupportedError(
            f"A query of kind {query.kind!r} chooses a label by the exponential mechanism, which "
            "has no Gaussian noise. Use queries.histogram() or queries.top(k)."
        )
    squared = 1 if query is None else query.squared_l2_sensitivity
    target = float_down(level), float_down(delta_fraction)
    needs = [
        _sigma_for(member, problem, squared, *target, group=method == "group") for member in members
    ]
    worst = max(range(len(needs)), key=lambda i: needs[i][0])
    sigma, allowed, kind = needs[worst]
    unit = answer_unit(query, parse_lengths(members, length))
    exact = Fraction(sigma * math.sqrt(count) * _UP) * unit
    return GaussianCalibration(
        scale=float_up(exact),
        exact_scale=exact,
        epsilon=epsilon,
        delta=delta,
        releases=count,
        level=allowed,
        alone=gaussian_level(*target),
        method=kind,
        belief=worst + 1,
        length=points,
        sensitivity_squared=squared,
        problem=problem,
        members=members,
        unit=unit,
    )


def _sigma_for(
    belief: Belief,
    problem: CalibrationProblem,
    squared: int,
    epsilon: float,
    delta: float,
    group: bool,
) -> tuple[float, float, GaussianMethod]:
    """σ of one release on the query's integers under one belief, the level, and the method."""
    if isinstance(belief, Gaussian):
        [bound] = bounds_for(belief, problem.length, None)
        shift = float_up(bound.required_scale(problem, Fraction(1)).scale)
        alone = gaussian_level(epsilon, delta)
        sensitivity = math.sqrt(squared)
        return shift / alone * _UP, min(alone, alone * sensitivity / shift), "gaussian"
    window = window_of(problem)
    largest = largest_level(belief, window, epsilon, delta)
    level, kind = largest.level, largest.method
    if group and level < math.inf:
        # rounded down: a level is a permission
        level, kind = largest.alone / window.points * (1 - 2.0**-50), "group"
    return math.sqrt(squared) / level * _UP, level, kind


def epsilon_under(
    beliefs: Belief | Sequence[Belief],
    problem: CalibrationProblem,
    scale: Fraction,
    delta: Fraction,
) -> tuple[float, int]:
    """Return ε at which this noise keeps δ under some beliefs, and the number of the worst, from 1.

    `scale` is that of the noise on the query's integers. Cost: about two f-sweeps per belief.

    Theorem: docs/theory/f-sweep.md
    """
    bounds = bounds_for(beliefs, problem.length, None)
    check_states(problem.query, [bound.belief for bound in bounds])
    epsilons = [_leaked(bound.belief, problem, scale, float_down(delta)) for bound in bounds]
    worst = max(range(len(epsilons)), key=lambda i: epsilons[i])
    return epsilons[worst], worst + 1


def _leaked(belief: Belief, problem: CalibrationProblem, scale: Fraction, delta: float) -> float:
    """ε at which this noise keeps δ under one belief."""
    if isinstance(belief, Gaussian):
        [bound] = bounds_for(belief, problem.length, None)
        shift = float_up(bound.required_scale(problem, Fraction(1)).scale)
        return gaussian_epsilon(shift / float_down(scale) * _UP, delta)
    query = problem.query
    squared = 1 if query is None else query.squared_l2_sensitivity
    level = math.sqrt(squared) / float_down(scale) * _UP
    return epsilon_of_level(belief, window_of(problem), level, delta)


def window_of(problem: CalibrationProblem) -> Window:
    """The window of a problem for the f-sweep."""
    query = problem.query
    first, last = (1, problem.length) if query is None else query.window(problem.length)
    return Window(first, last, problem.length, problem.episode)
