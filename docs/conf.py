"""The documentation site: Markdown pages, formulae as MathML, nothing loaded from elsewhere."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from quiltwork import __version__  # noqa: E402

project = "quiltwork"
author = "The quiltwork developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    *("api_pages", "mathml", "notebooks", "pictures", "results", "search_words"),
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext", "_generated"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"quiltwork {__version__}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["quiltwork.css"]
toc_object_entries = False  # a sidebar of every method would be built again for every page
maximum_signature_line_length = 72
python_use_unqualified_type_names = True


def within_reach(app, page, template, context, doctree) -> None:
    """Let the keyboard reach code and formulae that are wider than the page."""
    for tag in ("<pre", '<div class="math-wrapper'):
        name, _, rest = tag.partition(" ")
        reached = f'{name} tabindex="0" {rest}'.rstrip()
        context["body"] = context.get("body", "").replace(tag, reached)


def setup(app) -> None:
    app.connect("html-page-context", within_reach)
