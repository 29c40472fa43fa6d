"""Search words: the page or section that the site's search ranks first for each of them."""

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
    "concepts/epsilon": "epsilon, odds, meaning, privacy loss",
    "concepts/for-managers": "manager, boss, gdpr, legal",
    "concepts/limits": "limitations",
    "for-sceptics": "proof, Coq, machine-checked, trust",
    "glossary": "canonical, canonical value, definition",
    "how-to/any-dp-mechanism": "OpenDP, diffprivlib, Tumult Analytics, Laplace",
    "how-to/audit": "leakage",
    "how-to/backup": "backup, restore",
    "how-to/calibrate#a-stretch-of-time": "episode",
    "how-to/choose-a-belief": "prior, correlation, Markov chain",
    "how-to/counts#households": "household, family",
    "how-to/gaussian-noise": "Gaussian, delta, zCDP",
    "how-to/holdout": "overfitting",
    "how-to/leaderboard": "benchmark, leaderboard, agent",
    "how-to/plan-a-year#every-week-from-the-command-line": "weekly, every week, cron",
    "how-to/read-a-series#time-zones": "timezone, time zone, daylight saving",
    "how-to/release-a-histogram#a-map": "map, heatmap, gps, location, places, trajectory",
    "how-to/risk": "re-identification, linkage attack",
    "how-to/tables": "k-anonymity, l-diversity, t-closeness, collusion",
    "reference/errors": "error, exception, refused, traceback",
    "reference/service": "idempotency, idempotency key, retry, rate limit, concurrency limit",
    "theory/ledger": "snapshot",
    "theory/query-sensitivity": "sensitivity",
    "tutorials/four-hospitals": "hospital, clinic",
}


class SearchWords(SphinxTransform):
    """Add search words as main entries of the index, which the search ranks highest."""

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
        """Return the section with this anchor, or the page if there is no anchor.

        Raises:
            ExtensionError: if a heading was renamed; then change its anchor in `WORDS`.
        """
        for section in self.document.findall(nodes.section):
            if not anchor or anchor in section["ids"]:
                return section
        raise ExtensionError(f"{self.env.docname} has no section {anchor}, which has search words")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(SearchWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
