"""The directive `results`: what `make bench` and `make evidence` stored, as they stored it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent.parent


class Results(SphinxDirective):
    """`results bench` or `results evidence`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        folder = self.arguments[0]
        lines: list[str] = []
        for path in sorted((ROOT / folder / "results").glob("*.*")):
            self.env.note_dependency(str(path))
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".md":
                title, _, table = text.partition("\n")
                lines += [f"**{title.lstrip('# ')}**", table, ""]
            elif path.suffix == ".txt":
                lines += ["```text", text.rstrip(), "```", ""]
        return self.parse_text_to_nodes("\n".join(lines or [f"None stored; run `make {folder}`."]))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
