"""`plan_holdout`: the number of rows a guarantee takes, or the guarantee that given rows allow.

With T = (1+c)τ/2 every answer is within τ of the true value while fewer than B questions overfit by
cτ. Three mechanisms keep that promise: *counting* (answers rounded to few values, with noise only
where rows must be protected), *max-information* (Algorithm 1 with σ = (1−c)τ/(12·ln(4m/β))) and
*fresh parts* of the rows. Without B only the best score is asked for, which a *ladder* provides. A
plan also states what the same rows could promise otherwise, and when its promise is too coarse to
choose models by.

All conditions are monotone in n, τ, m and B, so each is solved by bisection; a step is a closed
formula, for max-information on chains a translation into Bayesian DP.

Theorem: docs/theory/counting.md, docs/theory/reusable-holdout.md, docs/theory/ladder.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from quiltwork import files
from quiltwork.arguments import choice, listed
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import InvalidInputError, QuiltworkError, UnsupportedError
from quiltwork.exact import Number, proper_fraction, shortened
from quiltwork.holdout.algorithm import MOST, parse_count
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import counting_width, fresh_width
from quiltwork.holdout.guarantee import (
    VACUOUS,
    bayesian_epsilon,
    dp_level,
    noise_failure,
    overfit_width,
    parse_share,
)
from quiltwork.holdout.ladder import least_width
from quiltwork.holdout.one_bit import verdict_width
from quiltwork.report.charts import Line, LineChart, level
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

_LEAST_TOLERANCE = Fraction(1, 10**9)
"""Below it, 2^60 rows are too few under any belief."""
_WIDEST = 64.0
MECHANISMS = ("counting", "max-information", "fresh parts", "ladder")


@dataclass(frozen=True)
class HoldoutPlan(ChartedResult):
    """A guarantee and what it takes.

    Attributes:
        beliefs: how rows depend on each other; None for independent rows.
        queries: m, the number of questions.
        overfits: B, how many of them may overfit the training set; 0 for a Ladder.
        tolerance: τ, the largest error of an answer; infinite where nothing is promised.
        confidence: 1 − β.
        overfit_at: c; a question overfits if its training value is off by cτ.
        samples: the rows it takes.
        available: the rows there are, or None if unknown.
        solved_for: which of samples, tolerance, queries and overfits was solved for.
        protect: "rows" if noise protects them, None for accuracy alone.
        mechanism: "counting", "max-information", "fresh parts" or "ladder".
    """

    drawn_at_once = False
    also = ("noise", "values", "threshold", "epsilon", "bayesian_epsilon", "feasible")

    beliefs: tuple[Belief, ...] | None = field(repr=False)
    queries: int
    overfits: int
    tolerance: float
    confidence: float
    overfit_at: float
    samples: int
    available: int | None
    solved_for: str
    protect: str | None = None
    mechanism: str = "counting"

    @property
    def noise(self) -> float:
        """σ for the holdout; 0 where only accuracy is promised."""
        if self.protect is None and self.mechanism != "max-information":
            return 0.0
        spread = 12 * math.log(4 * self.queries / self.beta)
        return (1 - self.overfit_at) * self.tolerance / spread

    @property
    def threshold(self) -> float:
        """T for the holdout; for a Ladder its step, the least improvement announced."""
        if self.mechanism == "ladder":
            return 1 / self._ladder[1]
        return (1 + self.overfit_at) * self.tolerance / 2

    @property
    def values(self) -> int | None:
        """g: answers from the holdout are rounded to 0, 1/g, …, 1; None for no rounding.

        For a Ladder, the number of steps. The grid is as coarse as the tolerance allows; where
        there is noise, (1−c)τ/3 of the tolerance is reserved for it.
        """
        if self.mechanism == "ladder":
            return self._ladder[1]
        if self.mechanism != "counting" or not math.isfinite(self.tolerance):
            return None
        tolerance, share = Fraction(self.tolerance), Fraction(self.overfit_at)
        return math.ceil((6 / (5 + 7 * share) if self.noise else 1 / (1 + share)) / tolerance)

    @property
    def epsilon(self) -> float:
        """The level of differential privacy at `samples` rows; infinite without noise.

        It is 0 where nothing is promised.
        """
        if not math.isfinite(self.tolerance):
            return 0.0
        return dp_level(self.samples, self.noise, self.overfits) if self.noise else math.inf

    @cached_property
    def bayesian_epsilon(self) -> float:
        """The level of Bayesian DP under the beliefs; infinite without noise."""
        if not 0 < self.epsilon < math.inf:
            return self.epsilon
        return bayesian_epsilon(self.beliefs, self.epsilon, self.samples)

    @property
    def beta(self) -> float:
        """β, the probability with which the promise may fail."""
        return 1 - self.confidence

    @property
    def feasible(self) -> bool:
        """Whether there are enough rows for a promise that is not vacuous."""
        enough = self.available is None or self.available >= self.samples
        return enough and not self.vacuous

    @property
    def vacuous(self) -> bool:
        """Whether always answering ½ would be as accurate."""
        return self.tolerance >= VACUOUS

    def holds(self) -> bool:
        """Whether noise and overfitting together break the promise with probability β at most.

        Theorem: docs/theory/counting.md, docs/theory/reusable-holdout.md
        """
        if self.mechanism == "fresh parts":
            return fresh_width(*self._terms) <= self.tolerance
        if self.mechanism == "ladder":
            return self._ladder[0] <= self.tolerance
        part, values = (1 - self.overfit_at) * self.tolerance, self.values
        terms = (self.beliefs, self.samples, self.queries, self.overfits)
        if values is not None and not self.noise:
            return counting_width(*terms, values, self.beta) <= part / 2
        blur = (3 + self.overfit_at) / 4 * self.tolerance
        blur -= 0 if values is None else 1 / (2 * values)
        noise_fails = noise_failure(
            self.noise, self.queries, self.overfits, part / 12, part / 6, blur
        )
        if noise_fails >= self.beta:
            return False
        if values is not None:
            return counting_width(*terms, values, self.beta - noise_fails) <= part / 4
        # Level 0 first: it fails fast, without a translation into Bayesian DP.
        return all(
            overfit_width(self.beliefs, self.samples, level, self.queries, self.beta - noise_fails)
            <= part / 4
            for level in (0.0, self.epsilon)
        )

    @property
    def _terms(self) -> tuple[tuple[Belief, ...] | None, int, int, float]:
        return self.beliefs, self.samples, self.queries, self.beta

    @cached_property
    def _ladder(self) -> tuple[float, int]:
        return least_width(*self._terms)

    def explain(self) -> str:
        """Return the mechanism, its promise, what it takes, and the alternatives."""
        return plan_text(self)

    def to_json(self) -> str:
        """Write the plan as a document of schema `quiltwork/holdout-plan`."""
        return files.dump("holdout-plan", 2, {**self.body(), "explanation": self.explain()})

    def table(self, samples: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Return (rows, tolerance) pairs: the tolerance for the same m, B and β at other sizes.

        Raises:
            InvalidInputError: if `samples` is not a list of numbers of rows.
        """
        usual = [max(2, round(self.samples * 10 ** (k / 2))) for k in range(-4, 3)]
        sizes = [parse_count(n, "samples") for n in listed(samples, "samples")] or usual
        return [(n, least_tolerance(replace(self, samples=n))) for n in sizes]

    def chart(self) -> LineChart:
        """Return tolerance against rows, beside the alternatives, as a chart."""
        return plan_chart(self)


def plan_holdout(
    beliefs: Belief | Sequence[Belief] | None = None,
    queries: int | None = None,
    overfits: int | None = None,
    tolerance: Number | None = None,
    confidence: Number = 0.95,
    overfit_at: Number = 0.5,
    samples: int | None = None,
    protect: str | None = None,
    mechanism: str | None = None,
) -> HoldoutPlan:
    """Plan a reusable holdout: leave out one of queries, overfits, tolerance and samples.

    Without `samples` it returns the least number of rows for the promise; with `samples` the least
    tolerance, or the most queries or overfits. Of the mechanisms that keep the promise it takes the
    one with the fewest rows, or the strongest promise. Leaving out `overfits` and one other asks
    only for the best score: a Ladder, which needs no training rows.

    Theorem: docs/theory/counting.md, docs/theory/reusable-holdout.md

    Args:
        beliefs: how the holdout's rows depend on each other; None for independent rows. Clusters
            stand for any number of rows with the same mix of cluster sizes.
        queries: m, the number of questions that will be asked, adaptively.
        overfits: B, how many of them may find that the training set overfits.
        tolerance: τ in (0, 1), the largest error of an answer.
        confidence: 1 − β.
        overfit_at: the paper's c in Theorem 2, in (0, 1).
        samples: the number of rows there are.
        protect: "rows" if noise must protect them too; None for accuracy alone.
        mechanism: one of "counting", "max-information", "fresh parts" and "ladder"; None takes the
            best.

    Raises:
        InvalidInputError: unless exactly one of the four is left out, or for values out of range.
        UnsupportedError: if no concentration inequality is proven for the belief.

    >>> plan = plan_holdout(queries=100, overfits=5, tolerance=0.1)
    >>> plan.samples, plan.mechanism, round(plan.threshold, 3), plan.feasible
    (24121, 'counting', 0.075, True)
    >>> round(plan_holdout(queries=100, overfits=5, samples=10_000).tolerance, 4)
    0.1523
    >>> plan_holdout(queries=100, overfits=5, tolerance=0.1, protect="rows").samples
    98968
    >>> board = plan_holdout(queries=100, tolerance=0.1)
    >>> board.samples, board.mechanism
    (7714, 'ladder')
    """
    members = None if beliefs is None else as_beliefs(beliefs)
    share, overfit_share = (
        parse_share(confidence, "confidence"),
        parse_share(overfit_at, "overfit_at"),
    )
    given = {"queries": queries, "overfits": overfits, "tolerance": tolerance, "samples": samples}
    missing = [name for name, value in given.items() if value is None]
    board = mechanism == "ladder" or (mechanism is None and len(missing) == 2)
    if board and overfits is None:
        missing.remove("overfits")
    if len(missing) != 1 or (board and overfits is not None):
        raise InvalidInputError(
            "Give all but one of queries, overfits, tolerance and samples; or for a ladder, which "
            "reports improvements only, all but one of queries, tolerance and samples. Left out: "
            f"{', '.join(missing) or 'none'}."
        )
    # A belief about a fixed number of rows says how many there are; the smallest one limits all.
    lengths = [belief.length for belief in members or () if belief.length]
    draft = HoldoutPlan(
        members,
        1 if queries is None else parse_count(queries, "queries"),
        int(not board) if overfits is None else parse_count(overfits, "overfits"),
        1.0 if tolerance is None else _tolerance(tolerance),
        share,
        overfit_share,
        1 if samples is None else parse_count(samples, "samples"),
        min(lengths, default=None) if samples is None else samples,
        missing[0],
        None if protect is None else choice(protect, ("rows",), "protect"),
    )
    if queries is not None and overfits is not None and overfits > queries:
        raise InvalidInputError(
            f"overfits is {overfits}, more than the {queries} queries; give at most the number of "
            "queries."
        )
    if board:
        return _solved(replace(draft, mechanism="ladder"))
    if mechanism is not None:
        return _solved(replace(draft, mechanism=choice(mechanism, MECHANISMS, "mechanism")))
    return _best(draft)


def _best(draft: HoldoutPlan) -> HoldoutPlan:
    """Return the plan of the best mechanism; max-information is never better without noise."""
    names = ("counting", "fresh parts" if draft.protect is None else "max-information")
    plans, refusals = [], []
    for name in names:
        try:
            plans.append(_solved(replace(draft, mechanism=name)))
        except QuiltworkError as problem:
            refusals.append(problem)
    if not plans:
        raise refusals[0]
    # Fewer rows and smaller tolerances are better, more questions are.
    sign = 1 if draft.solved_for in ("samples", "tolerance") else -1
    return min(plans, key=lambda plan: sign * getattr(plan, plan.solved_for))


def _solved(draft: HoldoutPlan) -> HoldoutPlan:
    if draft.mechanism in ("fresh parts", "ladder") and draft.protect is not None:
        raise UnsupportedError(
            f"The mechanism {draft.mechanism!r} has no noise and protects no row. Leave out "
            "protect, or choose another mechanism."
        )
    if draft.solved_for == "tolerance":
        return replace(draft, tolerance=least_tolerance(draft))
    if draft.solved_for == "samples":
        return replace(draft, samples=_least_rows(draft))
    return _most_questions(draft)


def _most_questions(draft: HoldoutPlan) -> HoldoutPlan:
    """Return the plan with the most queries, or overfits, for which the promise holds."""
    quantity = draft.solved_for
    start = max(1, draft.overfits) if quantity == "queries" else 1
    most = draft.queries if quantity == "overfits" else MOST

    def plan_with(value: int) -> HoldoutPlan:
        changed: dict[str, Any] = {quantity: value}
        return replace(draft, **changed)

    first_failing = _least(lambda value: not plan_with(value).holds(), start, most)
    if first_failing == start:
        smallest = plan_with(start)
        needed, best = _least_rows(smallest), least_tolerance(smallest)
        raise InvalidInputError(
            f"{draft.samples:,} rows do not give tolerance {draft.tolerance:g} even for "
            f"{start} {quantity}: that takes {needed:,} rows"
            + (f", or tolerance {best:.3g}." if best < VACUOUS else ".")
        )
    return plan_with(most if first_failing is None else first_failing - 1)


def _least_rows(draft: HoldoutPlan) -> int:
    most = _most_rows(draft.beliefs)
    if not replace(draft, samples=most).holds():
        shown = "2^60" if most == MOST else f"{most:,}"
        raise UnsupportedError(
            f"No number of rows up to {shown} gives tolerance {draft.tolerance:g} under this "
            "belief; give a larger tolerance."
        )
    return _least(lambda n: replace(draft, samples=n).holds(), 1, most) or most


def _most_rows(beliefs: tuple[Belief, ...] | None) -> int:
    """Return the largest number of rows to plan with: 2^60, or the longest series of a chain."""
    if all(belief.length is not None for belief in beliefs or ()):
        return MOST
    from quiltwork.influence.calibration_arguments import LONGEST

    return LONGEST


def least_tolerance(draft: HoldoutPlan) -> float:
    """Return the least tolerance that a plan's mechanism keeps; infinite if it keeps none."""
    low, high = 0.0, 1e-6
    while not replace(draft, tolerance=high).holds():
        low, high = high, 2 * high
        if high > _WIDEST:
            return math.inf
    # To four digits: a plan prints no more.
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if replace(draft, tolerance=middle).holds() else (middle, high)
    return high


def _least(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """Return the first value in start..most from which the condition holds; None if none."""
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
    tolerance = proper_fraction(value, "tolerance")
    if tolerance < _LEAST_TOLERANCE:
        raise InvalidInputError(
            f"tolerance is {shortened(value)}, which no number of rows up to 2^60 gives; give 1e-9 "
            "or more."
        )
    return float(tolerance)


def fixed_questions_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the error width for m questions that were all fixed before the first answer."""
    return overfit_width(beliefs, rows, 0.0, questions, 2 * beta)


_USES = {
    "counting": "answers from the holdout are rounded to few public values",
    "max-information": "answers from the holdout carry noise",
    "fresh parts": "every question gets its own rows, used once",
    "ladder": "only clear improvements of the best score are published, rounded",
}


def plan_text(plan: HoldoutPlan) -> str:
    """Return the mechanism, its promise, what it takes, and the alternatives."""
    overfitting = f" of which {plan.overfits:,} may overfit" if plan.overfits else ""
    if not math.isfinite(plan.tolerance):
        nothing = (
            f"Promise: none. {plan.samples:,} rows are too few for {plan.queries:,} adaptive "
            f"questions{overfitting}, at any tolerance. This is vacuous: always answering 1/2 errs "
            "by at most 0.5."
        )
        return "\n".join([nothing, *alternatives_text(plan)])
    bound, stock = concentration(plan.beliefs), ""
    if plan.available is not None:
        enough = plan.available >= plan.samples
        stock = f", {'' if enough else 'only '}{plan.available:,} available"
        stock += "" if enough else ": the promise does not hold"
    lines = [
        f"Use {plan.mechanism} for {plan.queries:,} questions{overfitting}, and {plan.samples:,} "
        f"rows: {_USES[plan.mechanism]}.",
        f"Promise: with probability {plan.confidence:g}, {_promised(plan)}.",
        *coarse_warning(plan),
        *_settings(plan),
        *_selection_bias_text(plan),
        f"Concentration: {bound.theorem}; rows count as {bound.independent_rows:.4g} "
        "independent ones each.",
        f"Rows: {plan.samples:,} needed{stock}.",
    ]
    if plan.vacuous:
        lines.append(
            "The promise is vacuous: always answering 1/2 errs by at most 0.5, however the "
            "questions are chosen."
        )
    return "\n".join([*lines, *alternatives_text(plan)])


COARSE = 0.1
"""A larger tolerance is too coarse to choose between models."""


def coarse_warning(plan: HoldoutPlan) -> list[str]:
    """Return what to use instead of a promise too coarse to choose models by."""
    if not COARSE < plan.tolerance < VACUOUS:
        return []
    rows = plan.available or plan.samples
    single_use = fixed_questions_width(plan.beliefs, rows, 1, plan.beta)
    ladder = least_width(plan.beliefs, rows, plan.queries, plan.beta)[0]
    advice = (
        "Too coarse to choose models by: a model that is worse by "
        f"{2 * plan.tolerance:.2g} may come out ahead. Use "
    )
    if ladder < plan.tolerance and plan.mechanism != "ladder":
        advice += f"a Ladder if you only need the best score (within {ladder:.3g}), or "
    return [
        f"{advice}a plain holdout for the one model chosen on the training rows (within "
        f"{single_use:.3g})."
    ]


def _selection_bias_text(plan: HoldoutPlan) -> list[str]:
    """Return how much scores of models chosen on the training rows may exceed the truth."""
    if plan.mechanism not in ("counting", "max-information"):
        return []
    return [
        "While training rows and holdout differ by less than T, the training score is the answer: "
        "features or models chosen on the training rows are overestimated by up to "
        f"{plan.threshold:.3g}. A plain holdout asked once has no such bias."
    ]


def _promised(plan: HoldoutPlan) -> str:
    if plan.mechanism == "ladder":
        return (
            f"the best score of {plan.queries:,} submissions is at every moment within "
            f"{plan.tolerance:.4g} of the best true one so far"
        )
    return (
        f"every answer to {plan.queries:,} adaptive questions is within {plan.tolerance:.4g} of "
        f"the true value, as long as fewer than {plan.overfits:,} overfit by "
        f"{plan.overfit_at * plan.tolerance:.4g} or more"
    )


def _settings(plan: HoldoutPlan) -> list[str]:
    if plan.mechanism == "fresh parts":
        return [f"Settings: {plan.samples // plan.queries:,} rows for each question."]
    if plan.mechanism == "ladder":
        board = f"Settings: {plan.values} steps, {plan.queries:,} submissions"
        return [f"{board}; no training rows are needed, and no row is protected."]
    grid = "" if plan.values is None else f", answers rounded to steps of 1/{plan.values}"
    level = (
        "Level: none; rows are not protected. Plan with "
        f"{argument('protect', 'rows')} if they must be."
    )
    if plan.noise:
        level = (
            f"Level: {plan.epsilon:.4g}-DP for replacing a row, {plan.bayesian_epsilon:.4g}-"
            "Bayesian DP under the belief."
        )
    settings = f"Settings: threshold T = {plan.threshold:.6g}, noise sigma = {plan.noise:.6g}"
    if plan.noise:
        settings += (
            f" (answers have noise of standard deviation {math.sqrt(2) * 4 * plan.noise:.3g})"
        )
    return [f"{settings}{grid}.", level]


def alternatives_text(plan: HoldoutPlan) -> list[str]:
    """Return what else as many rows could promise, and for which questions."""
    rows = plan.available or plan.samples
    terms = (plan.beliefs, rows, plan.queries, plan.beta)
    same_rows = replace(plan, samples=rows)
    numbers = ("counting", "max-information") if not plan.overfits else ()
    others = [name for name in MECHANISMS if name not in (plan.mechanism, *numbers)]
    return [
        f"Alternatives with {rows:,} rows, same confidence:",
        *(f"  {_NAMES[name]}: {_possible(replace(same_rows, mechanism=name))}" for name in others),
        *(["  a score for every submission: give how many may overfit"] if numbers else []),
        '  one bit for each submission ("better than the best, or not"): '
        f"{_within(least_width(*terms, width=verdict_width)[0])}",
        "  questions all fixed in advance, none adaptive: "
        f"{_within(fixed_questions_width(*terms))}",
        "  a plain holdout, asked once, for the one model chosen without it: "
        f"{_within(fixed_questions_width(plan.beliefs, rows, 1, plan.beta))}",
    ]


_NAMES = {
    "counting": "counting, answers rounded",
    "max-information": "max-information, answers with noise",
    "fresh parts": "a fresh part of the rows for every question",
    "ladder": "a Ladder, best score only",
}


def _possible(plan: HoldoutPlan) -> str:
    try:
        return _within(least_tolerance(plan))
    except UnsupportedError:
        return "not proven for this belief"


def _within(width: float) -> str:
    if not math.isfinite(width):
        return "nothing, too few rows"
    return f"within {width:.4g}" + (" (vacuous)" if width >= VACUOUS else "")


def plan_chart(plan: HoldoutPlan) -> LineChart:
    """Return the tolerance for growing numbers of rows, beside the alternatives, as a chart."""
    beta = 1 - plan.confidence
    this_plan = plan.table()
    others = {
        "Ladder, best score only": lambda *given: least_width(*given)[0],
        "questions fixed in advance": fixed_questions_width,
    }
    if plan.mechanism == "ladder":
        del others["Ladder, best score only"]
    name = f"{plan.mechanism}, {plan.overfits:,} overfits" if plan.overfits else "Ladder"
    lines = [Line(name, tuple(this_plan))]
    for name, width in others.items():
        points = tuple((n, width(plan.beliefs, n, plan.queries, beta)) for n, _ in this_plan)
        lines.append(Line(name, points))
    return LineChart(
        f"{plan.queries:,} adaptive questions, confidence {plan.confidence:g}",
        f"A tolerance of {VACUOUS:g} or more is vacuous.",
        "rows of the holdout",
        "tolerance of every answer",
        (*lines, level("vacuous from here on", VACUOUS, lines)),
        log_x=True,
        log_y=True,
    )
