"""`ReleasePlan`: planned releases with a table by kind, verdicts in words, and a chart."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.budget.accounting.schedule import Planned
from quiltwork.budget.spending import Spending
from quiltwork.exact import format_down, format_up
from quiltwork.results import ChartedResult

if TYPE_CHECKING:
    from quiltwork.report.charts import Line, LineChart

_ROUGH_SHARE = 0.1

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
GAUSSIAN_HEADER = (*HEADER[:-3], "of the cap", "geometric: noise", "geometric: error")


@dataclass(frozen=True)
class PlannedRelease:
    """One release of a plan: its noise, its cost and its expected error.

    Attributes:
        planned: the query with its kind, label and weight.
        scale: of the noise to add to the query's integers (per range hi − lo for sums and means).
        spending: its record for accounting.
        cost_alone: its cost as the only release; with δ the share of the caps.
        expected_error: of one cell, in units of the answer.
        signal_range: how much one cell can vary at all.
        naive_scale: the noise if the budget were split evenly; with δ geometric noise for the
            same ε, inf where earlier releases have no pure level.
        naive_error: the expected error with that noise.
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
        """The kind of release, such as "daily"."""
        return self.planned.kind

    @property
    def verdict(self) -> str:
        """ "useless" if the error exceeds the range of the signal, "rough" above a tenth of it."""
        return verdict(self.expected_error, self.signal_range)


def verdict(error: float, signal: float) -> str:
    """Return "useless", "rough" or "useful": an expected error beside the range of the signal.

    >>> verdict(3, 60)
    'useful'
    """
    if error >= signal:
        return "useless"
    return "rough" if error >= _ROUGH_SHARE * signal else "useful"


@dataclass(frozen=True)
class ReleasePlan(ChartedResult):
    """Planned releases with their noise and their joint cost.

    Attributes:
        items: the releases in order.
        budget: ε that everything may cost together.
        total: the joint cost, earlier releases included, at or below `budget`; with δ all of ε.
        spent: the cost of earlier releases by themselves, rounded up; with δ the used share of the
            caps.
        delta: δ of the claim, with Gaussian noise; 0 for geometric noise.
    """

    drawn_at_once = False

    items: tuple[PlannedRelease, ...]
    budget: Fraction
    total: float
    spent: float = 0.0
    delta: Fraction = Fraction(0)

    @property
    def gain(self) -> float:
        """The error of geometric noise over that of Gaussian noise, as a geometric mean.

        Below 1 geometric noise is quieter; inf without a comparison, and 1 without δ.
        """
        if not self.delta:
            return 1.0
        logs = [math.log(item.naive_error / item.expected_error) for item in self.items]
        return math.exp(sum(logs) / len(logs))

    @property
    def quieter(self) -> str:
        """The noise with less error: "gaussian" or "geometric"."""
        return "gaussian" if self.delta and self.gain > 1 else "geometric"

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
        names = ("scale", "cost_alone", "expected_error", "signal_range", "naive_error", "verdict")
        return [
            {
                "kind": item.kind,
                "label": item.planned.label,
                **{name: _null_for_infinity(getattr(item, name)) for name in names},
            }
            for item in self.items
        ]

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        body: dict[str, Any] = {
            "budget": str(self.budget),
            "total": self.total,
            "spent": self.spent,
        }
        if self.delta:
            gain = _null_for_infinity(self.gain)
            body |= {"delta": str(self.delta), "quieter": self.quieter, "gain": gain}
        return {**body, "releases": self.records()}

    def table(self) -> str:
        """Return a table with one line per kind of release and length of window, as text."""
        return plan_table(self)

    def explain(self) -> str:
        """Return sentences: the cost of the plan, useless releases, and the gain over splitting."""
        return plan_words(self)

    def chart(self) -> LineChart:
        """Return a chart of expected errors beside those of splitting the budget."""
        return plan_chart(self)


def _null_for_infinity(value: Any) -> Any:
    return None if value == math.inf else value


def plan_rows(plan: ReleasePlan) -> list[tuple[str, ...]]:
    """Return one row per kind and length of window; where items differ, the worst is shown.

    Noise is rounded up and levels down, so that all releases of a row fit at the printed numbers.
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
        format_up(worst.scale),
        f"{worst.expected_error:.4g}",
        f"{worst.signal_range:.4g}",
        worst.verdict,
        format_down(min(item.cost_alone for item in items)),
        f"{max(item.naive_scale for item in items):.4g}",
        f"{max(item.naive_error for item in items):.4g}",
    )


def plan_table(plan: ReleasePlan) -> str:
    """Return the rows laid out in columns."""
    rows = [GAUSSIAN_HEADER if plan.delta else HEADER, *plan_rows(plan)]
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
    """Return a summary of the plan in a few sentences."""
    if plan.delta:
        return _gaussian_words(plan)
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
        lines.insert(1, f"That includes earlier releases, which cost {plan.spent:.6g} alone.")
    return "\n".join([*lines, *_useless_words(plan)])


def _gaussian_words(plan: ReleasePlan) -> str:
    """Return a summary of a plan with δ: which noise is quieter, and by how much."""
    count = f"{len(plan.items):,} release" + ("s" if len(plan.items) > 1 else "")
    lines = [
        f"{count} with Gaussian noise keep ε = {float(plan.budget):g} and δ = "
        f"{float(plan.delta):g} together, for every time point."
    ]
    if plan.spent:
        lines.append(f"Before them {format_up(100 * plan.spent)} % of the caps was used.")
    gain = plan.gain
    if not math.isfinite(gain):
        lines.append("There is no geometric noise to compare: earlier releases have no pure ε.")
    elif gain > 1:
        lines.append(
            f"Take Gaussian noise: geometric noise for ε = {float(plan.budget):g} has {gain:.3g} "
            "times its error."
        )
    else:
        lines.append(
            f"Take geometric noise, and a pure ε: Gaussian noise has {1 / gain:.3g} times its "
            "error here. It is quieter where more queries are about the same time points."
        )
    return "\n".join([*lines, *_useless_words(plan)])


def _useless_words(plan: ReleasePlan) -> list[str]:
    """Return a sentence for each kind with useless releases, and what to do about it."""
    lines = []
    useless = Counter(item.kind for item in plan.useless)
    for kind, number in useless.items():
        count = sum(item.kind == kind for item in plan.items)
        subject, its, it = f"The {kind} release", "its", "it"
        if count > 1:
            quantity = "All" if number == count else f"{number} of"
            subject, its, it = f"{quantity} {count} {kind} releases", "their", "them"
        lines.append(
            f"{subject} would be useless: {its} expected error is as large as the range of the "
            f"answer. Leave {it} out, or ask about longer windows."
        )
    return lines or ["No release is useless."]


def plan_chart(plan: ReleasePlan) -> LineChart:
    """Return a chart of expected errors: as planned, and with the budget split evenly."""
    from quiltwork.report.charts import LineChart

    names = tuple(dict.fromkeys(item.kind for item in plan.items))
    columns = [(names.index(item.kind), item) for item in plan.items]
    ranges = {x: item.signal_range for x, item in reversed(columns)}
    return LineChart(
        f"Expected errors with ε = {float(plan.budget):.4g}"
        + (f" and δ = {float(plan.delta):g}" if plan.delta else ""),
        "One dot per release, beside the range that its signal can have.",
        "",
        "expected error of one cell",
        (
            _dots(
                "Gaussian noise" if plan.delta else "joint plan",
                [(x - 0.12, item.expected_error) for x, item in columns],
            ),
            _dots(
                "geometric noise" if plan.delta else "budget split evenly",
                [(x, item.naive_error) for x, item in columns if item.naive_error < math.inf],
            ),
            _dots("range of the signal", [(x + 0.12, size) for x, size in ranges.items()]),
        ),
        log_y=True,
        x_names=names,
    )


def _dots(name: str, points: list[tuple[float, float]]) -> Line:
    from quiltwork.report.charts import Line

    return Line(name, tuple(dict.fromkeys((float(x), float(y)) for x, y in points)), marks=True)
