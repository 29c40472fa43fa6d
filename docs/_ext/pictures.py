"""The directive `picture`: a chart that the page's own code has made up to there.

A page with pictures is run when the site is built, with everything that it prints compared, so
nothing on it can be out of date. A chart is drawn twice, wide and for phones, and takes the
colours of the site, light or dark.
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
    """The chart that `plot()` would draw of a result, or a chart as it is."""
    return value.chart() if hasattr(value, "chart") else value


def figure(value: Any) -> str:
    """A chart with its title and description, in two widths of which a page shows one."""
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
    """A figure in inches, in the colours of the page; titles are broken where they do not fit."""
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
    own = rf"\g<1>w{width * 10:.0f}-"  # both widths are on one page: no name may come twice
    svg = re.sub(r'(id="|href="#|url\(#)', own, svg)
    return svg.replace("stroke: #000000", "stroke: var(--muted)").replace("#23667a", "var(--c1)")


def drawn(path: Path) -> dict[int, str]:
    """Run a page in an empty folder: its pictures by the line on which they stand."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            return {line: figure(value) for line, value in pictures(path)}
        finally:
            os.chdir(here)


class Picture(SphinxDirective):
    """`picture expression`: a chart, or a result that has one."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.doc2path(self.env.docname))
        made = self.env.temp_data.setdefault("pictures", {})
        if not made:
            made.update(drawn(path))
        return [nodes.raw("", made[self.lineno + 1], format="html")]


class Inline(SphinxPostTransform):
    """Put stored charts into the page itself: as images they could not take its colours."""

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
    """A stored chart in two widths; one that cannot be made narrow is moved sideways."""
    small = narrow(svg)
    if small is None:
        return f"<span class='stored' tabindex='0'>{svg}</span>"
    both = f"<span class='wide'>{svg}</span><span class='narrow'>{small}</span>"
    return f"<span class='drawn'>{both}</span>"


def write_style(app: Sphinx, error: Exception | None) -> None:
    """Write the colours of charts: those of the theme that the reader chose, or the system's."""
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
