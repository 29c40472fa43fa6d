"""The elements of a page. Each takes plain text, which is escaped, or `Html`, which is not."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number

from quiltwork.report.charts import Chart
from quiltwork.report.svg import both_widths


@dataclass(frozen=True)
class Html:
    """Markup that has been escaped."""

    text: str

    def __html__(self) -> str:
        """Return the markup to a template engine, which would escape other text."""
        return self.text


def escaped(content: object) -> str:
    """Return markup for a value: `Html` unchanged, other values as escaped text.

    >>> escaped("a < b"), escaped(Html("<b>x</b>"))
    ('a &lt; b', '<b>x</b>')
    """
    return content.text if isinstance(content, Html) else html.escape(str(content))


def joined(parts: Iterable[Html]) -> Html:
    """Concatenate elements."""
    return Html("\n".join(part.text for part in parts))


def paragraph(content: object) -> Html:
    """Return a paragraph."""
    return Html(f"<p>{escaped(content)}</p>")


def code(text: str) -> Html:
    """Return a block of text to copy; line breaks are kept."""
    return Html(f'<pre tabindex="0"><code>{escaped(text)}</code></pre>')


def bullets(items: Iterable[object]) -> Html:
    """Return a bulleted list."""
    return Html("<ul>" + "".join(f"<li>{escaped(item)}</li>" for item in items) + "</ul>")


def link(address: str, text: str) -> Html:
    """Return a link to a file or an anchor."""
    return Html(f'<a href="{html.escape(address)}">{escaped(text)}</a>')


def note(title: str, content: object) -> Html:
    """Return a highlighted remark: a limit, a warning, a reading aid."""
    return Html(f'<aside class="note"><strong>{escaped(title)}</strong> {escaped(content)}</aside>')


def folded(summary: str, *parts: Html) -> Html:
    """Return a section that readers can unfold: a long table, a detail."""
    return Html(f"<details><summary>{escaped(summary)}</summary>\n{joined(parts).text}\n</details>")


def facts(values: Mapping[str, object]) -> Html:
    """Return a list of key figures with their names."""
    items = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>"
        for name, value in values.items()
    )
    return Html(f'<dl class="facts">{items}</dl>')


def table(caption: str, header: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """Return a table; columns of numbers are right-aligned."""
    body = [list(row) for row in rows]
    numeric = [
        bool(body) and all(isinstance(row[column], Number) for row in body)
        for column in range(len(header))
    ]
    head = _row("th", ' scope="col"', header, numeric)
    lines = "".join(f"<tr>{_row('td', '', row, numeric)}</tr>" for row in body)
    return Html(
        f'<div class="scroll" tabindex="0"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def figure(chart: Chart) -> Html:
    """Return a chart with its title above and its description below."""
    return Html(
        f"<figure><p class='figure-title'>{escaped(chart.title)}</p>"
        f"{both_widths(chart)}"
        f"<figcaption>{escaped(chart.description)}</figcaption></figure>"
    )


def section(title: str, *parts: Html, anchor: str) -> Html:
    """Return a section with its heading; `anchor` is the target of links to it."""
    return Html(
        f'<section id="{html.escape(anchor)}"><h2>{escaped(title)}</h2>\n'
        f"{joined(parts).text}\n</section>"
    )


def _row(tag: str, attributes: str, cells: Sequence[object], numeric: Sequence[bool]) -> str:
    right = ' class="number"'
    return "".join(
        f"<{tag}{attributes}{right if number else ''}>{escaped(_readable(cell))}</{tag}>"
        for cell, number in zip(cells, numeric, strict=True)
    )


def _readable(cell: object) -> object:
    """Format numbers as charts do, floats with six digits at most; other values are unchanged."""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.6g}"
