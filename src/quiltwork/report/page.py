"""A page: one self-contained HTML file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quiltwork._version import __version__
from quiltwork.report.elements import Html, escaped
from quiltwork.report.style import PAGE_STYLE

_PATCHES = ("c1", "c5", "c2", "c3", "c1", "c4", "c2", "c3", "c5")
_HEADING = re.compile(r'<section id="([^"]*)"><h2>(.*?)</h2>', re.DOTALL)


def page(title: str, lead: str, sections: Sequence[Html], footer: str = "") -> str:
    """Return a page; with several sections it begins with a table of contents.

    >>> "<h1>Results</h1>" in page("Results", "Counts of June.", [])
    True
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="quiltwork {__version__}">
<title>{escaped(title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
<header>{mark()}<h1>{escaped(title)}</h1><p class="lead">{escaped(lead)}</p></header>
{_contents(sections)}
<main>
{"".join(part.text for part in sections)}
</main>
<footer>{escaped(footer)} Written by quiltwork {__version__}.</footer>
</body>
</html>
"""


def _contents(sections: Sequence[Html]) -> str:
    headings = [match.groups() for part in sections if (match := _HEADING.search(part.text))]
    if len(headings) < 2:
        return ""
    items = "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in headings)
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


def mark() -> str:
    """Return the logo: nine patches of a quilt, in the colours of the page's style."""
    patches = "".join(
        f'<rect x="{2 + 14 * (i % 3)}" y="{2 + 14 * (i // 3)}" width="12" height="12" rx="2" '
        f'fill="var(--{colour})" opacity="{0.9 if i % 2 == 0 else 0.45}"/>'
        for i, colour in enumerate(_PATCHES)
    )
    return f'<svg class="mark" viewBox="0 0 44 44" aria-hidden="true">{patches}</svg>'
