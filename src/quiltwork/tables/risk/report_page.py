"""Reports on tables: what they reveal and keep, as data and as an HTML page with plots."""

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
    """Return the section on attacks, which precedes the figures."""
    rows = [
        (
            attack.attack,
            attack.decided,
            attack.certain,
            "–"
            if attack.reached is None
            else f"{percent(attack.before or 0)} → {percent(attack.reached)}",
        )
        for attack in assessment.attacks
    ]
    header = ["attack", "decided", "records certain", "guessed right"]
    return section(
        "Attacks on this table",
        paragraph(
            "The figures below assume an attacker who does not know how this table was made, does "
            "not train a model on it, and has no other table. Five attacks go further; each was "
            "carried out here, as far as the necessary data were available."
        ),
        table("Results; guesses by the groups alone → by the attack", header, rows),
        figure(assessment.chart()),
        *map(_attack, assessment.attacks),
        anchor="attacks",
    )


def _attack(attack: TableAttack) -> Html:
    """Return the part on one attack: what the attacker knows, the result, what helps."""
    groups = [f"Where it works best: {', '.join(texts)}." for texts in attack.groups[:3]]
    title = f"{attack.attack[0].upper()}{attack.attack[1:]}: {attack.decided}."
    return joined(
        [
            note(title, attack.found),
            bullets([f"Attacker: {attack.knows}", *groups, f"What helps: {attack.helps}"]),
        ]
    )


def providers_section(facts_for: ForProviders) -> Html:
    """Return the section for providers: how many may collude, and whose rows are in it."""
    breach = facts_for.safe.breach
    key_figures = {"Colluding providers withstood (max_m)": f"{int(facts_for.safe):,}"}
    if breach is not None and breach.settled:
        key_figures["Records left by the weakest coalition"] = f"{breach.left_size:,}"
    alone, groups = facts_for.alone, facts_for.groups
    share = f"{percent(alone / groups)} ({alone:,} of {groups:,})"
    rows = [(name, number, facts_for.published[name]) for name, number in facts_for.rows.items()]
    return section(
        "For the providers",
        facts({**key_figures, "Groups with one provider": share}),
        paragraph(facts_for.withstood),
        table("Whose rows are in it", ["provider", "rows given", "published"], rows),
        anchor="providers",
    )


def models_section(assessment: Assessment) -> Html:
    """Return the section on the values of the privacy models."""
    models = assessment.models
    recursive = (
        "none" if models.recursive_c is None else f"({models.recursive_c}, {models.distinct_l})"
    )
    rows = [
        ("k-anonymity", str(models.k), "every group has at least k records"),
        ("(α, k)-anonymity", f"{models.alpha:.4f}", "no value has a larger share of a group"),
        ("distinct l-diversity", str(models.distinct_l), "at least l sensitive values"),
        ("entropy l-diversity", f"{models.entropy_l:.3f}", "entropy at least log l"),
        ("recursive (c, l)-diversity", recursive, "r₁ < c·(r_l + r_(l+1) + …)"),
        ("t-closeness", f"{models.t:.4f}", "distance of a group from the whole at most t"),
        ("β-likeness", f"{models.beta:.3f}", "no value gains more than β, relatively"),
        ("enhanced β-likeness", f"{models.enhanced_beta:.3f}", "the same, capped by −ln p"),
        ("δ-disclosure", f"{models.delta:.3f}", "|ln(q/p)| below δ for values that occur"),
    ]
    return section(
        "Privacy models",
        *map(paragraph, filter(None, [assessment.unit_note])),
        table("The values that the table has at its worst group", ["model", "value", "says"], rows),
        anchor="models",
    )


def reidentification_section(risk: Reidentification) -> Html:
    """Return the section on how surely records are attributed to people."""
    sizes = sorted(risk.sizes.items())
    people = accumulate(size * number for size, number in sizes)
    points = tuple(
        (float(size), done / risk.people) for (size, _), done in zip(sizes, people, strict=True)
    )
    chart = LineChart(
        "Records by the size of their group",
        "The share of records in groups of at most this size: the further right the curve starts, "
        "the better the smallest groups protect.",
        "records in the group",
        "share of records",
        (Line("records in groups of at most this size", points, marks=len(points) == 1),),
        # Group sizes that span orders of magnitude need a logarithmic axis.
        log_x=sizes[-1][0] >= 10 * sizes[0][0],
    )
    rows = [
        (f"fewer than {limit}", number, percent(number / risk.people, 2))
        for limit, number in risk.below.items()
    ]
    return section(
        "Re-identification",
        paragraph(
            "Someone who knows a person's quasi-identifiers, and that the person is in the table, "
            f"picks the right record with probability {percent(risk.highest, 2)} at most and "
            f"{percent(risk.mean, 2)} on average; {risk.unique:,} of {risk.people:,} people are "
            "unique."
        ),
        figure(chart),
        table("People in small groups", ["group", "people", "share"], rows),
        anchor="reidentification",
    )


def disclosure_section(disclosures: Sequence[Disclosure]) -> Html:
    """Return the section on how surely sensitive values are inferred."""
    series = []
    for disclosure in disclosures:
        points = tuple(
            (level, number / disclosure.records) for level, number in disclosure.surer.items()
        )
        series.append(Line(disclosure.attribute, points))
    chart = LineChart(
        "How sure the best guess per group is",
        "The share of records in groups whose most common value has at least this share. A curve "
        "that stays high to the right means that groups reveal values.",
        "share of the most common value",
        "share of records",
        tuple(series),
    )
    guesses = [
        (
            disclosure.attribute,
            percent(disclosure.base),
            percent(disclosure.mean),
            percent(disclosure.highest),
            disclosure.certain,
        )
        for disclosure in disclosures
    ]
    header = ["column", "guess without groups", "with groups", "surest group", "records certain"]
    return section(
        "Attribute disclosure",
        paragraph("What a group reveals about each of its members."),
        figure(chart),
        table("How often the most common value is right", header, guesses),
        anchor="disclosure",
    )


def loss_section(loss: InformationLoss, queries: int, error: float) -> Html:
    """Return the section on information loss."""
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
            "several quasi-identifiers; the denominator is at least 0.1 % of the records. Most of "
            "these counts are small, and large groups answer small counts badly."
        ),
        anchor="loss",
    )


@dataclass(frozen=True)
class TableReport(ResultBase):
    """A report on a table: displayed in a notebook, or written as HTML.

    Attributes:
        title, lead: the title and the introduction of the page.
        assessment: what the table reveals and keeps.
    """

    title: str
    lead: str
    assessment: Assessment

    def explain(self) -> str:
        """Return what the table reveals, in words."""
        return self.assessment.explain()

    def body(self) -> dict[str, Any]:
        """Return everything by name, JSON-ready."""
        return self.assessment.body()

    @property
    def headline(self) -> dict[str, str]:
        """The key figures, by name."""
        models, utility = self.assessment.models, self.assessment.utility
        figures = {
            "Smallest group (k)": f"{models.k:,}",
            "Fewest values in a group (l)": f"{models.distinct_l:,}",
            "Largest distance (t)": f"{models.t:.3f}",
            "Highest re-identification risk": percent(self.assessment.reidentification.highest),
        }
        if utility is not None:
            figures["Certainty penalty (GCP)"] = f"{utility.loss.gcp:.3f}"
            figures["Query error"] = percent(utility.query_error)
        return figures

    @property
    def html(self) -> str:
        """The report as one HTML page without external resources."""
        assessment, utility = self.assessment, self.assessment.utility
        parts: list[Html] = [section("At a glance", facts(self.headline), anchor="glance")]
        if utility is not None and len(utility.providers.rows) > 1:
            parts.append(providers_section(utility.providers))
        parts += [
            attacks_section(assessment),
            models_section(assessment),
            reidentification_section(assessment.reidentification),
            disclosure_section(assessment.disclosures),
        ]
        if utility is not None:
            parts.append(loss_section(utility.loss, utility.queries, utility.query_error))
        return page(self.title, self.lead, parts)

    def write(self, path: str | Path) -> Path:
        """Write the page to a file."""
        return write_page(path, self.html)

    def _repr_html_(self) -> str:
        return self.html


def write_page(path: str | Path, text: str) -> Path:
    """Write a page to a file."""
    target = as_path(path)
    write(target, text)
    return target


def report(assessment: Assessment, name: str = "the table") -> TableReport:
    """Return the report on an assessment of a publication, or of a table as it stands.

    >>> import pandas
    >>> from quiltwork.tables import Table
    >>> from quiltwork.tables.risk import assess
    >>> frame = pandas.DataFrame({"age": ["20..29"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> report(assess(Table(frame, None, ["age"], "ill"))).headline["Smallest group (k)"]
    '3'
    """
    assessment, name = instance(assessment, Assessment, "assessment"), instance(name, str, "name")
    records = f"{assessment.rows:,} record{'' if assessment.rows == 1 else 's'}"
    if assessment.utility is None:
        lead = f"{records}, measured as they stand in the table."
        return TableReport(f"Risks of {name}", lead, assessment)
    return TableReport(
        "Published table",
        f"{records} in groups that satisfy {assessment.utility.description} This page is for those "
        "who publish the table: it contains facts that the table itself does not show.",
        assessment,
    )
