"""A plan as a chart: what it trades."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.holdout.alternatives import fixed_questions_width, splitting_width
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import ladder_width
from quiltwork.report.charts import Line, LineChart, level

if TYPE_CHECKING:
    from quiltwork.holdout.planning import HoldoutPlan


def plan_chart(plan: HoldoutPlan) -> LineChart:
    """Return the tolerance that growing numbers of rows give, beside the alternatives."""
    beta = 1 - plan.confidence
    ours = plan.table()
    others = {
        "a part of the rows for each question": splitting_width,
        "Ladder, best score only": ladder_width,
        "questions fixed in advance": fixed_questions_width,
    }
    lines = [Line(f"reusable holdout, {plan.overfits:,} overfits", tuple(ours))]
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
