"""Render formulae as MathML, which browsers show without scripts or fonts."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml import converter
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

RARE, COMMON = "<mi>&#x029F5;</mi>", "<mo>&#x02216;</mo>"  # a sign for "without" that fonts have
LONG = 28  # letters of TeX from which a formula may not fit a phone's line


def convert(formula: str, display: str = "inline") -> str:
    return str(converter.convert(formula, display=display)).replace(RARE, COMMON)


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    formula = convert(node.astext())
    wide = len(node.astext()) >= LONG
    self.body.append(f'<span class="wide-formula">{formula}</span>' if wide else formula)
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    text = node.astext().strip()
    if "\\\\" in text and "\\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    self.body.append(f'<div class="math">{convert(text, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
