"""A plan as text: a table by kind of release, and a verdict in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quiltwork.exact import written_down, written_up

if TYPE_CHECKING:
    from quiltwork.budget.accounting.planning import PlannedRelease, ReleasePlan

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
