"""`plan_holdout`: how many rows Theorem 2 takes, or what it gives for the rows there are.

With σ = (1−c)τ/(12·ln(4m/β)) and T = (1+c)τ/2 every answer is within τ of the truth while fewer
than B questions overfit by cτ. All conditions are monotone in n, τ, m and B, so each is found by
bisection; a step is a closed formula, for chains a translation into Bayesian DP.

Theorem: docs/theory/reusable-holdout.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.arguments import listed
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, positive_fraction, shortened
from quiltwork.holdout.algorithm import MOST, read_count
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.guarantee import (
    VACUOUS,
    dp_level,
    noise_failure,
    overfit_width,
    read_share,
)
from quiltwork.holdout.max_information import bayesian_epsilon
from quiltwork.results import ResultBase, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_TOLERANCE = Fraction(1, 10**9)
"""Below it, 2^60 rows are too few under any belief."""
_WIDEST = 64.0


@dataclass(frozen=True)
class HoldoutPlan(ResultBase):
    """A promise and what it takes.

    Attributes:
        beliefs: how rows depend on each other; None for independent rows.
        queries: m, the number of questions.
        overfits: B, how many of them may overfit the training set.
        tolerance: τ, how far an answer may be from the truth; infinite where nothing is promised.
        confidence: 1 − β.
        overfit_at: c, a question overfits if its training value is off by cτ.
        samples: the rows it takes.
        available: the rows there are, or None if nothing says so.
        solved_for: which of samples, tolerance, queries and overfits was looked for.
    """

    beliefs: tuple[Belief, ...] | None
    queries: int
    overfits: int
    tolerance: float
    confidence: float
    overfit_at: float
    samples: int
    available: int | None
    solved_for: str

    @property
    def noise(self) -> float:
        """σ for the holdout."""
        spread = 12 * math.log(4 * self.queries / self.beta)
        return (1 - self.overfit_at) * self.tolerance / spread

    @property
    def threshold(self) -> float:
        """T for the holdout."""
        return (1 + self.overfit_at) * self.tolerance / 2

    @property
    def epsilon(self) -> float:
        """The level of differential privacy at `samples` rows; 0 where nothing is promised."""
        useful = math.isfinite(self.tolerance)
        return dp_level(self.samples, self.noise, self.overfits) if useful else 0.0

    @cached_property
    def bayesian_epsilon(self) -> float:
        """The level of Bayesian DP under the beliefs."""
        useful = math.isfinite(self.tolerance)
        return bayesian_epsilon(self.beliefs, self.epsilon, self.samples) if useful else 0.0

    @property
    def beta(self) -> float:
        """The probability with which the promise may fail."""
        return 1 - self.confidence

    @property
    def feasible(self) -> bool:
        """Whether there are enough rows for a promise that says anything."""
        enough = self.available is None or self.available >= self.samples
        return enough and not self.vacuous

    @property
    def vacuous(self) -> bool:
        """Whether always answering ½ would promise as much."""
        return self.tolerance >= VACUOUS

    def holds(self) -> bool:
        """Whether Theorem 2 holds: what noise may fail with, and what remains for overfitting.

        Theorem: docs/theory/reusable-holdout.md
        """
        part = (1 - self.overfit_at) * self.tolerance
        blur = (3 + self.overfit_at) / 4 * self.tolerance
        failing = noise_failure(self.noise, self.queries, self.overfits, part / 12, part / 6, blur)
        if failing >= self.beta:
            return False
        # Without what the answers tell first: it takes no translation into Bayesian DP.
        return all(
            overfit_width(self.beliefs, self.samples, level, self.queries, self.beta - failing)
            <= part / 4
            for level in (0.0, self.epsilon)
        )

    def explain(self) -> str:
        """Say what the plan promises, what it takes, and what the alternatives give."""
        from quiltwork.holdout.plan_alternatives import other_bounds, other_ways

        if not math.isfinite(self.tolerance):
            nothing = (
                f"Promise: none. {self.samples:,} rows are too few for {self.queries:,} adaptive "
                f"questions of which {self.overfits:,} may overfit, however far answers may be "
                "off. This is vacuous: always answering 1/2 errs by at most 0.5."
            )
            return "\n".join([nothing, *other_ways(self)])
        found = concentration(self.beliefs)
        lines = [
            f"Promise: with probability {self.confidence:g}, every answer to {self.queries:,} "
            f"adaptive questions is within {self.tolerance:.4g} of the truth, as long as fewer "
            f"than {self.overfits:,} overfit by {self.overfit_at * self.tolerance:.4g} or more.",
            f"Settings: threshold T = {self.threshold:.6g}, noise sigma = {self.noise:.6g}.",
            f"Level: {self.epsilon:.4g}-DP for replacing a row, {self.bayesian_epsilon:.4g}-"
            f"Bayesian DP under the belief. Concentration: {found.theorem}; rows count as "
            f"{found.independent_rows:.4g} independent ones each.",
            f"Rows: {self.samples:,} needed{self._rows_there()}.",
        ]
        if self.vacuous:
            lines.append(
                "The promise is vacuous: always answering 1/2 errs by at most 0.5, however the "
                "questions are chosen."
            )
        return "\n".join([*lines, *other_bounds(self), *other_ways(self)])

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON values; what is infinite is null."""
        told = {name: value for name, value in vars(self).items() if name != "beliefs"}
        found = ("noise", "threshold", "epsilon", "bayesian_epsilon", "feasible")
        return {**plain(told), **{name: plain(getattr(self, name)) for name in found}}

    def to_json(self) -> str:
        """Write the plan as a document of schema `quiltwork/holdout-plan`."""
        return files.dump("holdout-plan", 1, {**self.body(), "explanation": self.explain()})

    def _rows_there(self) -> str:
        if self.available is None:
            return ""
        if self.available >= self.samples:
            return f", {self.available:,} there"
        return f", only {self.available:,} there: the promise does not hold"

    def table(self, samples: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Return (rows, tolerance) pairs: what the same m, B and β give at other sizes.

        Raises:
            InvalidInputError: if `samples` is no list of numbers of rows.
        """
        usual = [max(2, round(self.samples * 10 ** (k / 2))) for k in range(-4, 3)]
        sizes = [read_count(n, "samples") for n in listed(samples, "samples")] or usual
        return [(n, _least_tolerance(replace(self, samples=n))) for n in sizes]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw tolerance against rows beside the alternatives; needs the `plot` extra."""
        from quiltwork.holdout.plan_alternatives import plan_chart
        from quiltwork.report.figures import draw

        return draw(plan_chart(self), ax)


def plan_holdout(
    beliefs: Belief | Sequence[Belief] | None = None,
    queries: int | None = None,
    overfits: int | None = None,
    tolerance: Number | None = None,
    confidence: Number = 0.95,
    overfit_at: Number = 0.5,
    samples: int | None = None,
) -> HoldoutPlan:
    """Plan a reusable holdout: leave out one of queries, overfits, tolerance and samples.

    Without `samples` it finds the rows that the promise takes. With `samples` it finds the least
    tolerance, or the most queries or overfits.

    Theorem: docs/theory/reusable-holdout.md

    Args:
        beliefs: how the holdout's rows depend on each other; None for independent rows. Clusters
            stand for any number of rows with the same mix of cluster sizes.
        queries: m, the number of questions that will be asked, adaptively.
        overfits: B, how many of them may find that the training set overfits.
        tolerance: τ in (0, 1).
        confidence: 1 − β.
        overfit_at: the paper's c in Theorem 2, in (0, 1).
        samples: the rows there are.

    Raises:
        InvalidInputError: unless exactly one of the four is left out, or for values out of range.
        UnsupportedError: if no concentration inequality is proven for the belief.

    >>> plan = plan_holdout(queries=100, overfits=5, tolerance=0.1)
    >>> plan.samples, round(plan.threshold, 3), plan.feasible
    (579936, 0.075, True)
    >>> round(plan_holdout(queries=100, overfits=5, samples=1_000_000).tolerance, 4)
    0.0762
    """
    members = None if beliefs is None else as_beliefs(beliefs)
    share, fixed = read_share(confidence, "confidence"), read_share(overfit_at, "overfit_at")
    asked = {"queries": queries, "overfits": overfits, "tolerance": tolerance, "samples": samples}
    missing = [name for name, value in asked.items() if value is None]
    if len(missing) != 1:
        raise InvalidInputError(
            "Give all but one of queries, overfits, tolerance and samples; left out here: "
            f"{', '.join(missing) or 'none'}."
        )
    lengths = [belief.length for belief in members or () if belief.length]
    draft = HoldoutPlan(
        members,
        1 if queries is None else read_count(queries, "queries"),
        1 if overfits is None else read_count(overfits, "overfits"),
        1.0 if tolerance is None else _tolerance(tolerance),
        share,
        fixed,
        1 if samples is None else read_count(samples, "samples"),
        min(lengths, default=None) if samples is None else samples,
        missing[0],
    )
    if queries is not None and overfits is not None and overfits > queries:
        raise InvalidInputError(
            f"overfits is {overfits}, more than the {queries} queries; at most every question can "
            "overfit."
        )
    if missing[0] == "tolerance":
        return replace(draft, tolerance=_least_tolerance(draft))
    if missing[0] == "samples":
        return replace(draft, samples=_least_rows(draft))
    return _most_questions(draft)


def _most_questions(draft: HoldoutPlan) -> HoldoutPlan:
    """Return the plan with the most queries or overfits for which it holds."""
    unknown = draft.solved_for
    start = draft.overfits if unknown == "queries" else 1
    most = draft.queries if unknown == "overfits" else MOST

    def at(value: int) -> HoldoutPlan:
        changed: dict[str, Any] = {unknown: value}
        return replace(draft, **changed)

    first_failing = _least(lambda value: not at(value).holds(), start, most)
    if first_failing == start:
        one = at(start)
        needed, best = _least_rows(one), _least_tolerance(one)
        raise InvalidInputError(
            f"{draft.samples:,} rows do not give tolerance {draft.tolerance:g} even for "
            f"{start} {unknown}: that takes {needed:,} rows"
            + (f", or tolerance {best:.3g}." if math.isfinite(best) else ".")
        )
    return at(most if first_failing is None else first_failing - 1)


def _least_rows(draft: HoldoutPlan) -> int:
    most = _most_rows(draft.beliefs)
    if not replace(draft, samples=most).holds():
        shown = "2^60" if most == MOST else f"{most:,}"
        raise UnsupportedError(
            f"No number of rows up to {shown} gives tolerance {draft.tolerance:g} under this "
            "belief; ask for a larger one."
        )
    return _least(lambda n: replace(draft, samples=n).holds(), 1, most) or most


def _most_rows(beliefs: tuple[Belief, ...] | None) -> int:
    """Return how many rows can be planned with: 2^60, or the longest series of a chain."""
    if all(belief.length is not None for belief in beliefs or ()):
        return MOST
    from quiltwork.influence.arguments import LONGEST

    return LONGEST


def _least_tolerance(draft: HoldoutPlan) -> float:
    low, high = 0.0, 1e-6
    while not replace(draft, tolerance=high).holds():
        low, high = high, 2 * high
        if high > _WIDEST:
            return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if replace(draft, tolerance=middle).holds() else (middle, high)
    return high


def _least(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the first value in start..most from which it holds on, or None; O(log most) looks."""
    low, high = start - 1, start
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _tolerance(value: object) -> float:
    tolerance = positive_fraction(value, "tolerance")
    if tolerance >= 1:
        raise InvalidInputError(f"tolerance must lie between 0 and 1, not {value!r}.")
    if tolerance < _LEAST_TOLERANCE:
        raise InvalidInputError(
            f"tolerance is {shortened(value)}, which no number of rows up to 2^60 gives; ask for "
            "1e-9 or more."
        )
    return float(tolerance)
