"""A table of counts as a chart and as a page that one can forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quiltwork.budget.judging import Usefulness, judge
from quiltwork.exact import Number, to_fraction
from quiltwork.noise import TwoSidedGeometric
from quiltwork.report import (
    Estimate,
    IntervalChart,
    bullets,
    facts,
    figure,
    folded,
    note,
    page,
    section,
    table,
)

if TYPE_CHECKING:
    from quiltwork.counts.count_table import CountTable

_MOST_BARS = 60
_MOST_ROWS = 12


def usefulness_of(counts: CountTable) -> Usefulness:
    """Judge a table by its released numbers alone."""
    error = max(TwoSidedGeometric.from_alpha(one).expected_absolute for one in set(counts.alphas))
    largest = max(counts.values)
    found = judge(error, largest, f"the largest count, {largest:,}")
    lost = sum(ends.low == 0 for ends in counts.intervals(simultaneous=True).values())
    return found.with_lost_cells(lost, len(counts.cells), "count")


def table_chart(counts: CountTable, confidence: Number = 0.95) -> IntervalChart:
    """Return every count with its interval; of very many cells the largest."""
    ends = counts.intervals(confidence)
    cells = list(zip(counts.cells, counts.values, strict=True))
    if len(cells) > _MOST_BARS:
        cells = sorted(cells, key=lambda pair: -pair[1])[:_MOST_BARS]
    share = 100 * float(to_fraction(confidence, "confidence"))
    kept = "" if len(cells) == len(counts.cells) else f", the {_MOST_BARS} largest"
    return IntervalChart(
        f"{title_of(counts)}{kept} (ε = {counts.epsilon:g}, {share:g} % intervals)",
        f"Released counts; the true one lies within each interval with {share:g} % confidence.",
        "rows counted",
        tuple(Estimate(cell_name(cell), value, *ends[cell]) for cell, value in cells),
    )


def table_page(counts: CountTable, confidence: Number = 0.95) -> str:
    """Return a self-contained HTML page about a table of counts."""
    found, share = usefulness_of(counts), 100 * float(to_fraction(confidence, "confidence"))
    each, together = (counts.intervals(confidence, simultaneous=one) for one in (False, True))
    rows = [
        (cell_name(cell), value, *each[cell], *together[cell])
        for cell, value in zip(counts.cells, counts.values, strict=True)
    ]
    header = [", ".join(counts.dimensions), "count", f"{share:g} % from", "to"]
    numbers = table(
        f"Released counts, with {share:g} % intervals", [*header, "all at once from", "to"], rows
    )
    change = "added or removed" if counts.adjacency == "add-remove" else "replaced"
    shown = {
        "privacy level": f"ε = {counts.epsilon:g}",
        "protected": f"each person: all rows {change}",
        "rows of one person": f"at most {counts.at_most} ({counts.limit})",
        "cells": f"{len(counts.cells):,}",
    }
    answer = [
        note(f"{found.verdict.capitalize()}.", found.reason[:1].upper() + found.reason[1:]),
        figure(table_chart(counts, confidence)),
        numbers if len(rows) <= _MOST_ROWS else folded(f"All {len(rows):,} counts", numbers),
        facts(shown),
    ]
    said = [f"{one.strip().rstrip('.')}." for one in counts.explain().split(". ")]
    return page(
        title_of(counts),
        "Private counts, with noise that hides each person.",
        [
            section("The counts", *answer, anchor="counts"),
            section("What they protect", bullets(said), anchor="protects"),
        ],
    )


def title_of(counts: CountTable) -> str:
    """Name what was counted."""
    return f"Counts by {', '.join(counts.dimensions)}" if counts.dimensions else "Counts"


def cell_name(cell: Any) -> str:
    """Write the label of a cell; one without labels holds everything."""
    return (", ".join(map(str, cell)) or "all") if isinstance(cell, tuple) else str(cell)
