"""`LocalPublication`: a table published on this machine, with its report.

It is above `risk`, which assesses `PublishedRecords`, so that `pub.report()` is
`report(assess(pub))` without a circle of imports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quiltwork.results import plain
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.publishing.for_providers import ForProviders, for_providers
from quiltwork.tables.publishing.published_records import PublishedRecords
from quiltwork.tables.risk.assessment import assess
from quiltwork.tables.risk.report_page import TableReport, report


@dataclass(frozen=True, eq=False, repr=False)
class LocalPublication(PublishedRecords):
    """A publication made on this machine."""

    @classmethod
    def of(cls, records: PublishedRecords) -> LocalPublication:
        """Return the same records with their report methods."""
        return cls(records.source, records.recipe, records.boxes, records.labels, records.rows)

    @cached_property
    def for_providers(self) -> ForProviders:
        """Whose rows are in it, how many providers may collude, and who would break it next."""
        return for_providers(self)

    @property
    def about_providers(self) -> tuple[str, ...]:
        """Sentences about whose rows are in it, and how many groups have a single provider."""
        return tuple(filter(None, (self.for_providers.explain(), self.pooled)))

    def summary(self) -> dict[str, Any]:
        """Return rows, groups, suppressed rows, information loss and the facts for providers."""
        return {
            "rows": len(self.rows),
            "groups": self.boxes.count,
            "suppressed": self.suppressed,
            "loss": plain(publication_loss(self)),
            **self.for_providers.body(),
        }

    def report(self, path: str | Path | None = None) -> TableReport:
        """Return the report on what the table reveals and keeps; with a path, write it as HTML."""
        page = report(assess(self))
        if path is not None:
            page.write(path)
        return page
