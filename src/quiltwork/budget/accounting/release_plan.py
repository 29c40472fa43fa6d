"""A plan of releases as a result: a table by kind of release, a verdict in words, a chart."""

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
GAUSSIAN_HEADER = (*HEADER[:-3], "of the cap", "geometric: noise", "geometric: error")


@dataclass(frozen=True)
class PlannedRelease:
    """One release of a plan: its noise, what it costs and how far off it will be.

    Attributes:
        planned: the query with its kind, label and weight.
        scale: of the noise to add to the query's integers (per range hi − lo for sums and means).
        spending: the record with which it is accounted for.
        cost_alone: what it would cost if it were the only release; with δ the share of the caps.
        expected_error: of one cell, in units of the answer.
        signal_range: how much one cell can vary at all.
        naive_scale: the noise if the budget were split evenly; with δ geometric noise for the
            same ε, inf where what was released before has no pure level.
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

    What was released before is in the total; `spent` is what that cost by itself, rounded up. With
    a `delta` noise is Gaussian, `total` the whole ε that is claimed, and `spent` the share of the
    caps that was used before.
    """

    drawn_at_once = False

    items: tuple[PlannedRelease, ...]
    budget: Fraction
    total: float
    spent: float = 0.0
    delta: Fraction = Fraction(0)

    @property
    def gain(self) -> float:
        """How many times less error Gaussian noise has than geometric, on the average in logs.

        Below 1 geometric noise is quieter; inf without a comparison, and 1 without δ.
        """
        if not self.delta:
            return 1.0
        logs = [math.log(one.naive_error / one.expected_error) for one in self.items]
        return math.exp(sum(logs) / len(logs))

    @property
    def quieter(self) -> str:
        """Which noise to take: "gaussian" or "geometric"."""
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
        shown = ("scale", "cost_alone", "expected_error", "signal_range", "naive_error", "verdict")
        return [
            {"kind": one.kind, "label": one.planned.label, **{k: _told(one, k) for k in shown}}
            for one in self.items
        ]

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        told: dict[str, Any] = {"budget": str(self.budget), "total": self.total}
        told["spent"] = self.spent
        if self.delta:
            gain = self.gain if math.isfinite(self.gain) else None
            told |= {"delta": str(self.delta), "quieter": self.quieter, "gain": gain}
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


def _told(one: PlannedRelease, name: str) -> Any:
    value = getattr(one, name)
    return None if value == math.inf else value


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
        format_up(worst.scale),
        f"{worst.expected_error:.4g}",
        f"{worst.signal_range:.4g}",
        worst.verdict,
        format_down(min(item.cost_alone for item in items)),
        f"{max(item.naive_scale for item in items):.4g}",
        f"{max(item.naive_error for item in items):.4g}",
    )


def plan_table(plan: ReleasePlan) -> str:
    """Lay the rows out in columns."""
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
    """Sum the plan up in a few sentences."""
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
        lines.insert(1, f"That includes what was spent before, which costs {plan.spent:.6g} alone.")
    return "\n".join([*lines, *_useless_words(plan)])


def _gaussian_words(plan: ReleasePlan) -> str:
    """Say which noise is quieter, and by how much."""
    count = f"{len(plan.items):,} release" + ("s" if len(plan.items) > 1 else "")
    lines = [
        f"{count} with Gaussian noise keep ε = {float(plan.budget):g} and δ = "
        f"{float(plan.delta):g} together, for every time point."
    ]
    if plan.spent:
        lines.append(f"Before them {format_up(100 * plan.spent)} % of the caps was used.")
    gain = plan.gain
    if not math.isfinite(gain):
        lines.append("There is no geometric noise to compare: what was released before has no ε.")
    elif gain > 1:
        lines.append(
            f"Take Gaussian noise: geometric noise for ε = {float(plan.budget):g} has {gain:.3g} "
            "times its error."
        )
    else:
        lines.append(
            f"Take geometric noise, and a pure ε: Gaussian noise has {1 / gain:.3g} times its "
            "error here. It is quieter where more questions are about the same time points."
        )
    return "\n".join([*lines, *_useless_words(plan)])


def _useless_words(plan: ReleasePlan) -> list[str]:
    """Say which releases are of no use."""
    lines = []
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
    return lines or ["No release is useless."]


def plan_chart(plan: ReleasePlan) -> LineChart:
    """Return the expected error of every release, as planned and with the budget split evenly."""
    from quiltwork.report.charts import LineChart

    names = tuple(dict.fromkeys(item.kind for item in plan.items))
    places = [(names.index(item.kind), item) for item in plan.items]
    ranges = {place: item.signal_range for place, item in reversed(places)}
    return LineChart(
        f"Expected errors with ε = {float(plan.budget):.4g}"
        + (f" and δ = {float(plan.delta):g}" if plan.delta else ""),
        "One dot per release, beside the range that its signal can have.",
        "",
        "expected error of one cell",
        (
            _dots(
                "Gaussian noise" if plan.delta else "joint plan",
                [(at - 0.12, item.expected_error) for at, item in places],
            ),
            _dots(
                "geometric noise" if plan.delta else "budget split evenly",
                [(at, item.naive_error) for at, item in places if item.naive_error < math.inf],
            ),
            _dots("range of the signal", [(at + 0.12, most) for at, most in ranges.items()]),
        ),
        log_y=True,
        x_names=names,
    )


def _dots(name: str, points: list[tuple[float, float]]) -> Line:
    from quiltwork.report.charts import Line

    return Line(name, tuple(dict.fromkeys((float(x), float(y)) for x, y in points)), marks=True)
