"""The directive `notebook`: a link to the page as a Jupyter notebook, made from its Markdown.

Code is copied without prompts. Printed output, pictures and links within the site are left out,
since a notebook prints and draws by itself.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import jupytext
from docutils import nodes
from examples import FENCE
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def code_of(text: str) -> str:
    """Return the statements of a block without doctest prompts and output."""
    statements = doctest.DocTestParser().get_examples(text)
    return (
        "".join(example.source for example in statements).rstrip() if statements else text.rstrip()
    )


def _kept(block: re.Match[str]) -> str:
    if block["language"] != "python":
        return "\0"
    return f"```python\n{code_of(block['body'])}\n```"


def notebook(page: str) -> str:
    """Return a page as the text of a Jupyter notebook."""
    markdown = FENCE.sub(_kept, page)
    plain = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", markdown)
    notebook_file = jupytext.reads(re.sub(r"\n+\0\n+", "\n\n", plain), fmt="md")
    notebook_file.metadata["kernelspec"] = KERNEL
    for index, cell in enumerate(notebook_file.cells):
        cell["id"] = f"cell-{index + 1}"
    return str(jupytext.writes(notebook_file, fmt="ipynb"))


class Notebook(SphinxDirective):
    """`notebook`: write the page as a notebook beside it, and link to it."""

    def run(self) -> list[nodes.Node]:
        name = f"{Path(self.env.docname).name}.ipynb"
        self.env.metadata[self.env.docname]["notebook"] = name
        text = nodes.paragraph("", "To try it yourself: ")
        text += nodes.reference("", f"this page as a notebook, {name}", refuri=name)
        text += nodes.Text(".")
        return [text]


def write(app: Sphinx, error: Exception | None) -> None:
    for page, about in app.env.metadata.items():
        if error is None and "notebook" in about:
            source = Path(app.env.doc2path(page)).read_text(encoding="utf-8")
            (Path(app.outdir) / page).with_name(about["notebook"]).write_text(
                notebook(source), encoding="utf-8"
            )


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("notebook", Notebook)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
