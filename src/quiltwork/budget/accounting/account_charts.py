"""Accounts and plans as charts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quiltwork.report.charts import Line, LineChart, level, steps

if TYPE_CHECKING:
    from quiltwork.budget.accounting.planning import ReleasePlan
    from quiltwork.budget.accounting.worst_point import LeakageProfile


def profile_chart(profile: LeakageProfile, total: float, budget: float | None) -> LineChart:
    """Return the leakage of every time point as steps, with total and budget as lines."""
    leaked = steps(profile.first - 0.5, profile.last[-1] + 0.5, profile.epsilon)
    lines = [replace(leaked, name="leaked"), level(f"total {total:.4g}", total, [leaked])]
    if budget is not None:
        lines.append(level(f"budget {budget:.4g}", budget, [leaked]))
    return LineChart(
        "What each time point leaks",
        f"All releases together leak {total:.4g} about the worst time point.",
        "time point",
        "ε",
        tuple(lines),
    )


def plan_chart(plan: ReleasePlan) -> LineChart:
    """Return the expected error of every release, as planned and with the budget split evenly."""
    names = tuple(dict.fromkeys(item.kind for item in plan.items))
    places = [(names.index(item.kind), item) for item in plan.items]
    ranges = {place: item.signal_range for place, item in reversed(places)}
    return LineChart(
        f"Expected errors with ε = {float(plan.budget):.4g}",
        "One dot per release, beside the range that its signal can have.",
        "",
        "expected error of one cell",
        (
            _dots("joint plan", [(at - 0.12, item.expected_error) for at, item in places]),
            _dots("budget split evenly", [(at, item.naive_error) for at, item in places]),
            _dots("range of the signal", [(at + 0.12, most) for at, most in ranges.items()]),
        ),
        log_y=True,
        x_names=names,
    )


def _dots(name: str, points: list[tuple[float, float]]) -> Line:
    return Line(name, tuple(dict.fromkeys((float(x), float(y)) for x, y in points)), marks=True)
