"""Templates with their filters, static files, and charts of the API's answers."""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from quiltwork.budget import LeakageProfile
from quiltwork.counts import CountTable
from quiltwork.errors import UnsupportedError
from quiltwork.exact import counted, format_number, percent
from quiltwork.report import BarChart, Chart, Html, Line, LineChart
from quiltwork.report.elements import figure
from quiltwork.report.page import mark
from quiltwork.report.style import LIGHT, PAGE_STYLE
from quiltwork.series import Release

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Only the curator's own style, script and images load; inline code and styles are blocked."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Asset:
    """A static file; its address holds a version of its content, so browsers may cache it."""

    content: bytes
    media_type: str

    @property
    def version(self) -> str:
        """The first digits of the content's SHA-256."""
        return hashlib.sha256(self.content).hexdigest()[:12]


@cache
def assets() -> Mapping[str, Asset]:
    """Return the static files by name."""
    folder = files(__package__) / "static"
    style = PAGE_STYLE + (folder / "dashboard.css").read_text(encoding="utf-8")
    icon = mark().replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    for name, colour in (pair.split(":") for pair in LIGHT.split(";")):
        icon = icon.replace(f"var({name})", colour)  # an icon has no style sheet of its own
    return {
        "style.css": Asset(style.encode(), "text/css; charset=utf-8"),
        "dashboard.js": Asset((folder / "dashboard.js").read_bytes(), "text/javascript"),
        "mark.svg": Asset(icon.encode(), "image/svg+xml"),
    }


@cache
def environment() -> Environment:
    """Return the template environment: values are escaped, an undefined name is an error."""
    templates = Environment(
        loader=PackageLoader("quiltwork.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(
        asset=lambda name: f"/assets/{name}?{assets()[name].version}",
        mark=Html(mark()),
        gauge=gauge,
        figure=figure,
        colours=_COLOURS,
    )
    templates.filters.update(
        number=number,
        percentage=percent,
        counted=counted,
        moment=moment,
        window=window,
        cell=cell,
    )
    return templates


_COLOURS = {
    **dict.fromkeys(("done", "open", "published", "released"), "good"),
    **dict.fromkeys(("running", "drawing", "active", "publishing", "ready to open"), "busy"),
    **dict.fromkeys(("queued", "collecting", "debited", "waiting for tables"), "warn"),
    **dict.fromkeys(("lost", "failed", "retired", "revoked"), "bad"),
}
"""The colours of badges by state; other states have none."""


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a template."""
    return environment().get_template(template).render(values)


def number(value: Any) -> str:
    """Format a number: whole ones with separators, others with four significant digits.

    >>> number(1234567), number(0.30000001), number(None)
    ('1,234,567', '0.3', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, float) and not value.is_integer():
        return format_number(value)
    return f"{int(value):,}"


def moment(text: str | None) -> str:
    """Format a time in UTC to the minute.

    >>> moment("2026-03-01T02:00:07.123Z"), moment(None)
    ('2026-03-01 02:00 UTC', '–')
    """
    return "–" if not text else f"{text[:16].replace('T', ' ')} UTC"


def window(query: Mapping[str, Any]) -> str:
    """Format the window of a query.

    >>> window({"kind": "histogram"}), window({"window": [1, 1440]})
    ('all', '1 to 1,440')
    """
    start, stop = query.get("window", (1, None))
    if start == 1 and stop is None:
        return "all"
    return f"{start:,} to {'the end' if stop is None else format(stop, ',')}"


def cell(label: Any) -> str:
    """Format the label of a cell.

    >>> cell("walk"), cell({"tuple": ["rest", "walk"]}), cell(["a", "b"])
    ('walk', 'rest → walk', 'a, b')
    """
    if isinstance(label, dict) and "tuple" in label:
        return " → ".join(map(str, label["tuple"]))
    return ", ".join(map(str, label)) if isinstance(label, list | tuple) else str(label)


_MAX_LINES = 6
_MAX_BARS = 15
_LOW = 0.15
"""The share of a budget below which the rest is drawn in the colour of a warning."""
_STEP, _SIZE = 16.0, 14.0
_COMPARABLE = ("histogram", "count", "frequencies")


def answer_of(document: Mapping[str, Any]) -> Release | CountTable:
    """Return the release that a document holds."""
    text = json.dumps(document)
    if document.get("schema") == "quiltwork/release":
        return Release.from_json(text)
    return CountTable.from_json(text)


def answer_chart(answer: Release | CountTable) -> Chart | None:
    """Return the chart of an answer with its intervals; None for a label, which has none."""
    try:
        return answer.chart()
    except UnsupportedError:
        return None


def over_time(answers: Sequence[Release | CountTable]) -> LineChart | None:
    """Return a chart that compares the most frequent question over its windows, as shares.

    None unless two answers have the same cells and windows of the same length.
    """
    comparable = [a for a in answers if isinstance(a, Release) and a.query.kind in _COMPARABLE]
    groups = Counter(map(_question_of, comparable)).most_common(1)
    same = [answer for answer in comparable if _question_of(answer) == groups[0][0]]
    if len(same) < 2 or len(same[0].cells) > _MAX_LINES:
        return None
    same.sort(key=lambda answer: answer.window)
    shares = [_shares(answer) for answer in same]
    lines = tuple(
        Line(
            str(cell),
            tuple((float(at), row[index][0]) for at, row in enumerate(shares)),
            spread=tuple(row[index][1:] for row in shares),
        )
        for index, cell in enumerate(same[0].cells)
    )
    names = tuple(f"{start:,}–{stop:,}" for start, stop in (answer.window for answer in same))
    return LineChart(
        "Compared over time",
        "The same question about several windows, as shares of their time points, with 95 % "
        "intervals.",
        "time points",
        "share",
        lines,
        x_names=names,
    )


def _question_of(answer: Release) -> str:
    """Return a key that is equal for answers that can be compared."""
    return repr((answer.query.kind, answer.cells, answer.points))


def _shares(answer: Release) -> list[tuple[float, float, float]]:
    import numpy as np

    total = 1.0 if answer.query.kind == "frequencies" else float(answer.points)
    ends = (np.clip(np.ravel(end) / total, 0, 1) for end in answer.interval())
    rows = zip(np.ravel(answer.value) / total, *ends, strict=True)
    return [(float(value), float(low), float(high)) for value, low, high in rows]


def leakage_chart(runs: Sequence[Any], total: float, budget: float) -> LineChart:
    """Return the chart of the leakage of each time point, with the total and the budget."""
    import numpy as np

    columns = zip(*((run.first, run.last, run.epsilon) for run in runs), strict=True)
    profile = LeakageProfile(*map(np.array, columns))
    return profile.chart_beside(total, budget)


def sizes_chart(sizes: Mapping[str, int], k: int) -> BarChart:
    """Return the chart of a published table's group sizes, binned if there are many."""
    counts = {int(size): number for size, number in sizes.items()}
    low, high = min(counts), max(counts)
    width = 1 if len(counts) <= _MAX_BARS else -(-(high - low + 1) // _MAX_BARS)
    bars: dict[str, float] = {}
    for size in sorted(counts):
        first = low + (size - low) // width * width
        name = f"{first}" if width == 1 else f"{first:,} to {first + width - 1:,}"
        bars[name] = bars.get(name, 0.0) + counts[size]
    return BarChart(
        "Sizes of the published groups",
        f"The number of groups of each size; the rules require at least {k} records.",
        "groups",
        tuple((f"{name} records", number) for name, number in bars.items()),
    )


def gauge(name: str, budget: float, left: float, price: float = 0.0, patches: int = 20) -> Html:
    """Return a strip of patches for the rest of a budget, with the part that a price would take.

    >>> 'aria-label="Budget of a: 0.5 of 2 left."' in gauge("a", 2, 0.5).text
    True
    """
    share = min(1.0, max(0.0, left / budget)) if budget > 0 else 0.0
    after = max(0.0, left - price) / budget if budget > 0 else 0.0
    kind = "low" if after < _LOW else "left"
    patches_drawn = [
        f'<rect class="hole" x="{_STEP * i:.1f}" y="1" width="{_SIZE}" height="{_SIZE}" rx="2"/>'
        for i in range(patches)
    ]
    patches_drawn += _filled(kind, 0.0, min(after, share) * patches)
    if price > 0:
        patches_drawn += _filled("price", min(after, share) * patches, share * patches)
    label = f"Budget of {name}: {left:.4g} of {budget:.4g} left."
    if price > 0:
        label += f" The question takes {price:.4g}."
    return Html(
        f'<svg class="gauge" viewBox="0 0 {_STEP * patches - 2:.0f} 16" role="img" '
        f'aria-label="{html.escape(label)}">{"".join(patches_drawn)}</svg>'
    )


def _filled(kind: str, first: float, last: float) -> Iterator[str]:
    """Yield patches from one position to another, the first and the last in part."""
    for i in range(int(first), int(last) + 1):
        low, high = max(first, i), min(last, i + 1)
        if high - low > 1e-9:
            x, width = _STEP * i + _SIZE * (low - i), _SIZE * (high - low)
            corner = min(2.0, width / 2)
            yield (
                f'<rect class="{kind}" x="{x:.1f}" y="1" width="{width:.1f}" '
                f'height="{_SIZE}" rx="{corner:.1f}"/>'
            )
