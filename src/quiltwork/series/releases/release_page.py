"""A release as a picture with error bars, and as a page that one can forward."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance
from quiltwork.beliefs.grids import duration
from quiltwork.exact import Number, format_number, proper_fraction
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
from quiltwork.series.releases.belief_text import belief_words
from quiltwork.series.releases.error_bars import refuse_label_interval
from quiltwork.series.releases.period_text import period_words
from quiltwork.series.releases.release_text import (
    FITTED,
    gap_words,
    noise_words,
    odds_words,
    plain_dp_words,
    reason_words,
    secret_words,
)
from quiltwork.series.releases.usefulness import usefulness_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiltwork.beliefs import Belief
    from quiltwork.series.releases.released_answer import ReleasedAnswer


_MOST_LABELS = 40
_MOST_LINES = 6
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


@dataclass(frozen=True)
class PlannedPart:
    """One release of a plan: when it is about, and the release if it is made."""

    when: str
    release: ReleasedAnswer | None


@dataclass(frozen=True)
class ReportContext:
    """What a page says beyond its release.

    Attributes:
        budget: a sentence on what is spent and what remains of the ledger's budget.
        ledger_level: the ε and δ below which all that the ledger counts stays together.
        step: the length of a time point in seconds.
        plan: the releases of the plan to which the release belongs, in order.
    """

    budget: str | None = None
    step: int | None = None
    plan: tuple[PlannedPart, ...] = ()
    ledger_level: tuple[float, float] | None = None


def release_chart(release: ReleasedAnswer, confidence: Number = 0.95) -> Chart:
    """Return each cell's value with the interval of its noise; many cells by their numbers."""
    if release.mechanism == "exponential":
        raise refuse_label_interval()
    ends = (np.asarray(end, dtype=float).ravel() for end in release.interval(confidence))
    spread = tuple((float(low), float(high)) for low, high in zip(*ends, strict=True))
    values = np.asarray(release.value, dtype=float).ravel().tolist()
    share = float(proper_fraction(confidence, "confidence")) * 100
    described = (
        f"Released with {_level(release)} and noise of {_spread(release)} "
        f"{format_number(release.scale)}; the truth lies within each interval with {share:g} % "
        "confidence."
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


def _hours(release: ReleasedAnswer, described: str, spread: NDArray[np.float64]) -> LineChart:
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


def plan_progress(release: ReleasedAnswer, plan: Sequence[PlannedPart]) -> Chart | None:
    """Return the numbers of all releases of a plan that are made, beside each other in time.

    Of those that ask the same as `release`. None for less than two, for labels and for many cells.
    """
    shown = [part for part in plan if part.release is None or part.release.cells == release.cells]
    made = sum(part.release is not None for part in shown)
    if made < 2 or release.mechanism == "exponential" or len(release.cells) > _MOST_LINES:
        return None
    lines = []
    for index, cell in enumerate(release.cells):
        points, spread = [], []
        for place, part in enumerate(shown):
            if part.release is not None:
                value, low, high = (
                    float(np.ravel(end)[index])
                    for end in (part.release.value, *part.release.interval())
                )
                points.append((float(place), value))
                spread.append((low, high))
        lines.append(Line(cell_name(cell), tuple(points), spread=tuple(spread)))
    return LineChart(
        f"{release.query.words.capitalize()}: {made} of {len(shown)} releases",
        "Each number with its 95 % interval.",
        "",
        quantity_of(release),
        tuple(lines),
        x_names=tuple(_short_when(part.when) for part in shown),
    )


def _short_when(words: str) -> str:
    """Shorten "January 2026" to "Jan"; other words stay."""
    month, _, year = words.partition(" ")
    return month[:3] if month.isalpha() and year.isdecimal() and len(year) == 4 else words


def title_of(release: ReleasedAnswer) -> str:
    """Name the question, the dataset and the time it is about."""
    dataset = "" if release.dataset is None else f" of {release.dataset}"
    return f"{release.query.words.capitalize()}{dataset}: {when_words(release)}"


def when_words(release: ReleasedAnswer) -> str:
    """Name the window by its dates, or by time points where the dates are unknown."""
    start, stop = release.window
    whole = (start, stop) == (1, release.length)
    most = "up to " if release.points < release.length * release.subjects else ""
    when = (
        f"{most}{release.length:,} time points" if whole else f"time points {start:,} to {stop:,}"
    )
    if release.period is not None:
        when = period_words(release.period)
    if runs := release.query.runs:
        inside = f"{release.query.points(release.length):,} time points in {len(runs):,} runs"
        when = inside if release.period is None else f"{when}, {inside}"
    who = "" if release.subjects == 1 else f" of each of {release.subjects:,} sequences"
    return f"{when}{who}"


def quantity_of(release: ReleasedAnswer) -> str:
    """Name what the numbers count, with its unit."""
    return _QUANTITIES.get(release.query.words, release.query.words)


def cell_name(cell: object) -> str:
    """Write the label of a cell: a state, a step from one to another, or an hour and a state."""
    if not isinstance(cell, tuple):
        return str(cell)
    by_hour = len(cell) == 2 and isinstance(cell[0], str) and _CLOCK.fullmatch(cell[0])
    return (" " if by_hour else " → ").join(map(str, cell))


_NOT_HIDDEN = (
    "That somebody is in the data, and habits that the answer itself shows.",
    "If consecutive time points are more strongly correlated than the beliefs say, more is "
    "revealed.",
)


def _not_hidden(context: ReportContext) -> list[str]:
    """Return what a release does not hide; other releases add to it, up to a ledger's budget."""
    others = "Other releases from the same data reveal more"
    if context.ledger_level is None:
        return [*_NOT_HIDDEN, f"{others}, and nothing limits what they reveal together."]
    epsilon, delta = context.ledger_level
    level = f"ε = {epsilon:g}" + (f" and δ = {delta:g}" if delta else "")
    return [
        *_NOT_HIDDEN,
        f"{others}; all that this ledger counts stays together within {level}. "
        f"{odds_words(epsilon, delta)}",
    ]


def release_page(
    release: ReleasedAnswer,
    confidence: Number = 0.95,
    others: Belief | Sequence[Belief] | None = None,
    context: ReportContext | None = None,
) -> str:
    """Return a self-contained HTML page about one release.

    Args:
        release: the release.
        confidence: of the intervals.
        others: beliefs that may fit better than the release's own: the page adds the privacy loss
            under each of them.
        context: the budget, and the length of a time point.
    """
    known = ReportContext() if context is None else instance(context, ReportContext, "context")
    sections = [
        section("The answer", *_answer_section(release, confidence, known), anchor="answer"),
        section("What it protects", *_protection_section(release), anchor="protects"),
    ]
    if release.protects != "person":
        sections.append(
            section("What it does not hide", bullets(_not_hidden(known)), anchor="limits")
        )
    if (chart := plan_progress(release, known.plan)) is not None:
        sections.append(section("The plan so far", figure(chart), anchor="plan"))
    if known.budget is not None:
        sections.append(section("The budget", paragraph(known.budget), anchor="budget"))
    if others is not None:
        from quiltwork.audit import misspecification

        lines = bullets(misspecification(release, others).explain().splitlines())
        sections.append(section("If another belief were true", lines, anchor="others"))
    lead = f"A private answer: noise protects {secret_words(release).rstrip(',')}."
    return page(title_of(release), lead, sections)


def _level(release: ReleasedAnswer) -> str:
    level = f"ε = {release.epsilon:g}"
    return f"{level}, δ = {float(release.delta):g}" if release.delta else level


def _spread(release: ReleasedAnswer) -> str:
    return "standard deviation" if release.delta else "scale"


def _answer_section(
    release: ReleasedAnswer, confidence: Number, context: ReportContext
) -> list[Html]:
    """Return the verdict, the numbers and the key figures."""
    key_figures: dict[str, object] = {}
    if release.dataset is not None:
        key_figures["dataset"] = release.dataset
    key_figures["when"] = when_words(release)
    subjects = f" of {release.subjects:,} sequences" if release.subjects > 1 else ""
    points = f"{release.points + (release.gaps or 0):,} time points{subjects}"
    recorded = "" if release.gaps is None else f", {release.points:,} of them recorded"
    key_figures["asked about"] = f"{points}{recorded}"
    if context.step is not None:
        hours = format_number(release.points * context.step / 3600, 6)
        key_figures["in hours"] = f"{hours} hours" if release.gaps is None else f"{hours} recorded"
    if context.step is not None:
        key_figures["one time point"] = duration(context.step)
    key_figures["privacy loss"] = "not bounded" if release.fitted else f"at most {_level(release)}"
    key_figures["noise"] = f"{_spread(release)} {format_number(release.scale)}"
    parts = [*_numbers(release, confidence), facts(key_figures)]
    if release.processing:
        parts.append(paragraph(f"Post-processed at no cost: {', then '.join(release.processing)}."))
    if release.noise_scale:
        usefulness = usefulness_of(release)
        verdict = f"{usefulness.verdict.capitalize()}."
        parts.insert(0, note(verdict, usefulness.reason[:1].upper() + usefulness.reason[1:]))
    return parts


def _protection_section(release: ReleasedAnswer) -> list[Html]:
    """Return the guarantee in odds and in words; how it was computed can be unfolded."""
    details = [noise_words(release), reason_words(release)]
    if (plain := plain_dp_words(release)) is not None:
        details.append(plain)
    unfolded = folded("How the noise was computed", bullets(details))
    if release.protects == "person":
        whole = (
            "Whatever anybody believes, the answer would have been nearly as likely with any other "
            "series in place of one person's: the odds change by a factor of at most "
            f"{format_number(math.exp(min(release.epsilon, 700)))}. This holds as long as persons "
            "are independent of each other."
        )
        return [paragraph(whole), unfolded]
    items = [FITTED] if release.fitted else []
    items.append(odds_words(release.epsilon, float(release.delta)))
    if release.pairs is not None:
        pairs = ", ".join(f"{a} or {b}" for a, b in release.pairs)
        items.append(f"Only these values of a time point are kept apart: {pairs}.")
    if release.gaps is not None:
        items.append(
            "Gaps are treated as public and independent of the states, as after an outage. "
            f"{gap_words(release.points, release.gaps)}"
        )
    believed = "This holds against an adversary with this belief:"
    if len(release.beliefs) > 1:
        believed = "This holds against an adversary with any of these beliefs:"
    beliefs = [f"{belief_words(belief)}." for belief in release.beliefs]
    return [
        bullets(items),
        paragraph(believed),
        bullets([text[:1].upper() + text[1:] for text in beliefs]),
        unfolded,
    ]


def _numbers(release: ReleasedAnswer, confidence: Number) -> list[Html]:
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
    columns = [np.ravel(column).tolist() for column in (release.value, *ends[0], *ends[1])]
    rows = [(cell_name(cell), *row) for cell, *row in zip(release.cells, *columns, strict=True)]
    header = ["", quantity_of(release), f"{share} from", "to", "all at once from", "to"]
    numbers = table(f"Released numbers, with {share} intervals", header, rows)
    chart = figure(release_chart(release, confidence))
    return [chart, numbers if len(rows) <= 12 else folded(f"All {len(rows)} numbers", numbers)]
