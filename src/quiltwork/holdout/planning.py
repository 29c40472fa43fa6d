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
from typing import TYPE_CHECKING

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, positive_fraction, shortened
from quiltwork.holdout.guarantee import (
    MOST,
    VACUOUS,
    dp_level,
    noise_failure,
    overfit_width,
    read_count,
    read_share,
)
from quiltwork.holdout.max_information import bayesian_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_TOLERANCE = Fraction(1, 10**9)
"""Below it, 2^60 rows are too few under any belief."""
_WIDEST = 64.0


@dataclass(frozen=True)
class HoldoutPlan:
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
        noise: σ for the holdout.
        threshold: T for the holdout.
        epsilon: the level of differential privacy at `samples` rows.
        bayesian_epsilon: the level of Bayesian DP under the beliefs.
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
    noise: float
    threshold: float
    epsilon: float
    bayesian_epsilon: float
    solved_for: str

    @property
    def feasible(self) -> bool:
        """Whether there are enough rows for a promise that says anything."""
        enough = self.available is None or self.available >= self.samples
        return enough and not self.vacuous

    @property
    def vacuous(self) -> bool:
        """Whether always answering ½ would promise as much."""
        return self.tolerance >= VACUOUS

    def explain(self) -> str:
        """Say what the plan promises, what it takes, and what the alternatives give."""
        from quiltwork.holdout.words import explain_plan

        return explain_plan(self)

    def table(self, samples: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Return (rows, tolerance) pairs: what the same m, B and β give at other sizes.

        Raises:
            InvalidInputError: if `samples` is no list of numbers of rows.
        """
        usual = [max(2, round(self.samples * 10 ** (k / 2))) for k in range(-4, 3)]
        sizes = [read_count(n, "samples") for n in listed(samples, "samples")] or usual
        return [(n, replan(self, samples=n).tolerance) for n in sizes]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw tolerance against rows beside the alternatives; needs the `plot` extra."""
        from quiltwork.holdout.plots import plan_chart
        from quiltwork.report.plots import draw

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
    beta = 1 - read_share(confidence, "confidence")
    fixed = read_share(overfit_at, "overfit_at")
    asked = {"queries": queries, "overfits": overfits, "tolerance": tolerance, "samples": samples}
    missing = [name for name, value in asked.items() if value is None]
    if len(missing) != 1:
        raise InvalidInputError(
            "Give all but one of queries, overfits, tolerance and samples; left out here: "
            f"{', '.join(missing) or 'none'}."
        )
    draft = _Draft(
        members,
        1 if queries is None else read_count(queries, "queries"),
        1 if overfits is None else read_count(overfits, "overfits"),
        1.0 if tolerance is None else _tolerance(tolerance),
        beta,
        fixed,
        1 if samples is None else read_count(samples, "samples"),
    )
    if queries is not None and overfits is not None and overfits > queries:
        raise InvalidInputError(
            f"overfits is {overfits}, more than the {queries} queries; at most every question can "
            "overfit."
        )
    return _finish(_solve(draft, missing[0]), missing[0], samples)


def replan(plan: HoldoutPlan, samples: int) -> HoldoutPlan:
    """Return the plan with the same m, B and β for another number of rows: its tolerance."""
    draft = _Draft(
        plan.beliefs,
        plan.queries,
        plan.overfits,
        plan.tolerance,
        1 - plan.confidence,
        plan.overfit_at,
        samples,
    )
    return _finish(_solve(draft, "tolerance"), "tolerance", samples)


@dataclass(frozen=True)
class _Draft:
    beliefs: tuple[Belief, ...] | None
    queries: int
    overfits: int
    tolerance: float
    beta: float
    fixed: float
    samples: int

    @property
    def noise(self) -> float:
        return (1 - self.fixed) * self.tolerance / (12 * math.log(4 * self.queries / self.beta))

    @property
    def threshold(self) -> float:
        return (1 + self.fixed) * self.tolerance / 2

    def holds(self) -> bool:
        """Whether Theorem 2 holds: what noise may fail with, and what remains for overfitting."""
        part = (1 - self.fixed) * self.tolerance
        failing = noise_failure(
            self.noise,
            self.queries,
            self.overfits,
            part / 12,
            part / 6,
            (3 + self.fixed) / 4 * self.tolerance,
        )
        if failing >= self.beta:
            return False
        # Without what the answers tell first: it takes no translation into Bayesian DP.
        alone = overfit_width(self.beliefs, self.samples, 0.0, self.queries, self.beta - failing)
        if alone > part / 4:
            return False
        level = dp_level(self.samples, self.noise, self.overfits)
        width = overfit_width(self.beliefs, self.samples, level, self.queries, self.beta - failing)
        return width <= part / 4


def _solve(draft: _Draft, unknown: str) -> _Draft:
    if unknown == "tolerance":
        return replace(draft, tolerance=_least_tolerance(draft))
    if unknown == "samples":
        return replace(draft, samples=_least_rows(draft))
    start = draft.overfits if unknown == "queries" else 1
    most = draft.queries if unknown == "overfits" else MOST
    found = _most(lambda value: _with(draft, unknown, value).holds(), start, most)
    if found is None:
        one = _with(draft, unknown, start)
        needed, best = _least_rows(one), _least_tolerance(one)
        raise InvalidInputError(
            f"{draft.samples:,} rows do not give tolerance {draft.tolerance:g} even for "
            f"{start} {unknown}: that takes {needed:,} rows"
            + (f", or tolerance {best:.3g}." if math.isfinite(best) else ".")
        )
    return _with(draft, unknown, found)


def _with(draft: _Draft, unknown: str, value: int) -> _Draft:
    if unknown == "queries":
        return replace(draft, queries=value)
    return replace(draft, overfits=value)


def _least_rows(draft: _Draft) -> int:
    most = _most_rows(draft.beliefs)
    if not replace(draft, samples=most).holds():
        shown = "2^60" if most == MOST else f"{most:,}"
        raise UnsupportedError(
            f"No number of rows up to {shown} gives tolerance {draft.tolerance:g} under this "
            "belief; ask for a larger one."
        )
    low, high = 0, 1
    while not replace(draft, samples=high).holds():
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if replace(draft, samples=middle).holds() else (middle, high)
    return high


def _most_rows(beliefs: tuple[Belief, ...] | None) -> int:
    """Return how many rows can be planned with: 2^60, or the longest series of a chain."""
    if all(belief.length is not None for belief in beliefs or ()):
        return MOST
    from quiltwork.influence.arguments import LONGEST

    return LONGEST


def _least_tolerance(draft: _Draft) -> float:
    low, high = 0.0, 1e-6
    while not replace(draft, tolerance=high).holds():
        low, high = high, 2 * high
        if high > _WIDEST:
            return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if replace(draft, tolerance=middle).holds() else (middle, high)
    return high


def _most(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the largest value in start..most for which it holds, or None."""
    if not holds(start):
        return None
    low, high = start, min(2 * start, most)
    while high > low and holds(high):
        if high == most:
            return high
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _finish(draft: _Draft, solved_for: str, given: int | None) -> HoldoutPlan:
    lengths = [] if draft.beliefs is None else [b.length for b in draft.beliefs if b.length]
    useful = math.isfinite(draft.tolerance)
    level = dp_level(draft.samples, draft.noise, draft.overfits) if useful else 0.0
    return HoldoutPlan(
        draft.beliefs,
        draft.queries,
        draft.overfits,
        draft.tolerance,
        1 - draft.beta,
        draft.fixed,
        draft.samples,
        given if given is not None else min(lengths, default=None),
        draft.noise,
        draft.threshold,
        level,
        bayesian_epsilon(draft.beliefs, level, draft.samples) if useful else 0.0,
        solved_for,
    )


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
