"""Templates and the files that pages bring: one style, one script, one mark."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from quiltwork.report import Html
from quiltwork.report.elements import figure as drawn
from quiltwork.report.page import mark
from quiltwork.report.style import LIGHT, PAGE_STYLE
from quiltwork.service.dashboard.charts import gauge

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
    )
    made.filters.update(number=number, moment=moment, window=window, cell=cell)
    return made


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
