"""Figures: what a plan trades."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.holdout.alternatives import fixed_questions_width, splitting_width
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import ladder_width
from quiltwork.report.plots import titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.holdout.planning import HoldoutPlan


def plan_figure(plan: HoldoutPlan) -> Figure:
    """Draw the tolerance that growing numbers of rows give, beside the alternatives.

    Raises:
        UnsupportedError: without matplotlib.
    """
    title = f"{plan.queries:,} adaptive questions, confidence {plan.confidence:g}"
    figure, axes = titled_axes(title, 7, 4.5)
    beta = 1 - plan.confidence
    ours = plan.table()
    sizes = [rows for rows, _ in ours]
    lines = {
        f"reusable holdout, {plan.overfits:,} overfits": [width for _, width in ours],
        "a part of the rows for each question": [
            splitting_width(plan.beliefs, n, plan.queries, beta) for n in sizes
        ],
        "Ladder, best score only": [
            ladder_width(plan.beliefs, n, plan.queries, beta) for n in sizes
        ],
        "questions fixed in advance": [
            fixed_questions_width(plan.beliefs, n, plan.queries, beta) for n in sizes
        ],
    }
    axes.set(xscale="log", yscale="log")
    for name, widths in lines.items():
        axes.plot(sizes, widths, marker="o", markersize=3, label=name)
    top = max(2 * VACUOUS, axes.get_ylim()[1])
    axes.axhspan(VACUOUS, top, color="0.92", label="vacuous")
    axes.set_ylim(top=top)
    axes.set_xlabel("rows of the holdout")
    axes.set_ylabel("tolerance of every answer")
    axes.legend(frameon=False, fontsize="small")
    return figure
