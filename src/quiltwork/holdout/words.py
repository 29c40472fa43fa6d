"""A plan in sentences: the promise, what it takes, and the alternatives at the same rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quiltwork.holdout.alternatives import (
    fixed_questions_width,
    lemma_1_rows,
    paper_quilt_rows,
    splitting_width,
)
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.ladder_bound import ladder_width

if TYPE_CHECKING:
    from quiltwork.holdout.planning import HoldoutPlan


def explain_plan(plan: HoldoutPlan) -> str:
    """Write the plan for a person."""
    if not math.isfinite(plan.tolerance):
        return "\n".join([_nothing(plan), *_alternatives(plan)])
    lines = [_promise(plan), *_cost(plan), _rows(plan)]
    if plan.vacuous:
        lines.append(
            "The promise is vacuous: always answering 1/2 errs by at most 0.5, however the "
            "questions are chosen."
        )
    return "\n".join([*lines, *_other_bounds(plan), *_alternatives(plan)])


def _promise(plan: HoldoutPlan) -> str:
    return (
        f"Promise: with probability {plan.confidence:g}, every answer to {plan.queries:,} "
        f"adaptive questions is within {plan.tolerance:.4g} of the truth, as long as fewer than "
        f"{plan.overfits:,} overfit by {plan.overfit_at * plan.tolerance:.4g} or more."
    )


def _nothing(plan: HoldoutPlan) -> str:
    return (
        f"Promise: none. {plan.samples:,} rows are too few for {plan.queries:,} adaptive questions "
        f"of which {plan.overfits:,} may overfit, however far answers may be off. This is vacuous: "
        "always answering 1/2 errs by at most 0.5."
    )


def _cost(plan: HoldoutPlan) -> list[str]:
    found = concentration(plan.beliefs)
    return [
        f"Settings: threshold T = {plan.threshold:.6g}, noise sigma = {plan.noise:.6g}.",
        f"Level: {plan.epsilon:.4g}-DP for replacing a row, {plan.bayesian_epsilon:.4g}-Bayesian "
        f"DP under the belief. Concentration: {found.theorem}; rows count as "
        f"{found.independent_rows:.4g} independent ones each.",
    ]


def _rows(plan: HoldoutPlan) -> str:
    text = f"Rows: {plan.samples:,}"
    if plan.available is None:
        return f"{text} needed."
    if plan.available >= plan.samples:
        return f"{text} needed, {plan.available:,} there."
    return f"{text} needed, only {plan.available:,} there: the promise does not hold."


def _other_bounds(plan: HoldoutPlan) -> list[str]:
    """Name what coarser bounds would ask for, where the rows were the question."""
    if plan.solved_for != "samples":
        return []
    beta = 1 - plan.confidence
    part = (1 - plan.overfit_at) * plan.tolerance / 4
    share = beta / (2 * plan.queries)
    rate = concentration(plan.beliefs).rate
    lines = []
    if plan.beliefs is None:
        by_paper = math.ceil(paper_quilt_rows(plan.overfits, plan.noise, part, share))
        lines.append(f"  by the paper's constants, equations (7) and (8): {by_paper:,} rows")
    by_lemma = lemma_1_rows(rate, plan.overfits, plan.noise, part, share)
    if _only_clusters(plan):
        lines.append(f"  by Lemma 1 with its constant mended: {math.ceil(by_lemma):,} rows")
    return ["Other bounds:", *lines] if lines else []


def _only_clusters(plan: HoldoutPlan) -> bool:
    """Tell whether rows are independent, or come in clusters."""
    from quiltwork.beliefs import Clusters

    return all(isinstance(belief, Clusters) for belief in plan.beliefs or ())


def _alternatives(plan: HoldoutPlan) -> list[str]:
    rows = plan.available or plan.samples
    beta = 1 - plan.confidence
    split = splitting_width(plan.beliefs, rows, plan.queries, beta)
    fixed = fixed_questions_width(plan.beliefs, rows, plan.queries, beta)
    board = ladder_width(plan.beliefs, rows, plan.queries, beta)
    return [
        f"Alternatives with {rows:,} rows, same confidence:",
        f"  a fresh part of the rows for every question: {_width(split)}",
        f"  a Ladder of {plan.queries:,} submissions (best score only): {_width(board)}",
        f"  questions all fixed in advance, none adaptive: {_width(fixed)}",
    ]


def _width(value: float) -> str:
    if not math.isfinite(value):
        return "impossible, less than one row each"
    return f"within {value:.4g}" + (" (vacuous)" if value >= 0.5 else "")
