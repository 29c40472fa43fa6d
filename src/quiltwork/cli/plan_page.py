"""A plan of releases as a page: before it is carried out, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quiltwork.exact import format_number

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.budget import Ledger
    from quiltwork.budget.accounting.release_plan import ReleasePlan
    from quiltwork.budget.accounting.stored_plan import StoredPlan
    from quiltwork.series import Release, Series
    from quiltwork.series.reading.clock import TimePoints
    from quiltwork.series.releases.release_page import PlannedPart

_MOST_BARS = 60
_EVEN = 100


def plan_page(
    plan: ReleasePlan,
    stored: StoredPlan,
    beliefs: Sequence[Belief],
    dates: Sequence[str] | None = None,
) -> str:
    """Return an HTML page about a plan: the errors to expect, what it protects, next steps."""
    from quiltwork.report import (
        bullets,
        code,
        figure,
        folded,
        note,
        page,
        paragraph,
        section,
        table,
    )
    from quiltwork.report.charts import BarChart
    from quiltwork.series.releases.release_text import odds_words

    pairs = list(zip(stored.lines, plan.items, strict=True))
    windows = dates or [
        ", ".join(f"{a:,} to {b:,}" for a, b in line.runs(stored.length)[:3])
        for line in stored.lines
    ]
    rows = [
        (
            line.name,
            window,
            item.scale,
            item.expected_error,
            f"{format_number(_EVEN * item.expected_error / item.signal_range, 3)} %",
            item.verdict,
        )
        for (line, item), window in zip(pairs, windows, strict=True)
    ]
    header = [
        "release",
        "time points" if dates is None else "when",
        "noise",
        "expected error",
        "of the range",
        "verdict",
    ]
    releases = table("One row for each release", header, rows)
    parts = [note("In short.", " ".join(plan.explain().splitlines()))]
    if len(pairs) <= _MOST_BARS:
        names = dates or [line.name for line in stored.lines]
        bars = tuple(
            (name, item.expected_error) for name, item in zip(names, plan.items, strict=True)
        )
        parts.append(
            figure(
                BarChart(
                    "Expected error of every release",
                    "How far off one number is expected to be, in units of the answer.",
                    "expected error of one number",
                    bars,
                )
            )
        )
    parts.append(releases if len(rows) <= 24 else folded(f"All {len(rows)} releases", releases))
    parts.append(figure(plan.chart()))
    words = [f"{text[:1].upper()}{text[1:]}." for text in (belief.summary() for belief in beliefs)]
    protects = [
        paragraph(f"All releases together: {odds_words(float(plan.budget), float(plan.delta))}"),
        paragraph("This holds against an adversary with any of these beliefs:"),
        bullets(words),
    ]
    steps = [
        paragraph("Each release is made once; the ledger refuses a second one with other noise."),
        code(
            f"quiltwork release FILE --plan PLAN --line {stored.lines[0].name!r} "
            "--ledger URL --report page.html"
        ),
    ]
    sections = [
        section("The releases", *parts, anchor="releases"),
        section("What they protect together", *protects, anchor="protects"),
        section("How to carry it out", *steps, anchor="steps"),
    ]
    count = f"{len(pairs):,} release{'' if len(pairs) == 1 else 's'}"
    about = "about " if plan.delta else ""  # rounded Gaussian noise is a little larger
    lead = f"Nothing was released or spent; every release has {about}the noise that is shown here."
    return page(f"A plan for {stored.dataset}: {count}", lead, sections)


def plan_dates(stored: StoredPlan, times: TimePoints) -> list[str]:
    """Return when each release of a plan is about, as dates."""
    from quiltwork.series.releases.period_text import period_words

    dates = []
    for line in stored.lines:
        runs = line.runs(stored.length)
        seconds = (times.start + times.step * place for place in (runs[0][0] - 1, runs[-1][1]))
        begin, end = map(times.clock.written, seconds)
        dates.append(period_words((begin, end)))
    return dates


def carried_out(
    stored: StoredPlan, series: Series, ledger: Ledger, dataset: str, analyst: str | None
) -> tuple[PlannedPart, ...]:
    """Return the releases of a plan in order, with their answers as far as they are made."""
    from quiltwork.series import Release
    from quiltwork.series.releases.release_page import PlannedPart

    parts = []
    for line in stored.lines:
        answer = ledger.answer(dataset, line.name, analyst)
        release: Release | None = None if answer is None else Release.from_json(answer)
        parts.append(PlannedPart(_when(line.runs(stored.length), line.name, series), release))
    return tuple(parts)


def _when(runs: Sequence[tuple[int, int]], name: str, series: Series) -> str:
    """Name the window of a planned release by its dates, where all sequences begin together."""
    from quiltwork.series.releases.period_text import period_words

    starts = {sequence.start for sequence in series.data.coded.values()}
    start, step = starts.pop(), series.grid.step
    if starts or start is None or step is None:
        return name
    first, last = runs[0][0], runs[-1][1]
    moments = (start + step * (first - 1), start + step * last)
    begin, end = (series.clock.written(moment) for moment in moments)
    return period_words((begin, end))
