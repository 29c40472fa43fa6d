"""`plan_holdout`: how many rows a promise takes, or what the rows there are can promise.

With T = (1+c)τ/2 every answer is within τ of the truth while fewer than B questions overfit by cτ.
Three mechanisms keep that promise: *counting* (answers rounded to few values, with noise only where
rows must be protected), *max-information* (Algorithm 1 with σ = (1−c)τ/(12·ln(4m/β))) and *fresh
parts* of the rows. Who leaves out B asks for the best score only, which a *ladder* keeps.
A plan says what the same rows could promise otherwise, and where its promise is too coarse to
choose models by. All conditions are monotone in n, τ, m and B, so each is found by bisection; a
step is a closed formula, for max-information on chains a translation into Bayesian DP.

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
from quiltwork.holdout.algorithm import MOST, read_count
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import counting_width, fresh_width
from quiltwork.holdout.guarantee import (
    VACUOUS,
    bayesian_epsilon,
    dp_level,
    noise_failure,
    overfit_width,
    read_share,
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
    """A promise and what it takes.

    Attributes:
        beliefs: how rows depend on each other; None for independent rows.
        queries: m, the number of questions.
        overfits: B, how many of them may overfit the training set; 0 for a Ladder.
        tolerance: τ, how far an answer may be from the truth; infinite where nothing is promised.
        confidence: 1 − β.
        overfit_at: c, a question overfits if its training value is off by cτ.
        samples: the rows it takes.
        available: the rows there are, or None if nothing says so.
        solved_for: which of samples, tolerance, queries and overfits was looked for.
        protect: "rows" where noise must protect them, None where accuracy is all.
        mechanism: "counting", "max-information", "fresh parts" or "ladder": what keeps the promise.
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
        """σ for the holdout; 0 where nothing but accuracy is promised."""
        if self.protect is None and self.mechanism != "max-information":
            return 0.0
        spread = 12 * math.log(4 * self.queries / self.beta)
        return (1 - self.overfit_at) * self.tolerance / spread

    @property
    def threshold(self) -> float:
        """T for the holdout; for a Ladder its step, by which the best must be beaten."""
        if self.mechanism == "ladder":
            return 1 / self._ladder[1]
        return (1 + self.overfit_at) * self.tolerance / 2

    @property
    def values(self) -> int | None:
        """g: answers from the holdout are rounded to 0, 1/g, …, 1; None where they are not.

        Of a Ladder the number of steps.
        As coarse as the tolerance allows; (1−c)τ/3 of it is the noise's, where there is noise.
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
        """Whether the promise holds: what noise may fail with, and what remains for overfitting.

        Theorem: docs/theory/counting.md, docs/theory/reusable-holdout.md
        """
        if self.mechanism == "fresh parts":
            return fresh_width(*self._asked) <= self.tolerance
        if self.mechanism == "ladder":
            return self._ladder[0] <= self.tolerance
        part, values = (1 - self.overfit_at) * self.tolerance, self.values
        asked = (self.beliefs, self.samples, self.queries, self.overfits)
        if values is not None and not self.noise:
            return counting_width(*asked, values, self.beta) <= part / 2
        blur = (3 + self.overfit_at) / 4 * self.tolerance
        blur -= 0 if values is None else 1 / (2 * values)
        failing = noise_failure(self.noise, self.queries, self.overfits, part / 12, part / 6, blur)
        if failing >= self.beta:
            return False
        if values is not None:
            return counting_width(*asked, values, self.beta - failing) <= part / 4
        # Without what the answers tell first: it takes no translation into Bayesian DP.
        return all(
            overfit_width(self.beliefs, self.samples, level, self.queries, self.beta - failing)
            <= part / 4
            for level in (0.0, self.epsilon)
        )

    @property
    def _asked(self) -> tuple[tuple[Belief, ...] | None, int, int, float]:
        return self.beliefs, self.samples, self.queries, self.beta

    @cached_property
    def _ladder(self) -> tuple[float, int]:
        return least_width(*self._asked)

    def explain(self) -> str:
        """Say what to use, what it promises, what it takes, and what the alternatives give."""
        return explained(self)

    def to_json(self) -> str:
        """Write the plan as a document of schema `quiltwork/holdout-plan`."""
        return files.dump("holdout-plan", 2, {**self.body(), "explanation": self.explain()})

    def table(self, samples: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Return (rows, tolerance) pairs: what the same m, B and β give at other sizes.

        Raises:
            InvalidInputError: if `samples` is no list of numbers of rows.
        """
        usual = [max(2, round(self.samples * 10 ** (k / 2))) for k in range(-4, 3)]
        sizes = [read_count(n, "samples") for n in listed(samples, "samples")] or usual
        return [(n, least_tolerance(replace(self, samples=n))) for n in sizes]

    def chart(self) -> LineChart:
        """Describe tolerance against rows beside the alternatives."""
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

    Without `samples` it finds the rows that the promise takes. With `samples` it finds the least
    tolerance, or the most queries or overfits. Of the mechanisms that keep the promise it takes the
    one that does so with the fewest rows, or promises most. Who leaves out `overfits` and one more
    asks for no score but the best: that is a Ladder, which takes no training rows.

    Theorem: docs/theory/counting.md, docs/theory/reusable-holdout.md

    Args:
        beliefs: how the holdout's rows depend on each other; None for independent rows. Clusters
            stand for any number of rows with the same mix of cluster sizes.
        queries: m, the number of questions that will be asked, adaptively.
        overfits: B, how many of them may find that the training set overfits; None besides another
            for a board that reports improvements only.
        tolerance: τ in (0, 1).
        confidence: 1 − β.
        overfit_at: the paper's c in Theorem 2, in (0, 1).
        samples: the rows there are.
        protect: "rows" if noise must protect them too; None asks for accuracy alone.
        mechanism: one of "counting", "max-information", "fresh parts" and "ladder", or None for
            the best.

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
    share, fixed = read_share(confidence, "confidence"), read_share(overfit_at, "overfit_at")
    asked = {"queries": queries, "overfits": overfits, "tolerance": tolerance, "samples": samples}
    missing = [name for name, value in asked.items() if value is None]
    board = mechanism == "ladder" or (mechanism is None and len(missing) == 2)
    if board and overfits is None:
        missing.remove("overfits")
    if len(missing) != 1 or (board and overfits is not None):
        raise InvalidInputError(
            "Give all but one of queries, overfits, tolerance and samples, or for a ladder, which "
            "reports improvements only, all but one of queries, tolerance and samples; left out "
            f"here: {', '.join(missing) or 'none'}."
        )
    lengths = [belief.length for belief in members or () if belief.length]
    draft = HoldoutPlan(
        members,
        1 if queries is None else read_count(queries, "queries"),
        int(not board) if overfits is None else read_count(overfits, "overfits"),
        1.0 if tolerance is None else _tolerance(tolerance),
        share,
        fixed,
        1 if samples is None else read_count(samples, "samples"),
        min(lengths, default=None) if samples is None else samples,
        missing[0],
        None if protect is None else choice(protect, ("rows",), "protect"),
    )
    if queries is not None and overfits is not None and overfits > queries:
        raise InvalidInputError(
            f"overfits is {overfits}, more than the {queries} queries; at most every question can "
            "overfit."
        )
    if board:
        return _solved(replace(draft, mechanism="ladder"))
    if mechanism is not None:
        return _solved(replace(draft, mechanism=choice(mechanism, MECHANISMS, "mechanism")))
    return _best(draft)


def _best(draft: HoldoutPlan) -> HoldoutPlan:
    """The plan of the mechanism that gives most; max-information never does without noise."""
    names = ("counting", "fresh parts" if draft.protect is None else "max-information")
    found, refusals = [], []
    for name in names:
        try:
            found.append(_solved(replace(draft, mechanism=name)))
        except QuiltworkError as problem:
            refusals.append(problem)
    if not found:
        raise refusals[0]
    sign = 1 if draft.solved_for in ("samples", "tolerance") else -1
    return min(found, key=lambda plan: sign * getattr(plan, plan.solved_for))


def _solved(draft: HoldoutPlan) -> HoldoutPlan:
    if draft.mechanism in ("fresh parts", "ladder") and draft.protect is not None:
        raise UnsupportedError(
            f"By {draft.mechanism} answers carry no noise and protect no row. Leave out protect, "
            "or take another mechanism."
        )
    if draft.solved_for == "tolerance":
        return replace(draft, tolerance=least_tolerance(draft))
    if draft.solved_for == "samples":
        return replace(draft, samples=_least_rows(draft))
    return _most_questions(draft)


def _most_questions(draft: HoldoutPlan) -> HoldoutPlan:
    """Return the plan with the most queries or overfits for which it holds."""
    unknown = draft.solved_for
    start = max(1, draft.overfits) if unknown == "queries" else 1
    most = draft.queries if unknown == "overfits" else MOST

    def at(value: int) -> HoldoutPlan:
        changed: dict[str, Any] = {unknown: value}
        return replace(draft, **changed)

    first_failing = _least(lambda value: not at(value).holds(), start, most)
    if first_failing == start:
        one = at(start)
        needed, best = _least_rows(one), least_tolerance(one)
        raise InvalidInputError(
            f"{draft.samples:,} rows do not give tolerance {draft.tolerance:g} even for "
            f"{start} {unknown}: that takes {needed:,} rows"
            + (f", or tolerance {best:.3g}." if best < VACUOUS else ".")
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
    from quiltwork.influence.calibration_arguments import LONGEST

    return LONGEST


def least_tolerance(draft: HoldoutPlan) -> float:
    """Return the least tolerance that a plan's mechanism keeps, infinite if it keeps none."""
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
    tolerance = proper_fraction(value, "tolerance")
    if tolerance < _LEAST_TOLERANCE:
        raise InvalidInputError(
            f"tolerance is {shortened(value)}, which no number of rows up to 2^60 gives; ask for "
            "1e-9 or more."
        )
    return float(tolerance)


def fixed_questions_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the width for m questions that were all fixed before the first answer."""
    return overfit_width(beliefs, rows, 0.0, questions, 2 * beta)


_USES = {
    "counting": "answers from the holdout are rounded to few public values",
    "max-information": "answers from the holdout carry noise",
    "fresh parts": "every question gets rows of its own, used once",
    "ladder": "only what clearly beats the best is told, rounded",
}


def explained(plan: HoldoutPlan) -> str:
    """Say what to use, what it promises, what it takes, and what the alternatives give."""
    overfitting = f" of which {plan.overfits:,} may overfit" if plan.overfits else ""
    if not math.isfinite(plan.tolerance):
        nothing = (
            f"Promise: none. {plan.samples:,} rows are too few for {plan.queries:,} adaptive "
            f"questions{overfitting}, however far answers may be off. This is vacuous: always "
            "answering 1/2 errs by at most 0.5."
        )
        return "\n".join([nothing, *other_ways(plan)])
    found, there = concentration(plan.beliefs), ""
    if plan.available is not None:
        enough = plan.available >= plan.samples
        there = f", {'' if enough else 'only '}{plan.available:,} there"
        there += "" if enough else ": the promise does not hold"
    lines = [
        f"Use {plan.mechanism} for {plan.queries:,} questions{overfitting}, and {plan.samples:,} "
        f"rows: {_USES[plan.mechanism]}.",
        f"Promise: with probability {plan.confidence:g}, {_promised(plan)}.",
        *too_coarse(plan),
        *_settings(plan),
        *_praise(plan),
        f"Concentration: {found.theorem}; rows count as {found.independent_rows:.4g} "
        "independent ones each.",
        f"Rows: {plan.samples:,} needed{there}.",
    ]
    if plan.vacuous:
        lines.append(
            "The promise is vacuous: always answering 1/2 errs by at most 0.5, however the "
            "questions are chosen."
        )
    return "\n".join([*lines, *other_ways(plan)])


COARSE = 0.1
"""Answers that may be off by more do not choose between models."""


def too_coarse(plan: HoldoutPlan) -> list[str]:
    """Say of a promise that is too weak to choose models by what to take instead."""
    if not COARSE < plan.tolerance < VACUOUS:
        return []
    rows = plan.available or plan.samples
    once = fixed_questions_width(plan.beliefs, rows, 1, plan.beta)
    best_only = least_width(plan.beliefs, rows, plan.queries, plan.beta)[0]
    told = (
        "Too coarse to choose models by: of two, one that is worse by "
        f"{2 * plan.tolerance:.2g} may come out ahead. Take "
    )
    if best_only < plan.tolerance and plan.mechanism != "ladder":
        told += f"a Ladder if the best score is enough (within {best_only:.3g}), or "
    return [
        f"{told}a plain holdout for the one model that the training rows have chosen (within "
        f"{once:.3g})."
    ]


def _praise(plan: HoldoutPlan) -> list[str]:
    """Say what a climber gains who chooses on the training rows."""
    if plan.mechanism not in ("counting", "max-information"):
        return []
    return [
        "While both differ by less than T a score is told as it is on the training rows: features "
        f"or models that were chosen on these are praised by up to {plan.threshold:.3g}. A plain "
        "holdout asked once does not do that."
    ]


def _promised(plan: HoldoutPlan) -> str:
    if plan.mechanism == "ladder":
        return (
            f"the best score of {plan.queries:,} submissions is at every moment within "
            f"{plan.tolerance:.4g} of the best true one so far"
        )
    return (
        f"every answer to {plan.queries:,} adaptive questions is within {plan.tolerance:.4g} of "
        f"the truth, as long as fewer than {plan.overfits:,} overfit by "
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
    told = f"Settings: threshold T = {plan.threshold:.6g}, noise sigma = {plan.noise:.6g}"
    if plan.noise:
        told += f" (answers have noise of standard deviation {math.sqrt(2) * 4 * plan.noise:.3g})"
    return [f"{told}{grid}.", level]


def other_ways(plan: HoldoutPlan) -> list[str]:
    """Say what else as many rows could promise, and for which questions."""
    rows = plan.available or plan.samples
    given = (plan.beliefs, rows, plan.queries, plan.beta)
    here = replace(plan, samples=rows)
    numbers = ("counting", "max-information") if not plan.overfits else ()
    others = [name for name in MECHANISMS if name not in (plan.mechanism, *numbers)]
    return [
        f"Alternatives with {rows:,} rows, same confidence:",
        *(f"  {_NAMES[name]}: {_possible(replace(here, mechanism=name))}" for name in others),
        *(["  a score for every submission: say how many may overfit"] if numbers else []),
        '  one bit for each submission ("better than the best, or not"): '
        f"{_within(least_width(*given, width=verdict_width)[0])}",
        "  questions all fixed in advance, none adaptive: "
        f"{_within(fixed_questions_width(*given))}",
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
    """Return the tolerance that growing numbers of rows give, beside the alternatives."""
    beta = 1 - plan.confidence
    ours = plan.table()
    others = {
        "Ladder, best score only": lambda *given: least_width(*given)[0],
        "questions fixed in advance": fixed_questions_width,
    }
    if plan.mechanism == "ladder":
        del others["Ladder, best score only"]
    name = f"{plan.mechanism}, {plan.overfits:,} overfits" if plan.overfits else "Ladder"
    lines = [Line(name, tuple(ours))]
    for name, width in others.items():
        found = tuple((n, width(plan.beliefs, n, plan.queries, beta)) for n, _ in ours)
        lines.append(Line(name, found))
    return LineChart(
        f"{plan.queries:,} adaptive questions, confidence {plan.confidence:g}",
        f"A tolerance of {VACUOUS:g} or more says nothing.",
        "rows of the holdout",
        "tolerance of every answer",
        (*lines, level("vacuous from here on", VACUOUS, lines)),
        log_x=True,
        log_y=True,
    )
