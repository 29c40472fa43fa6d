"""Templates, the files that pages bring, and charts of what the API says."""

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
from quiltwork.exact import counted
from quiltwork.report import BarChart, Chart, Html, Line, LineChart
from quiltwork.report.elements import figure as drawn
from quiltwork.report.page import mark
from quiltwork.report.style import LIGHT, PAGE_STYLE
from quiltwork.series import Release

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing but the curator's own style, script and pictures; no markup may bring its own."""

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
    """A file that pages bring; its address changes with its content, so it may be kept."""

    content: bytes
    media_type: str

    @property
    def version(self) -> str:
        """The beginning of a digest of the content."""
        return hashlib.sha256(self.content).hexdigest()[:12]


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files that pages bring, by name."""
    folder = files(__package__) / "static"
    style = PAGE_STYLE + (folder / "dashboard.css").read_text(encoding="utf-8")
    drawn = mark().replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    for name, colour in (pair.split(":") for pair in LIGHT.split(";")):
        drawn = drawn.replace(f"var({name})", colour)
    return {
        "style.css": Asset(style.encode(), "text/css; charset=utf-8"),
        "dashboard.js": Asset((folder / "dashboard.js").read_bytes(), "text/javascript"),
        "mark.svg": Asset(drawn.encode(), "image/svg+xml"),
    }


@cache
def environment() -> Environment:
    """Return the templates: everything is escaped, a name that is missing is an error."""
    made = Environment(
        loader=PackageLoader("quiltwork.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        asset=lambda name: f"/assets/{name}?{assets()[name].version}",
        mark=Html(mark()),
        gauge=gauge,
        figure=drawn,
        colours=_COLOURS,
    )
    made.filters.update(number=number, counted=counted, moment=moment, window=window, cell=cell)
    return made


_COLOURS = {
    **dict.fromkeys(("done", "open", "published", "released"), "good"),
    **dict.fromkeys(("running", "drawing", "active", "publishing", "ready to open"), "busy"),
    **dict.fromkeys(("queued", "collecting", "debited", "waiting for tables"), "warn"),
    **dict.fromkeys(("lost", "failed", "retired", "revoked"), "bad"),
}
"""How the state of a thing is coloured; others are not."""


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a template."""
    return environment().get_template(template).render(values)


def number(value: Any) -> str:
    """Write a number shortly, with separators where it is long.

    >>> number(1234567), number(0.30000001), number(None)
    ('1,234,567', '0.3', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    return f"{int(value):,}"


def moment(text: str | None) -> str:
    """Write a moment in UTC to the minute.

    >>> moment("2026-03-01T02:00:07.123Z"), moment(None)
    ('2026-03-01 02:00 UTC', '–')
    """
    return "–" if not text else f"{text[:16].replace('T', ' ')} UTC"


def window(query: Mapping[str, Any]) -> str:
    """Say which time points a query is about.

    >>> window({"kind": "histogram"}), window({"window": [1, 1440]})
    ('all', '1 to 1,440')
    """
    start, stop = query.get("window", (1, None))
    if start == 1 and stop is None:
        return "all"
    return f"{start:,} to {'the end' if stop is None else format(stop, ',')}"


def cell(label: Any) -> str:
    """Write the label of a cell.

    >>> cell("walk"), cell({"tuple": ["rest", "walk"]}), cell(["a", "b"])
    ('walk', 'rest → walk', 'a, b')
    """
    if isinstance(label, dict) and "tuple" in label:
        return " → ".join(map(str, label["tuple"]))
    return ", ".join(map(str, label)) if isinstance(label, list | tuple) else str(label)


_MOST_LINES = 6
_MOST_BARS = 15
_LOW = 0.15
"""Below this share of a budget, what is left of it is drawn as a warning."""
_STEP, _SIZE = 16.0, 14.0
_COMPARABLE = ("histogram", "count", "frequencies")


def answer_of(document: Mapping[str, Any]) -> Release | CountTable:
    """Read an answer as it was released."""
    text = json.dumps(document)
    if document.get("schema") == "quiltwork/release":
        return Release.from_json(text)
    return CountTable.from_json(text)


def answer_chart(answer: Release | CountTable) -> Chart | None:
    """Draw an answer with its error bars; None for a label, which has none."""
    try:
        return answer.chart()
    except UnsupportedError:
        return None


def over_time(answers: Sequence[Release | CountTable]) -> LineChart | None:
    """Compare answers to the same question, as shares of what each of them covers.

    None unless there are two of them, with the same cells and on windows as long.
    """
    found = [one for one in answers if isinstance(one, Release) and one.query.kind in _COMPARABLE]
    alike = Counter(map(_alike, found)).most_common(1)
    same = [one for one in found if _alike(one) == alike[0][0]]
    if len(same) < 2 or len(same[0].cells) > _MOST_LINES:
        return None
    same.sort(key=lambda one: one.window)
    shares = [_shares(one) for one in same]
    lines = tuple(
        Line(
            str(cell),
            tuple((float(at), row[place][0]) for at, row in enumerate(shares)),
            spread=tuple(row[place][1:] for row in shares),
        )
        for place, cell in enumerate(same[0].cells)
    )
    names = tuple(f"{start:,}–{stop:,}" for start, stop in (one.window for one in same))
    return LineChart(
        "Compared over time",
        "The same question about several windows, as shares of their moments, with 95 % intervals.",
        "time points",
        "share",
        lines,
        x_names=names,
    )


def _alike(answer: Release) -> str:
    """Say what two answers have in common that can be compared."""
    return repr((answer.query.kind, answer.cells, answer.points))


def _shares(answer: Release) -> list[tuple[float, float, float]]:
    import numpy as np

    whole = 1.0 if answer.query.kind == "frequencies" else float(answer.points)
    low, high = answer.interval()
    ends = (np.clip(np.ravel(part) / whole, 0, 1) for part in (low, high))
    rows = zip(np.ravel(answer.value) / whole, *ends, strict=True)
    return [(float(at), float(a), float(b)) for at, a, b in rows]


def leakage_chart(runs: Sequence[Any], total: float, budget: float) -> LineChart:
    """Draw what each time point leaks, beside the total and the budget."""
    import numpy as np

    first, last, told = zip(*((one.first, one.last, one.epsilon) for one in runs), strict=True)
    profile = LeakageProfile(np.array(first), np.array(last), np.array(told))
    return profile.chart_beside(total, budget)


def sizes_chart(sizes: Mapping[str, int], k: int) -> BarChart:
    """Draw how many groups of a published table have how many records, many sizes as ranges."""
    counts = {int(size): number for size, number in sizes.items()}
    low, high = min(counts), max(counts)
    width = 1 if len(counts) <= _MOST_BARS else -(-(high - low + 1) // _MOST_BARS)
    bars: dict[str, float] = {}
    for size in sorted(counts):
        first = low + (size - low) // width * width
        name = f"{first}" if width == 1 else f"{first:,} to {first + width - 1:,}"
        bars[name] = bars.get(name, 0.0) + counts[size]
    return BarChart(
        "Sizes of the published groups",
        f"How many groups hold so many records; none may hold fewer than {k}.",
        "groups",
        tuple((f"{name} records", number) for name, number in bars.items()),
    )


def gauge(name: str, budget: float, left: float, price: float = 0.0, patches: int = 20) -> Html:
    """Draw what is left of a budget as a strip of patches, and what a price would take of it.

    >>> 'aria-label="Budget of a: 0.5 of 2 left."' in gauge("a", 2, 0.5).text
    True
    """
    share = min(1.0, max(0.0, left / budget)) if budget > 0 else 0.0
    after = max(0.0, left - price) / budget if budget > 0 else 0.0
    kind = "low" if after < _LOW else "left"
    drawn = [
        f'<rect class="hole" x="{_STEP * i:.1f}" y="1" width="{_SIZE}" height="{_SIZE}" rx="2"/>'
        for i in range(patches)
    ]
    drawn += _filled(kind, 0.0, min(after, share) * patches)
    if price > 0:
        drawn += _filled("price", min(after, share) * patches, share * patches)
    said = f"Budget of {name}: {left:.4g} of {budget:.4g} left."
    if price > 0:
        said += f" The question takes {price:.4g}."
    return Html(
        f'<svg class="gauge" viewBox="0 0 {_STEP * patches - 2:.0f} 16" role="img" '
        f'aria-label="{html.escape(said)}">{"".join(drawn)}</svg>'
    )


def _filled(kind: str, first: float, last: float) -> Iterator[str]:
    """Draw patches from one place to another, the first and the last in part."""
    for i in range(int(first), int(last) + 1):
        low, high = max(first, i), min(last, i + 1)
        if high - low > 1e-9:
            x, width = _STEP * i + _SIZE * (low - i), _SIZE * (high - low)
            corner = min(2.0, width / 2)
            yield (
                f'<rect class="{kind}" x="{x:.1f}" y="1" width="{width:.1f}" '
                f'height="{_SIZE}" rx="{corner:.1f}"/>'
            )
