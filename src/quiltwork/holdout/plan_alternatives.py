"""A plan in words, and what it is compared with: a Ladder, one bit, fixed questions.

All are closed formulae.

Theorem: docs/theory/reusable-holdout.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quiltwork.beliefs import Belief
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.guarantee import VACUOUS, overfit_width
from quiltwork.holdout.ladder import least_width
from quiltwork.holdout.one_bit import verdict_width
from quiltwork.report.charts import Line, LineChart, level
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.holdout.holdout_plan import HoldoutPlan


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
    from quiltwork.holdout.holdout_plan import MECHANISMS

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
    from quiltwork.holdout.holdout_plan import least_tolerance

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
