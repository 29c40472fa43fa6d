"""A release as a page that one can forward: the numbers, a picture, what is kept from whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.exact import Number
from quiltwork.report import (
    Html,
    bullets,
    facts,
    figure,
    folded,
    note,
    page,
    paragraph,
    section,
    table,
)
from quiltwork.series.releases.error_bars import read_confidence
from quiltwork.series.releases.release_charts import cell_name, quantity_of, release_chart, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiltwork.beliefs import Belief
    from quiltwork.series.releases.record import Release

_SECRETS = {"moment": "each time point", "person": "each person, whole series"}


def release_page(
    release: Release,
    confidence: Number = 0.95,
    others: Belief | Sequence[Belief] | None = None,
) -> str:
    """Return a self-contained HTML page about one release; `others` may fit better than its own."""
    secret = _SECRETS.get(release.protects, f"any {release.episode} time points in a row")
    shown = {
        "privacy level": f"ε = {release.epsilon:g}",
        "protected": secret,
        "asked about": f"{release.points:,} time points of {release.subjects:,} series",
        "noise": f"scale {release.scale:.4g}",
    }
    if release.period is not None:
        shown["period"] = f"{release.period[0]} to {release.period[1]}"
    said = release.explain().splitlines()
    answer = [*_answer(release, confidence), facts(shown)]
    if release.noise_scale:
        found = release.usefulness
        answer.insert(0, note(f"{found.verdict.capitalize()}.", _sentence(found.reason)))
        said = [line for line in said if line != str(found)]
    sections = [
        section("The answer", *answer, anchor="answer"),
        section("What it protects", bullets(said[1:]), anchor="protects"),
    ]
    if others is not None:
        from quiltwork.audit import misfit

        told = bullets(misfit(release, others).explain().splitlines())
        sections.append(section("If another belief were true", told, anchor="others"))
    return page(title_of(release), f"A private answer, with noise that hides {secret}.", sections)


def _answer(release: Release, confidence: Number) -> list[Html]:
    share = f"{100 * float(read_confidence(confidence)):g} %"
    if release.mechanism == "exponential":
        return [
            paragraph(f"The most common state is {release.value}."),
            paragraph(
                f"With {share} confidence its count is within {release.shortfall(confidence):,} "
                "of the largest."
            ),
        ]
    ends = release.interval(confidence), release.interval(confidence, simultaneous=True)
    columns = [np.ravel(one).tolist() for one in (release.value, *ends[0], *ends[1])]
    rows = [(cell_name(cell), *row) for cell, *row in zip(release.cells, *columns, strict=True)]
    header = ["", quantity_of(release), f"{share} from", "to", "all at once from", "to"]
    numbers = table(f"Released numbers, with {share} intervals", header, rows)
    chart = figure(release_chart(release, confidence))
    return [chart, numbers if len(rows) <= 12 else folded(f"All {len(rows)} numbers", numbers)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
