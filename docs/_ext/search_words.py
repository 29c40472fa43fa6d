"""Words that readers search for, and the section that answers them: it comes first."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

WORDS = {
    "concepts/adding-up#what-can-be-undone": "undo, delete, mistake, withdraw, refund, retire",
    "concepts/adding-up": "composition, budget",
    "concepts/epsilon": "epsilon, odds, meaning",
    "concepts/for-managers": "manager, boss, gdpr, legal",
    "how-to/calibrate#a-stretch-of-time": "episode",
    "how-to/counts#households": "household, family",
    "how-to/holdout": "overfitting",
    "how-to/leaderboard": "benchmark, leaderboard, agent",
    "how-to/plan-a-year#every-week-from-the-command-line": "weekly, every week, cron",
    "how-to/read-a-series#time-zones-and-windows": "timezone, time zone, daylight saving",
    "how-to/release-a-histogram#a-map": "map, heatmap, gps, location, places, trajectory",
    "reference/errors": "error, exception, refused, traceback",
    "tutorials/four-hospitals": "hospital, clinic",
}


class SearchWords(SphinxTransform):
    """Put words into the index as its main entries, which the search ranks above all else."""

    default_priority = 800  # before domains gather the index

    def apply(self, **kwargs: Any) -> None:
        for place, words in WORDS.items():
            page, _, anchor = place.partition("#")
            if page == self.env.docname:
                section = self.section(anchor)
                at = section["ids"][0]
                entries = [("single", word, at, "main", None) for word in words.split(", ")]
                section.insert(1, addnodes.index(entries=entries))

    def section(self, anchor: str) -> nodes.section:
        """The section of this name, or the page itself."""
        for section in self.document.findall(nodes.section):
            if not anchor or anchor in section["ids"]:
                return section
        raise ExtensionError(f"{self.env.docname} has no section {anchor}, which has search words")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(SearchWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
