"""`Publication`: an anonymized table, with what it reveals and keeps for those who sign for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quiltwork.results import plain
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.publishing.for_providers import ForProviders, for_providers
from quiltwork.tables.publishing.published_records import (
    PublishedRecords,
    PublishedTable,
    require_local,
)
from quiltwork.tables.publishing.writing import Formulas
from quiltwork.tables.risk.assessment import assess
from quiltwork.tables.risk.report_page import TableReport
from quiltwork.tables.risk.report_page import report as report_on
from quiltwork.tables.table import Table

__all__ = ["LocalPublication", "Publication", "require_local"]


@dataclass(frozen=True, eq=False, repr=False)
class Publication(PublishedTable, ABC):
    """A publication on one machine or on Spark."""

    @property
    @abstractmethod
    def frame(self) -> Any:
        """What is published: quasi-identifiers as texts, the others as they are; no provider."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The same as a Table with providers. Never publish it."""

    @property
    @abstractmethod
    def groups(self) -> Any:
        """The groups: a sequence here, a frame with their sizes on Spark."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return rows, groups, suppressed rows and what was lost, JSON-ready."""

    @abstractmethod
    def report(self, path: str | Path | None = None) -> Any:
        """Return what the table reveals and keeps; with a path, write it as an HTML page."""

    @abstractmethod
    def write(self, path: str | Path, formulas: Formulas = "keep") -> Path:
        """Write the published frame."""

    def body(self) -> dict[str, Any]:
        """Return how it was made and its summary; no record is in it."""
        made = {"m": self.m, "method": self.method, "constraint": self.constraint}
        return {**made, **self.summary()}

    @property
    def about_providers(self) -> tuple[str, ...]:
        """Sentences about whose rows are in it; none where that was not looked at."""
        return ()

    def explain(self) -> str:
        """Say what every group withstands, and what is known about whose rows are in it."""
        return " ".join((self.withstood, *self.about_providers))


@dataclass(frozen=True, eq=False, repr=False)
class LocalPublication(PublishedRecords, Publication):
    """A publication made on this machine."""

    @classmethod
    def of(cls, made: PublishedRecords) -> LocalPublication:
        """Return the same records with what they reveal."""
        return cls(made.source, made.recipe, made.boxes, made.labels, made.rows)

    def explain(self) -> str:
        """Say what every group withstands, and what is known about whose rows are in it."""
        return Publication.explain(self)

    @cached_property
    def for_providers(self) -> ForProviders:
        """Whose rows are in it, how many may collude, and who would break it next."""
        return for_providers(self)

    @property
    def about_providers(self) -> tuple[str, ...]:
        """Sentences about whose rows are in it, and how many groups have one provider."""
        return tuple(filter(None, (self.for_providers.explain(), self.pooled)))

    def summary(self) -> dict[str, Any]:
        """Return rows, groups, suppressed rows, what was lost and what providers ask."""
        return {
            "rows": len(self.rows),
            "groups": self.boxes.count,
            "suppressed": self.suppressed,
            "loss": plain(publication_loss(self)),
            **self.for_providers.body(),
        }

    def report(self, path: str | Path | None = None) -> TableReport:
        """Return what the table reveals and keeps; with a path, write it as an HTML page."""
        found = report_on(assess(self))
        if path is not None:
            found.write(path)
        return found
