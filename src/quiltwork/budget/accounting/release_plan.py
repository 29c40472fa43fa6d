"""A plan of releases as a result: a table by kind of release, a verdict in words, a chart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.budget.accounting.schedule import Planned
from quiltwork.budget.spending import Spending
from quiltwork.exact import written_down, written_up
from quiltwork.results import ChartedResult

if TYPE_CHECKING:
    from quiltwork.report.charts import Line, LineChart

_ROUGH = 0.1

HEADER = (
    "kind",
    "releases",
    "points",
    "noise",
    "error",
    "range",
    "verdict",
    "cost alone",
    "split: noise",
    "split: error",
)


@dataclass(frozen=True)
class PlannedRelease:
    """One release of a plan: its noise, what it costs and how far off it will be.

    Attributes:
        planned: the query with its kind, label and weight.
        scale: of the noise to add to the query's integers (per range hi − lo for sums and means).
        spending: the record with which it is accounted for.
        cost_alone: what it would cost if it were the only release.
        expected_error: of one cell, in units of the answer.
        signal_range: how much one cell can vary at all.
        naive_scale: the noise if the budget were split evenly.
        naive_error: the expected error then.
    """

    planned: Planned
    scale: float
    spending: Spending
    cost_alone: float
    expected_error: float
    signal_range: float
    naive_scale: float
    naive_error: float

    @property
    def kind(self) -> str:
        """What it is one of."""
        return self.planned.kind

    @property
    def verdict(self) -> str:
        """ "useless" if the error exceeds the range of the signal, "rough" above a tenth of it."""
        return verdict(self.expected_error, self.signal_range)


def verdict(error: float, signal: float) -> str:
    """Judge an expected error by the range of the signal."""
    if error >= signal:
        return "useless"
    return "rough" if error >= _ROUGH * signal else "useful"


@dataclass(frozen=True)
class ReleasePlan(ChartedResult):
    """Releases with their noise, and their joint cost: `total`, at or below `budget`.

    What was released before is in the total; `spent` is what that cost by itself, rounded up.
    """

    drawn_at_once = False

    items: tuple[PlannedRelease, ...]
    budget: Fraction
    total: float
    spent: float = 0.0

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The records of all releases, in order."""
        return tuple(item.spending for item in self.items)

    @property
    def useless(self) -> tuple[PlannedRelease, ...]:
        """The releases whose error exceeds the range of their signal."""
        return tuple(item for item in self.items if item.verdict == "useless")

    def records(self) -> list[dict[str, Any]]:
        """Return a row per release."""
        shown = ("scale", "cost_alone", "expected_error", "signal_range", "naive_error", "verdict")
        return [
            {"kind": one.kind, "label": one.planned.label, **{k: getattr(one, k) for k in shown}}
            for one in self.items
        ]

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        told = {"budget": str(self.budget), "total": self.total, "spent": self.spent}
        return {**told, "releases": self.records()}

    def table(self) -> str:
        """Return a table with one line per kind of release and length of window, as text."""
        return plan_table(self)

    def explain(self) -> str:
        """Say what the plan costs, which releases are of no use, and what splitting would do."""
        return plan_words(self)

    def chart(self) -> LineChart:
        """Describe expected errors beside those of splitting the budget."""
        return plan_chart(self)


def plan_rows(plan: ReleasePlan) -> list[tuple[str, ...]]:
    """One row per kind and length of window; where items of a row differ, the worst is shown.

    Noise is rounded up and levels down, so that all releases of a row fit at what is printed.
    """
    groups: dict[tuple[str, int], list[PlannedRelease]] = {}
    for item in plan.items:
        points = item.spending.stop - item.spending.start + 1
        groups.setdefault((item.kind, points), []).append(item)
    return [_row(kind, points, items) for (kind, points), items in groups.items()]


def _row(kind: str, points: int, items: list[PlannedRelease]) -> tuple[str, ...]:
    worst = max(items, key=lambda item: item.expected_error)
    return (
        kind,
        str(len(items)),
        str(points),
        written_up(worst.scale),
        f"{worst.expected_error:.4g}",
        f"{worst.signal_range:.4g}",
        worst.verdict,
        written_down(min(item.cost_alone for item in items)),
        f"{max(item.naive_scale for item in items):.4g}",
        f"{max(item.naive_error for item in items):.4g}",
    )


def plan_table(plan: ReleasePlan) -> str:
    """Lay the rows out in columns."""
    rows = [HEADER, *plan_rows(plan)]
    widths = [max(len(row[j]) for row in rows) for j in range(len(HEADER))]
    left = (0, 6)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if j in left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def plan_words(plan: ReleasePlan) -> str:
    """Sum the plan up in a few sentences."""
    count = len(plan.items)
    gain = max(item.naive_scale / item.scale for item in plan.items)
    total = f"{plan.total:.6g}"
    cost = f"releases cost {total} together" if count > 1 else f"release costs {total}"
    lines = [
        f"{count} {cost}, for every time point; the budget is {float(plan.budget):.6g}.",
        f"Splitting the budget evenly, each release by quilts, would need up to {gain:.3g} times "
        "as much noise.",
    ]
    if plan.spent:
        lines.insert(1, f"That includes what was spent before, which costs {plan.spent:.6g} alone.")
    useless = Counter(item.kind for item in plan.useless)
    for kind, number in useless.items():
        every = sum(item.kind == kind for item in plan.items)
        which, its, it = f"The {kind} release", "its", "it"
        if every > 1:
            some = "All" if number == every else f"{number} of"
            which, its, it = f"{some} {every} {kind} releases", "their", "them"
        lines.append(
            f"{which} would be useless: {its} noise is larger than anything the answer could be. "
            f"Leave {it} out, or ask about longer windows."
        )
    if not useless:
        lines.append("No release is useless.")
    return "\n".join(lines)


def plan_chart(plan: ReleasePlan) -> LineChart:
    """Return the expected error of every release, as planned and with the budget split evenly."""
    from quiltwork.report.charts import LineChart

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
    from quiltwork.report.charts import Line

    return Line(name, tuple(dict.fromkeys((float(x), float(y)) for x, y in points)), marks=True)
