"""Reports on tables: what they reveal, what they keep, as data and as one HTML page with plots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.files import named, write
from quiltwork.report import Html, facts, page, section
from quiltwork.tables.metrics.loss import InformationLoss, publication_loss
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.reports.sections import (
    disclosure_section,
    intersection_section,
    loss_section,
    models_section,
    reidentification_section,
    warnings_section,
)
from quiltwork.tables.risk.assessment import Assessment, assess
from quiltwork.tables.risk.definetti import definetti
from quiltwork.tables.risk.downcoding import downcoding
from quiltwork.tables.risk.minimality import refused_cuts

if TYPE_CHECKING:
    from quiltwork.tables.publication import LocalPublication
    from quiltwork.tables.spark.backend import SparkPublication

QUERIES = 2500
_QUERY_WORK = 200_000_000  # rows × queries that a report spends on the query error


@dataclass(frozen=True)
class TableReport:
    """A report on a table; show it in a notebook, or write it.

    Attributes:
        title, lead: of the page.
        headline: the key figures.
        assessment: what the table reveals.
        loss: what generalization lost, for a publication.
        queries: how many range queries were asked for the query error; 0 for none.
        query_error: their mean relative error.
    """

    title: str
    lead: str
    headline: Mapping[str, str]
    assessment: Assessment
    loss: InformationLoss | None = None
    queries: int = 0
    query_error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name, JSON-ready."""
        return {
            **self.assessment.body(),
            "loss": None if self.loss is None else self.loss.as_dict(),
            "queries": self.queries,
            "query_error": self.query_error,
        }

    @property
    def html(self) -> str:
        """The report as one HTML page that fetches nothing."""
        found = self.assessment
        parts: list[Html] = [
            section("At a glance", facts(self.headline), anchor="glance"),
            warnings_section(found),
            models_section(found),
            reidentification_section(found.reidentification),
            disclosure_section(found.disclosures, found.learned),
        ]
        if found.against is not None:
            parts.append(intersection_section(found.against))
        if self.loss is not None:
            parts.append(loss_section(self.loss, self.queries, self.query_error))
        return page(self.title, self.lead, parts)

    def write(self, path: str | Path) -> Path:
        """Write the page.

        Raises:
            StorageError: if the file cannot be written.
        """
        return write_page(path, self.html)

    def _repr_html_(self) -> str:
        return self.html


def write_page(path: str | Path, text: str) -> Path:
    """Write a page to a file.

    Raises:
        InvalidInputError: if the path is none, or something is there that is no regular file.
        StorageError: if the file cannot be written.
    """
    target = named(path)
    write(target, text)
    return target


def risk_report(assessment: Assessment, name: str) -> TableReport:
    """Return the report on a table as it stands."""
    return TableReport(
        f"Risks of {name}",
        f"{_records(assessment)}, measured as they stand in the table.",
        _headline(assessment),
        assessment,
    )


def publication_report(
    publication: LocalPublication, path: str | Path | None = None
) -> TableReport:
    """Return what a publication reveals and keeps; with a path, also write it as a page.

    Cost: a few passes over the rows, the deFinetti attack, and the query error of up to 2,500
    random queries.
    """
    rows = publication.source.encoded.rows
    queries = max(50, min(QUERIES, _QUERY_WORK // rows))
    error = query_error(publication.source, publication, queries)
    refused = refused_cuts(publication)
    assessment = assess(
        publication.table,
        learned=definetti(publication),
        refused=refused,
        downcoded=downcoding(publication, publication.recipe.constraint),
    )
    loss = publication_loss(publication)
    report = TableReport(
        "Published table",
        f"{_records(assessment)} in groups that satisfy {publication.constraint} against "
        f"{_coalition(publication.m)}, made by the method {publication.method!r} and verified. "
        "This page is for the people who publish: it speaks about the table, not only from it.",
        {
            **_headline(assessment),
            "Certainty penalty (GCP)": f"{loss.gcp:.3f}",
            "Query error": f"{error:.1%}",
        },
        assessment,
        loss,
        queries,
        error,
    )
    if path is not None:
        report.write(path)
    return report


def _records(assessment: Assessment) -> str:
    return f"{assessment.rows:,} record{'' if assessment.rows == 1 else 's'}"


def _coalition(m: int) -> str:
    if m == 0:
        return "outsiders"
    return f"any {m} colluding providers" if m > 1 else "any single provider"


def _headline(assessment: Assessment) -> dict[str, str]:
    models = assessment.models
    return {
        "Smallest group (k)": f"{models.k:,}",
        "Fewest values in a group (l)": f"{models.distinct_l:,}",
        "Largest distance (t)": f"{models.t:.3f}",
        "Highest re-identification risk": f"{assessment.reidentification.highest:.1%}",
    }


def spark_report(publication: SparkPublication, path: str | Path | None = None) -> dict[str, Any]:
    """Return what the distributed verification counted; with a path, write it as a page."""
    parts = publication.verdicts
    rows, groups = sum(part.rows for part in parts), sum(part.groups for part in parts)
    left_out = publication.suppressed
    whole = rows + left_out
    found: dict[str, Any] = {
        "rows": rows,
        "suppressed": left_out,
        "groups": groups,
        "k": min(part.smallest for part in parts),
        "distinct_l": min(part.fewest_values for part in parts),
        "discernibility": sum(part.squares for part in parts) + left_out * whole,
        "average_class_size": rows / groups,
        "gcp": (publication.gcp * rows + left_out) / whole,
        "subtrees": publication.subtrees,
        "checks": sum(part.verdict.checks for part in parts),
    }
    if path is not None:
        shown = {name.replace("_", " "): f"{value:,}" for name, value in found.items()}
        text = page(
            "Published Spark table",
            f"Every group satisfies {publication.constraint} against "
            f"{_coalition(publication.m)}: verified where its records are.",
            [section("What was counted", facts(shown), anchor="counted")],
        )
        write_page(path, text)
    return found
