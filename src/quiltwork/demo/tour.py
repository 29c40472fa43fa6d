"""The list of chapters, what one of them shows, and the page they end in."""

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
    """`lines` for the terminal, `parts` for the page, `data` for `--json`."""

    name: str
    title: str
    lines: tuple[str, ...]
    parts: tuple[Html, ...]
    data: Mapping[str, Any]


def chapters() -> Iterator[Chapter]:
    """Run the chapters one after the other, in the order of the table."""
    for place in CHAPTERS:
        module, attribute = place.split(":")
        yield cast(Chapter, getattr(importlib.import_module(module), attribute)())


def report(told: Sequence[Chapter]) -> str:
    """Write the page of a demonstration."""
    limits = section(
        "What this does not protect",
        note(
            "Limits.",
            "The true values on this page are shown because the people are simulated; with real "
            "data they never leave the machine. A guarantee holds for the rows, the query and the "
            "ε named with it, and for a series against the belief it was calibrated to; every "
            "further release about the same people adds to what is known.",
        ),
        anchor="limits",
    )
    sections = [section(one.title, *one.parts, anchor=one.name) for one in told]
    return page(
        "quiltwork: a demonstration",
        "Private releases from data where people and moments are tied to each other, on data "
        "that was made up for this page.",
        [*sections, limits],
        "Made with: quiltwork demo.",
    )
