"""Figures of accounts and plans; they need the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.report.plots import COLOURS, titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.budget.accounting.leakage import LeakageProfile
    from quiltwork.budget.accounting.planning import ReleasePlan

_COLOUR, _OTHER, _THIRD = COLOURS[:3]


def profile_figure(profile: LeakageProfile, total: float, budget: float | None) -> Figure:
    """Draw the leakage of every time point as steps, with total and budget as lines."""
    figure, axes = titled_axes("What each time point leaks")
    edges = [*(profile.first - 0.5), profile.last[-1] + 0.5]
    axes.stairs(profile.epsilon, edges, color=_COLOUR, linewidth=1.5)
    axes.axhline(total, color=_OTHER, linewidth=1, linestyle="--", label=f"total {total:.4g}")
    if budget is not None:
        axes.axhline(budget, color=_THIRD, linewidth=1, label=f"budget {budget:.4g}")
    axes.set_xlabel("time point")
    axes.set_ylabel("ε", rotation=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def plan_figure(plan: ReleasePlan) -> Figure:
    """Draw the expected error of every release, as planned and with the budget split evenly."""
    figure, axes = titled_axes(f"Expected errors with ε = {float(plan.budget):.4g}")
    names = list(dict.fromkeys(item.kind for item in plan.items))
    for place, name in enumerate(names):
        items = [item for item in plan.items if item.kind == name]
        for errors, colour, shift, label in (
            ([i.expected_error for i in items], _COLOUR, -0.12, "joint plan"),
            ([i.naive_error for i in items], _OTHER, 0.12, "budget split evenly"),
        ):
            known = label if place == 0 else None
            axes.plot([place + shift] * len(errors), errors, "o", color=colour, label=known)
        axes.hlines(
            items[0].signal_range,
            place - 0.3,
            place + 0.3,
            color=_THIRD,
            linestyle="--",
            label="range of the signal" if place == 0 else None,
        )
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("expected error of one cell")
    axes.legend(frameon=False)
    return figure
