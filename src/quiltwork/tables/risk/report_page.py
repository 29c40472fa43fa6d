"""Reports on tables: what they reveal, what they keep, as data and as one HTML page with plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from quiltwork.arguments import instance
from quiltwork.exact import percent
from quiltwork.files import as_path, write
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
from quiltwork.results import ResultBase
from quiltwork.tables.metrics.loss import InformationLoss
from quiltwork.tables.publishing.for_providers import ForProviders
from quiltwork.tables.risk.assessment import Assessment, Disclosure, Reidentification
from quiltwork.tables.risk.attacks import TableAttack


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


def loss_section(loss: InformationLoss, queries: int, error: float) -> Html:
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
    rows.append((f"mean error of {queries:,} random range queries", percent(error, 2)))
    return section(
        "What was lost",
        figure(chart),
        table("Utility of the published table", ["measure", "value"], rows),
        paragraph(
            "The query error is the mean of |estimate − count| / count over random counts by "
            "several quasi-identifiers, with counts below 0.1 % of the records taken as that; "
            "most such counts are small, and small counts are answered badly by large groups."
        ),
        anchor="loss",
    )


@dataclass(frozen=True)
class TableReport(ResultBase):
    """A report on a table; show it in a notebook, or write it.

    Attributes:
        title, lead: of the page.
        assessment: what the table reveals and keeps.
    """

    title: str
    lead: str
    assessment: Assessment

    def explain(self) -> str:
        """Say what the table reveals."""
        return self.assessment.explain()

    def body(self) -> dict[str, Any]:
        """Return everything by name, JSON-ready."""
        return self.assessment.body()

    @property
    def headline(self) -> dict[str, str]:
        """The key figures."""
        models, kept = self.assessment.models, self.assessment.kept
        found = {
            "Smallest group (k)": f"{models.k:,}",
            "Fewest values in a group (l)": f"{models.distinct_l:,}",
            "Largest distance (t)": f"{models.t:.3f}",
            "Highest re-identification risk": percent(self.assessment.reidentification.highest),
        }
        if kept is not None:
            found["Certainty penalty (GCP)"] = f"{kept.loss.gcp:.3f}"
            found["Query error"] = percent(kept.query_error)
        return found

    @property
    def html(self) -> str:
        """The report as one HTML page that fetches nothing."""
        found, kept = self.assessment, self.assessment.kept
        parts: list[Html] = [section("At a glance", facts(self.headline), anchor="glance")]
        if kept is not None and len(kept.providers.rows) > 1:
            parts.append(providers_section(kept.providers))
        parts += [
            attacks_section(found),
            models_section(found),
            reidentification_section(found.reidentification),
            disclosure_section(found.disclosures),
        ]
        if kept is not None:
            parts.append(loss_section(kept.loss, kept.queries, kept.query_error))
        return page(self.title, self.lead, parts)

    def write(self, path: str | Path) -> Path:
        """Write the page."""
        return write_page(path, self.html)

    def _repr_html_(self) -> str:
        return self.html


def write_page(path: str | Path, text: str) -> Path:
    """Write a page to a file."""
    target = as_path(path)
    write(target, text)
    return target


def report(assessment: Assessment, name: str = "the table") -> TableReport:
    """Return the report on what was assessed: a publication, or a table as it stands."""
    assessment, name = instance(assessment, Assessment, "assessment"), instance(name, str, "name")
    records = f"{assessment.rows:,} record{'' if assessment.rows == 1 else 's'}"
    if assessment.kept is None:
        lead = f"{records}, measured as they stand in the table."
        return TableReport(f"Risks of {name}", lead, assessment)
    return TableReport(
        "Published table",
        f"{records} in groups that satisfy {assessment.kept.made} This page is for the people who "
        "publish: it speaks about the table, not only from it.",
        assessment,
    )
