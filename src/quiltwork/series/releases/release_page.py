"""A release as a picture with error bars, and as a page that one can forward."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import Number, proper_fraction
from quiltwork.queries.days import ByHour
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
from quiltwork.report.charts import Chart, Estimate, IntervalChart, Line, LineChart
from quiltwork.series.releases.error_bars import refuse_label_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiltwork.beliefs import Belief
    from quiltwork.series.releases.record import Release


_MOST_LABELS = 40
_CLOCK = re.compile(r"\d\d:00")
_QUANTITIES = {
    "count": "time points",
    "histogram": "time points",
    "frequencies": "share of time points",
    "transitions": "steps from one to the other",
    "top": "time points",
    "by hour": "time points",
    "time per day": "hours per day",
}


def release_chart(release: Release, confidence: Number = 0.95) -> Chart:
    """Return each cell's value with the interval of its noise; many cells by their numbers."""
    if release.mechanism == "exponential":
        raise refuse_label_interval()
    ends = (np.asarray(end, dtype=float).ravel() for end in release.interval(confidence))
    spread = tuple((float(low), float(high)) for low, high in zip(*ends, strict=True))
    values = np.asarray(release.value, dtype=float).ravel().tolist()
    share = float(proper_fraction(confidence, "confidence")) * 100
    described = (
        f"Released with {_level(release)} and noise of {_spread(release)} {release.scale:.4g}; "
        f"the truth lies within each interval with {share:g} % confidence."
    )
    if isinstance(release.query, ByHour):
        return _hours(release, described, np.array(spread))
    title = f"{title_of(release)} (ε = {release.epsilon:g}, {share:g} % intervals)"
    quantity = quantity_of(release)
    if len(values) > _MOST_LABELS:
        line = Line("", tuple(enumerate(values, start=1)), marks=True, spread=spread)
        return LineChart(title, described, "cell", quantity, (line,))
    rows = zip(release.cells, values, spread, strict=True)
    estimates = tuple(Estimate(cell_name(cell), value, *ends) for cell, value, ends in rows)
    return IntervalChart(title, described, quantity, estimates)


def _hours(release: Release, described: str, spread: NDArray[np.float64]) -> LineChart:
    """A line for each state over the hours of the day."""
    value = np.asarray(release.value, dtype=float)
    ends = spread.reshape(*value.shape, 2)
    lines = tuple(
        Line(
            str(release.cells[column][1]),
            tuple((float(hour), count) for hour, count in enumerate(value[:, column].tolist())),
            spread=tuple(map(tuple, ends[:, column].tolist())),
        )
        for column in range(value.shape[1])
    )
    names = tuple(str(cell[0])[:2] for cell in release.cells[:: value.shape[1]])
    title = f"{title_of(release)} (ε = {release.epsilon:g})"
    return LineChart(title, described, "hour of the day", "time points", lines, x_names=names)


def title_of(release: Release) -> str:
    """Name what was asked, and of how much."""
    start, stop = release.window
    whole = (start, stop) == (1, release.length)
    most = "up to " if release.points < release.length * release.subjects else ""
    when = (
        f"{most}{release.length:,} time points" if whole else f"time points {start:,} to {stop:,}"
    )
    if runs := release.query.runs:
        when = f"{release.query.points(release.length):,} time points in {len(runs):,} runs"
    who = "" if release.subjects == 1 else f" of each of {release.subjects:,} sequences"
    return f"{release.query.words.capitalize()}: {when}{who}"


def quantity_of(release: Release) -> str:
    """Name what the numbers count, with its unit."""
    return _QUANTITIES.get(release.query.words, release.query.words)


def cell_name(cell: object) -> str:
    """Write the label of a cell: a state, a step from one to another, or an hour and a state."""
    if not isinstance(cell, tuple):
        return str(cell)
    by_hour = len(cell) == 2 and isinstance(cell[0], str) and _CLOCK.fullmatch(cell[0])
    return (" " if by_hour else " → ").join(map(str, cell))


_SECRETS = {"moment": "each time point", "person": "each person, whole series"}
_NOT_HIDDEN = (
    "That somebody is in the data, and habits that the answer itself shows.",
    "More about a time point, if they are more tightly tied to each other than the beliefs say.",
    "What other releases from the same data tell, unless one ledger counts them all.",
)


def release_page(
    release: Release,
    confidence: Number = 0.95,
    others: Belief | Sequence[Belief] | None = None,
) -> str:
    """Return a self-contained HTML page about one release; `others` may fit better than its own."""
    secret = _SECRETS.get(release.protects, f"any {release.episode} time points in a row")
    if release.pairs is not None:
        secret += ": " + ", ".join(f"{a} or {b}" for a, b in release.pairs)
    shown = {
        "privacy level": "not kept" if release.fitted else _level(release),
        "protected": secret,
        "asked about": f"{release.points:,} time points"
        + (f" of {release.subjects:,} sequences" if release.subjects > 1 else ""),
        "noise": f"{_spread(release)} {release.scale:.4g}",
    }
    said = release.explain().splitlines()
    answer = [*_answer(release, confidence), facts(shown)]
    if release.period is not None:
        answer.append(paragraph(f"From {' to '.join(release.period)}.".replace("T", " ")))
    if release.noise_scale:
        found = release.usefulness
        answer.insert(0, note(f"{found.verdict.capitalize()}.", _sentence(found.reason)))
        said = [line for line in said if line != str(found)]
    sections = [
        section("The answer", *answer, anchor="answer"),
        section("What it protects", bullets(said[1:]), anchor="protects"),
    ]
    if release.protects != "person":
        sections.append(section("What it does not hide", bullets(_NOT_HIDDEN), anchor="limits"))
    if others is not None:
        from quiltwork.audit import misspecification

        told = bullets(misspecification(release, others).explain().splitlines())
        sections.append(section("If another belief were true", told, anchor="others"))
    return page(title_of(release), f"A private answer, with noise that hides {secret}.", sections)


def _level(release: Release) -> str:
    level = f"ε = {release.epsilon:g}"
    return f"{level}, δ = {float(release.delta):g}" if release.delta else level


def _spread(release: Release) -> str:
    return "standard deviation" if release.delta else "scale"


def _answer(release: Release, confidence: Number) -> list[Html]:
    share = f"{100 * float(proper_fraction(confidence, 'confidence')):g} %"
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
