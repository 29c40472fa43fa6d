"""The directive `picture`: a chart of a value that the page's own code has computed.

A page with pictures is run when the site is built, and its output is compared, so nothing on it can
be out of date. A chart is drawn twice, wide and for phones, in the colours of the site, light or
dark.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import warnings
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

from docutils import nodes
from examples import pictures
from narrow import narrow
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from quiltwork.report import Chart, inline_svg
from quiltwork.report.style import DARK, FIGURES, LIGHT

NARROW = 370
STYLE = "charts.css"


def chart_of(value: Any) -> Chart:
    """Return the chart that `plot()` draws of a result; charts are returned as they are."""
    return value.chart() if hasattr(value, "chart") else value


def figure(value: Any) -> str:
    """Return a chart with title and description as HTML, in two widths; CSS shows one of them."""
    if type(value).__module__.startswith("matplotlib."):
        return "".join(
            f"<figure class='drawn {name}'>{by_matplotlib(value, *size)}</figure>"
            for name, size in (("wide", (7.2, 3.4)), ("narrow", (3.9, 3.2)))
        )
    chart = chart_of(value)
    return (
        f"<figure class='drawn'><p class='figure-title'>{escape(chart.title)}</p>"
        f"<div class='wide'>{inline_svg(chart)}</div>"
        f"<div class='narrow'>{inline_svg(chart, NARROW)}</div>"
        f"<figcaption>{escape(chart.description)}</figcaption></figure>"
    )


def by_matplotlib(figure: Any, width: float, height: float) -> str:
    """Return a matplotlib figure as SVG in the colours of the page, with long titles wrapped."""
    import matplotlib as mpl

    figure.set_size_inches(width, height)
    for axes in figure.axes:
        title = axes.get_title(loc="left").replace("\n", " ")
        axes.set_title(fill(title, int(9 * width)), loc="left", fontsize=11)
        axes.tick_params(axis="x", labelrotation=0 if width > 5 else 60)
    drawing = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(drawing, format="svg", transparent=True)
    svg = drawing.getvalue()
    about = escape("; ".join(axes.get_title(loc="left") for axes in figure.axes), quote=True)
    begin = f'<svg class="qw plotted" role="img" aria-label="{about}" '
    svg = svg[svg.index("<svg") :].replace("<svg ", begin, 1)
    prefixed = rf"\g<1>w{width * 10:.0f}-"  # both widths are on one page, so ids must differ
    svg = re.sub(r'(id="|href="#|url\(#)', prefixed, svg)
    return svg.replace("stroke: #000000", "stroke: var(--muted)").replace("#23667a", "var(--c1)")


def drawn(path: Path) -> dict[int, str]:
    """Run a page in an empty folder and return its pictures by line number."""
    folder_before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            return {line: figure(value) for line, value in pictures(path)}
        finally:
            os.chdir(folder_before)


class Picture(SphinxDirective):
    """`picture expression`: a chart, or a result that has one."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.doc2path(self.env.docname))
        drawings = self.env.temp_data.setdefault("pictures", {})
        if not drawings:
            drawings.update(drawn(path))
        return [nodes.raw("", drawings[self.lineno + 1], format="html")]


class Inline(SphinxPostTransform):
    """Inline stored charts: as images they could not take the colours of the page."""

    default_priority = 5  # before images are gathered
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.app.srcdir) / image["uri"]
            if path.suffix == ".svg" and 'class="qw"' in (svg := path.read_text(encoding="utf-8")):
                svg = re.sub(r"<style>.*?</style>", "", svg, flags=re.S)
                title = f"<span class='figure-title'>{escape(image.get('alt', ''))}</span>"
                image.replace_self(nodes.raw("", title + stored(svg), format="html"))


def stored(svg: str) -> str:
    """Return a stored chart in two widths, or scrollable if it cannot be narrowed."""
    small = narrow(svg)
    if small is None:
        return f"<span class='stored' tabindex='0'>{svg}</span>"
    both = f"<span class='wide'>{svg}</span><span class='narrow'>{small}</span>"
    return f"<span class='drawn'>{both}</span>"


def write_style(app: Sphinx, error: Exception | None) -> None:
    """Write the chart colours for the reader's theme, or the system's if none was chosen."""
    dark = f"body[data-theme=dark] .qw{{{DARK}}}"
    system = f"body:not([data-theme=light]) .qw{{{DARK}}}"
    style = (
        f".qw{{{LIGHT}}}\n{dark}\n"
        f"@media screen and (prefers-color-scheme:dark){{{system}}}\n{FIGURES}"
    )
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "_static" / STYLE).write_text(style, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("picture", Picture)
    app.add_post_transform(Inline)
    app.add_css_file(STYLE)
    app.connect("build-finished", write_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
