"""A table of counts as a chart, and as a self-contained page to forward."""

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
    """Judge a table's usefulness from its released numbers alone."""
    error = max(
        TwoSidedGeometric.from_alpha(alpha).expected_absolute for alpha in set(counts.alphas)
    )
    largest = max(counts.values)
    usefulness = judge(error, largest, f"the largest count, {largest:,}")
    near_zero = sum(ends.low == 0 for ends in counts.intervals(simultaneous=True).values())
    return usefulness.with_lost_cells(near_zero, len(counts.cells), "count")


def table_chart(counts: CountTable, confidence: Number = 0.95) -> IntervalChart:
    """Return every count with its interval; for very many cells, the largest only."""
    ends = counts.intervals(confidence)
    cells = list(zip(counts.cells, counts.values, strict=True))
    if len(cells) > _MOST_BARS:
        cells = sorted(cells, key=lambda pair: -pair[1])[:_MOST_BARS]
    share = 100 * float(to_fraction(confidence, "confidence"))
    selection = "" if len(cells) == len(counts.cells) else f", the {_MOST_BARS} largest"
    return IntervalChart(
        f"{title_of(counts)}{selection} (ε = {counts.epsilon:g}, {share:g} % intervals)",
        f"Released counts; the true one lies within each interval with {share:g} % confidence.",
        "rows counted",
        tuple(Estimate(cell_name(cell), value, *ends[cell]) for cell, value in cells),
    )


def table_page(counts: CountTable, confidence: Number = 0.95) -> str:
    """Return a self-contained HTML page about a table of counts."""
    usefulness, share = usefulness_of(counts), 100 * float(to_fraction(confidence, "confidence"))
    each, all_at_once = (counts.intervals(confidence, simultaneous=flag) for flag in (False, True))
    rows = [
        (cell_name(cell), value, *each[cell], *all_at_once[cell])
        for cell, value in zip(counts.cells, counts.values, strict=True)
    ]
    header = [", ".join(counts.dimensions), "count", f"{share:g} % from", "to"]
    numbers = table(
        f"Released counts, with {share:g} % intervals", [*header, "all at once from", "to"], rows
    )
    change = "added or removed" if counts.adjacency == "add-remove" else "replaced"
    summary = {
        "privacy level": f"ε = {counts.epsilon:g}",
        "protected": f"each person: all rows {change}",
        "rows of one person": f"at most {counts.at_most} ({counts.limit})",
        "cells": f"{len(counts.cells):,}",
    }
    parts = [
        note(
            f"{usefulness.verdict.capitalize()}.",
            usefulness.reason[:1].upper() + usefulness.reason[1:],
        ),
        figure(table_chart(counts, confidence)),
        numbers if len(rows) <= _MOST_ROWS else folded(f"All {len(rows):,} counts", numbers),
        facts(summary),
    ]
    sentences = [f"{flag.strip().rstrip('.')}." for flag in counts.explain().split(". ")]
    return page(
        title_of(counts),
        "Private counts, with noise that hides each person.",
        [
            section("The counts", *parts, anchor="counts"),
            section("What they protect", bullets(sentences), anchor="protects"),
        ],
    )


def title_of(counts: CountTable) -> str:
    """Return the title: what was counted."""
    return f"Counts by {', '.join(counts.dimensions)}" if counts.dimensions else "Counts"


def cell_name(cell: Any) -> str:
    """Return the label of a cell as text; a cell without labels holds all rows."""
    return (", ".join(map(str, cell)) or "all") if isinstance(cell, tuple) else str(cell)
