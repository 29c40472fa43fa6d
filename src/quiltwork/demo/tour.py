"""The list of chapters of the demo, their common type, and the HTML report."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from quiltwork.report import Html, note, page, section

CHAPTERS = (
    "quiltwork.demo.series_chapter:chapter",
    "quiltwork.demo.counts_chapter:chapter",
    "quiltwork.demo.tables_chapter:chapter",
    "quiltwork.demo.holdout_chapter:chapter",
)


@dataclass(frozen=True)
class Chapter:
    """One result of the demo: `lines` for the terminal, `parts` for the report, `data` for JSON."""

    name: str
    title: str
    lines: tuple[str, ...]
    parts: tuple[Html, ...]
    data: Mapping[str, Any]


def chapters() -> Iterator[Chapter]:
    """Run the chapters one by one, in the order of `CHAPTERS`."""
    for entry in CHAPTERS:
        module, attribute = entry.split(":")
        yield cast(Chapter, getattr(importlib.import_module(module), attribute)())


def report(results: Sequence[Chapter]) -> str:
    """Return the HTML report of the demo."""
    limits = section(
        "What this does not protect",
        note(
            "Limits.",
            "The true values appear here only because the people are simulated; with real data "
            "they never leave the machine. Each guarantee holds for the stated rows, query and ε, "
            "and for a series against the stated belief. Every further release about the same "
            "people adds to the privacy loss.",
        ),
        anchor="limits",
    )
    sections = [section(c.title, *c.parts, anchor=c.name) for c in results]
    return page(
        "quiltwork: a demonstration",
        "Private releases from correlated data: time series, tables of people, holdouts. All data "
        "on this page are simulated.",
        [*sections, limits],
        "Made with: quiltwork demo.",
    )
