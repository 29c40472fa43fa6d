"""Reports: self-contained HTML pages with their figures.

A page is one file: style and figures are inline, nothing is fetched. Figures are plain data
(`charts`) drawn as SVG without any plotting library (`svg`); with the `plot` extra the same
charts are drawn by matplotlib, for notebooks and image files (`figures`).
"""

from quiltwork.report.charts import (
    BarChart,
    Chart,
    Estimate,
    IntervalChart,
    Line,
    LineChart,
    MatrixChart,
)
from quiltwork.report.elements import (
    Html,
    bullets,
    code,
    facts,
    figure,
    folded,
    joined,
    link,
    note,
    paragraph,
    section,
    table,
)
from quiltwork.report.page import page
from quiltwork.report.svg import inline_svg, standalone_svg

__all__ = [
    "BarChart",
    "Chart",
    "Estimate",
    "Html",
    "IntervalChart",
    "Line",
    "LineChart",
    "MatrixChart",
    "bullets",
    "code",
    "facts",
    "figure",
    "folded",
    "inline_svg",
    "joined",
    "link",
    "note",
    "page",
    "paragraph",
    "section",
    "standalone_svg",
    "table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
