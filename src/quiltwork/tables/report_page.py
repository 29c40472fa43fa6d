"""Reports on tables: what they reveal, what they keep, as data and as one HTML page with plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from quiltwork.exact import percent
from quiltwork.files import named, write
from quiltwork.report import (
    BarChart,
    Html,
    Line,
    LineChart,
    bullets,
    facts,
    figure,
    joined,
    note,
    page,
    paragraph,
    section,
    table,
)
from quiltwork.results import ResultBase, plain
from quiltwork.tables.for_providers import ForProviders
from quiltwork.tables.metrics.loss import InformationLoss, publication_loss
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.published_records import PublishedRecords
from quiltwork.tables.risk.assessment import Assessment, Disclosure, Reidentification, assess
from quiltwork.tables.risk.attacks import CutsMade, TableAttack
from quiltwork.tables.risk.definetti import definetti
from quiltwork.tables.risk.downcoding import downcoding
from quiltwork.tables.risk.intersection import rehearsed

QUERIES = 2500
_QUERY_WORK = 200_000_000  # rows × queries that a report spends on the query error


def attacks_section(assessment: Assessment) -> Html:
    """Write what every attack found, before the figures."""
    rows = [
        (
            one.attack,
            one.decided,
            one.certain,
            "–" if one.reached is None else f"{percent(one.before or 0)} → {percent(one.reached)}",
        )
        for one in assessment.attacks
    ]
    header = ["attack", "decided", "records certain", "guessed right"]
    return section(
        "Attacks on this table",
        paragraph(
            "The figures further below speak about one table and someone who does not know how it "
            "was made, learns nothing from it and has no other. Five attacks go further; each was "
            "carried out here, as far as what it needs is at hand."
        ),
        table("What they found; guesses by the groups alone → by the attack", header, rows),
        figure(assessment.chart()),
        *map(_attack, assessment.attacks),
        anchor="attacks",
    )


def _attack(found: TableAttack) -> Html:
    """Write one attack: what it knows, what it found, what helps."""
    groups = [f"Where it works best: {', '.join(texts)}." for texts in found.groups[:3]]
    title = f"{found.attack[0].upper()}{found.attack[1:]}: {found.decided}."
    return joined(
        [
            note(title, found.found),
            bullets([f"Attacker: {found.knows}", *groups, f"What helps: {found.helps}"]),
        ]
    )


def providers_section(found: ForProviders) -> Html:
    """Write what providers ask before they sign: how many may collude, who is next, whose rows."""
    breach = found.safe.breach
    glance = {"Colluding providers withstood (max_m)": f"{int(found.safe):,}"}
    if breach is not None and breach.settled:
        glance["Records left by the weakest coalition"] = f"{breach.left_size:,}"
    share = f"{percent(found.alone / found.groups)} ({found.alone:,} of {found.groups:,})"
    rows = [(name, number, found.published[name]) for name, number in found.rows.items()]
    return section(
        "For the providers",
        facts({**glance, "Groups with one provider": share}),
        paragraph(found.withstood),
        table("Whose rows are in it", ["provider", "rows given", "published"], rows),
        anchor="providers",
    )


def models_section(assessment: Assessment) -> Html:
    """Write the values of the privacy models."""
    found = assessment.models
    recursive = (
        "none" if found.recursive_c is None else f"({found.recursive_c}, {found.distinct_l})"
    )
    rows = [
        ("k-anonymity", str(found.k), "every group has at least k records"),
        ("(α, k)-anonymity", f"{found.alpha:.4f}", "no value has a larger share of a group"),
        ("distinct l-diversity", str(found.distinct_l), "at least l sensitive values"),
        ("entropy l-diversity", f"{found.entropy_l:.3f}", "entropy at least log l"),
        ("recursive (c, l)-diversity", recursive, "r₁ < c·(r_l + r_(l+1) + …)"),
        ("t-closeness", f"{found.t:.4f}", "distance of a group from the whole at most t"),
        ("β-likeness", f"{found.beta:.3f}", "no value gains more than β, relatively"),
        ("enhanced β-likeness", f"{found.enhanced_beta:.3f}", "the same, capped by −ln p"),
        ("δ-disclosure", f"{found.delta:.3f}", "|ln(q/p)| below δ for values that occur"),
    ]
    return section(
        "Privacy models",
        table("The values that the table has at its worst group", ["model", "value", "says"], rows),
        anchor="models",
    )


def reidentification_section(found: Reidentification) -> Html:
    """Write how surely records are attributed to people."""
    sizes = sorted(found.sizes.items())
    people = accumulate(size * number for size, number in sizes)
    points = tuple(
        (float(size), done / found.people) for (size, _), done in zip(sizes, people, strict=True)
    )
    chart = LineChart(
        "Records by the size of their group",
        "The share of records in groups of at most this size: the further right the curve starts, "
        "the better the smallest groups protect.",
        "records in the group",
        "share of records",
        (Line("records in groups of at most this size", points, marks=len(points) == 1),),
        log_x=sizes[-1][0] >= 10 * sizes[0][0],
    )
    rows = [
        (f"fewer than {limit}", number, percent(number / found.people, 2))
        for limit, number in found.below.items()
    ]
    return section(
        "Re-identification",
        paragraph(
            f"Who knows someone's quasi-identifiers and that they are in the table finds their "
            f"record with probability {percent(found.highest, 2)} at most and "
            f"{percent(found.mean, 2)} on average; {found.unique:,} of {found.people:,} are unique."
        ),
        figure(chart),
        table("People in small groups", ["group", "people", "share"], rows),
        anchor="reidentification",
    )


def disclosure_section(found: Sequence[Disclosure]) -> Html:
    """Write how surely sensitive values are inferred."""
    series = []
    for one in found:
        points = tuple((level, number / one.records) for level, number in one.surer.items())
        series.append(Line(one.attribute, points))
    chart = LineChart(
        "How sure the best guess per group is",
        "The share of records in groups whose most common value has at least this share. A curve "
        "that stays high to the right means that groups give values away.",
        "share of the most common value",
        "share of records",
        tuple(series),
    )
    guesses = [
        (
            one.attribute,
            percent(one.base),
            percent(one.mean),
            percent(one.highest),
            one.certain,
        )
        for one in found
    ]
    header = ["column", "guess without groups", "with groups", "surest group", "records certain"]
    return section(
        "Attribute disclosure",
        paragraph("What a group says about its members, whoever of them they are."),
        figure(chart),
        table("How often the most common value is right", header, guesses),
        anchor="disclosure",
    )


def loss_section(loss: InformationLoss, queries: int, error: float | None) -> Html:
    """Write what generalization lost."""
    chart = BarChart(
        "Normalized certainty penalty by column",
        "The mean share of a column's range that a published value covers: 0 is exact, 1 says "
        "nothing.",
        "certainty penalty",
        tuple((name, round(value, 4)) for name, value in loss.ncp.items()),
    )
    rows = [
        ("global certainty penalty (GCP)", f"{loss.gcp:.4f}"),
        ("discernibility", f"{loss.discernibility:,}"),
        ("average group size", f"{loss.average_class_size:,.2f}"),
        ("the same, relative to the smallest group", f"{loss.relative_class_size:.3f}"),
        ("suppressed records", f"{loss.suppressed:,}"),
    ]
    explained = []
    if error is not None:
        rows.append((f"mean error of {queries:,} random range queries", percent(error, 2)))
        said = (
            "The query error is the mean of |estimate − count| / count over random counts by "
            "several quasi-identifiers, with counts below 0.1 % of the records taken as that; "
            "most such counts are small, and small counts are answered badly by large groups."
        )
        explained.append(paragraph(said))
    return section(
        "What was lost",
        figure(chart),
        table("Utility of the published table", ["measure", "value"], rows),
        *explained,
        anchor="loss",
    )


@dataclass(frozen=True)
class TableReport(ResultBase):
    """A report on a table; show it in a notebook, or write it.

    Attributes:
        title, lead: of the page.
        headline: the key figures.
        assessment: what the table reveals.
        loss: what generalization lost, for a publication.
        queries: how many range queries were asked for the query error; 0 for none.
        query_error: their mean relative error.
        providers: what providers ask of a publication.
    """

    title: str
    lead: str
    headline: Mapping[str, str]
    assessment: Assessment
    loss: InformationLoss | None = None
    queries: int = 0
    query_error: float | None = None
    providers: ForProviders | None = None

    def explain(self) -> str:
        """Say what the table reveals."""
        return self.assessment.explain()

    def body(self) -> dict[str, Any]:
        """Return everything by name, JSON-ready."""
        return {
            **self.assessment.body(),
            "loss": None if self.loss is None else plain(self.loss),
            "queries": self.queries,
            "query_error": self.query_error,
            "for_providers": None if self.providers is None else self.providers.body(),
        }

    @property
    def html(self) -> str:
        """The report as one HTML page that fetches nothing."""
        found = self.assessment
        asked = self.providers
        parts: list[Html] = [
            section("At a glance", facts(self.headline), anchor="glance"),
            *([] if asked is None or len(asked.rows) == 1 else [providers_section(asked)]),
            attacks_section(found),
            models_section(found),
            reidentification_section(found.reidentification),
            disclosure_section(found.disclosures),
        ]
        if self.loss is not None:
            parts.append(loss_section(self.loss, self.queries, self.query_error))
        return page(self.title, self.lead, parts)

    def write(self, path: str | Path) -> Path:
        """Write the page."""
        return write_page(path, self.html)

    def _repr_html_(self) -> str:
        return self.html


def write_page(path: str | Path, text: str) -> Path:
    """Write a page to a file."""
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
    publication: PublishedRecords, providers: ForProviders, path: str | Path | None = None
) -> TableReport:
    """Return what a publication reveals and keeps; with a path, also write it as a page.

    Cost: a few passes over the rows, the attacks, for one of which the rows are cut once more, and
    the query error of up to 2,500 random queries.
    """
    rows = publication.source.encoded.rows
    queries = max(50, min(QUERIES, _QUERY_WORK // rows))
    error = query_error(publication.source, publication, queries)
    assessment = assess(
        publication.table,
        against=rehearsed(publication),
        learned=definetti(publication),
        cuts=_cuts(publication),
        downcoded=downcoding(publication),
    )
    loss = publication_loss(publication)
    report = TableReport(
        "Published table",
        f"{_records(assessment)} in groups that satisfy {publication.constraint} against "
        f"{coalition_text(publication.m)}, made by the method {publication.method!r} and verified. "
        f"{publication.pooled} This page is for the people who publish: it speaks about the table, "
        "not only from it.",
        {
            **_headline(assessment),
            "Certainty penalty (GCP)": f"{loss.gcp:.3f}",
            "Query error": percent(error),
        },
        assessment,
        loss,
        queries,
        error,
        providers,
    )
    if path is not None:
        report.write(path)
    return report


def _cuts(publication: PublishedRecords) -> CutsMade:
    """Say whether sensitive values had a say in the cuts (statement 6 of the theory page)."""
    recipe = publication.recipe
    if recipe.blind:
        return CutsMade(by_values=False, left_out=publication.suppressed)
    by_numbers = recipe.constraint.records_alone
    return CutsMade(not by_numbers or recipe.rules.relaxed or recipe.rules.split == "fitness")


def _records(assessment: Assessment) -> str:
    return f"{assessment.rows:,} record{'' if assessment.rows == 1 else 's'}"


def coalition_text(m: int) -> str:
    """Say who is withstood."""
    if m == 0:
        return "outsiders"
    return f"any {m} colluding providers" if m > 1 else "any single provider"


def _headline(assessment: Assessment) -> dict[str, str]:
    models = assessment.models
    return {
        "Smallest group (k)": f"{models.k:,}",
        "Fewest values in a group (l)": f"{models.distinct_l:,}",
        "Largest distance (t)": f"{models.t:.3f}",
        "Highest re-identification risk": percent(assessment.reidentification.highest),
    }
