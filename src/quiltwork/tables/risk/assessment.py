"""`assess`: everything that a table reveals, in one result, with what it does not protect against.

Re-identification: someone who knows a person's quasi-identifiers, and that the person is in the
table (the "prosecutor"), picks the right record of a group of n people with probability 1/n. The
mean over records is the share of people that an attack on everybody finds (the "marketer").

Attribute disclosure: someone who knows the group of a person guesses its most common value; the
share of that value is the probability of being right. The gain over guessing the most common value
of the whole table is what the groups reveal.

Attacks: k-anonymity and similar models bound what one table reveals to someone who does not know
how it was made, has no other table and does not learn from it. Each attack breaks one of these
assumptions; it is carried out on this very table, as far as the necessary data are available
(`attacks`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.report.charts import BarChart
from quiltwork.results import ChartedResult, plain
from quiltwork.tables.metrics.loss import InformationLoss, publication_loss
from quiltwork.tables.metrics.models import (
    Models,
    ValueCounts,
    attribute_counts,
    people_per_group,
    privacy_models,
)
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.publishing.for_providers import ForProviders, for_providers
from quiltwork.tables.publishing.published_records import Publication, PublishedRecords
from quiltwork.tables.risk.attacks import CutInfo, TableAttack, attacks_on
from quiltwork.tables.risk.definetti import LearnerScore, definetti
from quiltwork.tables.risk.downcoding import DowncodingResult, downcoding, downcoding_of_texts
from quiltwork.tables.risk.intersection import Intersection, rehearse_intersection
from quiltwork.tables.risk.subtraction import SubtractionResult, subtraction
from quiltwork.tables.table import Table, as_table

QUERIES = 2500
_QUERY_WORK = 200_000_000
"""The most rows × queries that are evaluated for the query error."""
SMALL = (2, 3, 5, 10, 20)
"""Group sizes below which people are counted: usual thresholds of statistical offices."""
SURE = tuple(step / 10 for step in range(1, 11))
"""Shares of the most common value from which records are counted."""


@dataclass(frozen=True)
class Reidentification:
    """The risk that records are attributed to people.

    Attributes:
        people: the number of people in the table: records, or subjects if the table names them.
        groups: the number of groups with equal quasi-identifiers.
        highest: the largest risk of a person, 1/(smallest group).
        mean: the mean risk of all people, groups/people.
        unique: people who are alone in their group.
        below: n → people in groups of fewer than n.
        sizes: size of a group → number of groups of that size.
    """

    people: int
    groups: int
    highest: float
    mean: float
    unique: int
    below: dict[int, int]
    sizes: dict[int, int]


def reidentification(table: Table) -> Reidentification:
    """Measure the re-identification risk of a table as it stands.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["3*", "3*", "4*"], "ill": ["a", "b", "a"]})
    >>> risk = reidentification(Table(frame, None, ["age"], "ill"))
    >>> risk.highest, round(risk.mean, 3), risk.unique
    (1.0, 0.667, 1)
    """
    sizes = people_per_group(table)
    people = int(sizes.sum())
    values, numbers = np.unique(sizes, return_counts=True)
    return Reidentification(
        people=people,
        groups=len(sizes),
        highest=1 / int(sizes.min()),
        mean=len(sizes) / people,
        unique=int((sizes == 1).sum()),
        below={limit: int(sizes[sizes < limit].sum()) for limit in SMALL},
        sizes=dict(zip(values.tolist(), numbers.tolist(), strict=True)),
    )


@dataclass(frozen=True)
class Disclosure:
    """The risk that the values of one sensitive column are inferred.

    Attributes:
        attribute: the column.
        records: the number of records; with subjects, each person counts once for every value in a
            group.
        base: the share of the most common value in the whole table.
        mean: the share of records with the most common value of their group.
        highest: the largest share of one value in a group.
        certain: records in groups with a single value.
        surer: share → records in groups where one value has at least this share.
    """

    attribute: str
    records: int
    base: float
    mean: float
    highest: float
    certain: int
    surer: dict[float, int]

    @property
    def gain(self) -> float:
        """How much more often the guess is right with the groups than without."""
        return self.mean - self.base


def disclosures(table: Table) -> tuple[Disclosure, ...]:
    """Measure the disclosure risk of each sensitive column of a table as it stands.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["3*", "3*", "4*", "4*"], "ill": ["a", "b", "a", "a"]})
    >>> risk, = disclosures(Table(frame, None, ["age"], "ill"))
    >>> risk.base, risk.mean, risk.certain
    (0.75, 0.75, 2)
    """
    columns = attribute_counts(table).items()
    return tuple(_disclosure(name, counts) for name, counts in columns)


def _disclosure(name: str, counts: ValueCounts) -> Disclosure:
    highest = np.maximum.reduceat(counts.records, counts.starts)
    share = highest / counts.sizes
    rows = int(counts.sizes.sum())
    return Disclosure(
        attribute=name,
        records=rows,
        base=float(counts.overall.max()),
        mean=int(highest.sum()) / rows,
        highest=float(share.max()),
        certain=int(counts.sizes[highest == counts.sizes].sum()),
        surer={level: int(counts.sizes[share >= level].sum()) for level in SURE},
    )


@dataclass(frozen=True)
class TableUtility:
    """What a publication keeps of its rows, and the facts for its providers.

    Attributes:
        description: what every group satisfies, and how the table was made, in words.
        loss: the information loss.
        queries: the number of range queries for the query error.
        query_error: their mean relative error.
        providers: whose rows are in it, and who would break it next.
    """

    description: str
    loss: InformationLoss
    queries: int
    query_error: float
    providers: ForProviders


@dataclass(frozen=True)
class Assessment(ChartedResult):
    """What a table reveals as it stands.

    Attributes:
        rows: the number of rows of the table.
        models: the values of k, l, t, β and δ that it has.
        reidentification: the risk that records are attributed to people.
        disclosures: the risk that sensitive values are inferred, per column.
        learned: how well a trained model guesses sensitive values within the groups, if the
            original records were available to score it.
        cuts: how the groups were cut, for a publication.
        downcoded: how much of the generalization can be undone.
        against: what another release adds, if one was compared.
        subtracted: what providers learn by removing their own records, if the table names them.
        attacks: the result of each attack; `to_frame` has a row for each.
        utility: what a publication keeps, and the facts for its providers.
        levels: sensitive column → the level of its hierarchy at which `models` counts its values;
            `disclosures` are always of the values themselves.
    """

    schema = ("risk", 3)

    rows: int
    models: Models
    reidentification: Reidentification
    disclosures: tuple[Disclosure, ...]
    learned: tuple[LearnerScore, ...] | None
    cuts: CutInfo | None
    downcoded: DowncodingResult
    against: Intersection | None
    subtracted: SubtractionResult | None
    attacks: tuple[TableAttack, ...]
    utility: TableUtility | None = None
    levels: dict[str, int] = field(default_factory=dict)

    @property
    def unit_note(self) -> str:
        """Which figures are of labels of a hierarchy, and which of values; empty without levels."""
        if not self.levels:
            return ""
        columns = " and ".join(f"level {n} of {name}" for name, n in self.levels.items())
        return (
            f"alpha, l, t, beta and delta are of the labels of the hierarchy ({columns}); best "
            "guesses and records that are certain are of the values themselves."
        )

    def explain(self) -> str:
        """Return the size of the smallest group, and the result of every attack."""
        lines = (f"{attack.attack} ({attack.decided}): {attack.found}" for attack in self.attacks)
        return "\n".join(
            (
                f"{self.rows:,} records; each has the same quasi-identifiers as at least "
                f"{self.models.k - 1:,} others. Attacks on the table:",
                *lines,
                *filter(None, [self.unit_note]),
            )
        )

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each attack."""
        return [attack.body() for attack in self.attacks]

    def chart(self) -> BarChart:
        """Draw the share of sensitive values guessed right, without the table and by attack."""
        first = self.disclosures[0]
        bars = [("without the table", first.base), ("by the groups", first.mean)]
        bars += [
            (f"by {attack.attack}", attack.reached) for attack in self.attacks if attack.reached
        ]
        return BarChart(
            f"How often {first.attribute} is guessed right",
            "The share of records whose value is guessed right: with the most common value of the "
            "table, with that of each group, and by each attack.",
            "share of records",
            tuple((name, round(share, 4)) for name, share in bars),
        )

    def body(self) -> dict[str, Any]:
        """Return everything by name, as JSON values, with the gain of each disclosure."""
        gains = [{**plain(disclosure), "gain": disclosure.gain} for disclosure in self.disclosures]
        document = {**super().body(), "disclosures": gains}
        del document["utility"]
        if self.utility is None:
            return document
        return {
            **document,
            "loss": plain(self.utility.loss),
            "queries": self.utility.queries,
            "query_error": self.utility.query_error,
            "for_providers": self.utility.providers.body(),
        }


def assess(
    released: Table | Publication,
    against: Intersection | None = None,
    learned: tuple[LearnerScore, ...] | None = None,
) -> Assessment:
    """Assess a table as it stands: its groups are the rows with equal quasi-identifiers.

    `against` is the result of `intersection(earlier, table)`, `learned` that of
    `definetti_of_texts(table, original)`. For a publication more is computed: it is compared with
    another cut of the same rows (`rehearse_intersection`), a trained model is scored, and
    information loss and the facts for providers are measured. Subtraction needs a table that names
    its providers. Cost: a few passes over the rows; for a publication also the attacks, and at most
    2,500 random queries.

    Raises:
        InvalidInputError: if the argument is neither a Table nor a publication, the table is empty,
            or has undeclared missing values; if `against` is something else.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..29"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> result = assess(Table(frame, None, ["age"], "ill"))
    >>> result.models.k, [attack.attack for attack in result.attacks]
    (3, ['minimality', 'deFinetti', 'downcoding', 'intersection', 'subtraction'])
    """
    publication = released if isinstance(released, PublishedRecords) else None
    table = as_table(released if publication is None else publication.table)
    _check("against", against, Intersection, "intersection(earlier, later)")
    for item in learned if isinstance(learned, tuple) else (learned,):
        _check("learned", item, LearnerScore, "definetti(publication)")
    utility = None
    if publication is not None:
        against = rehearse_intersection(publication) if against is None else against
        learned = definetti(publication) if learned is None else learned
        utility = _utility(publication)
    disclosed = disclosures(table)
    cuts = None if publication is None else _cuts(publication)
    downcoded = downcoding_of_texts(table) if publication is None else downcoding(publication)
    subtracted = subtraction(table)
    # The report names the sensitive column that groups reveal most about.
    best = max(disclosed, key=lambda item: item.gain)
    return Assessment(
        rows=table.encoded.rows,
        models=privacy_models(table),
        reidentification=reidentification(table),
        disclosures=disclosed,
        learned=learned,
        cuts=cuts,
        downcoded=downcoded,
        against=against,
        subtracted=subtracted,
        attacks=attacks_on(
            (best.base, best.mean, best.attribute), cuts, learned, downcoded, against, subtracted
        ),
        utility=utility,
        levels=dict(table.levels),
    )


def _utility(publication: PublishedRecords) -> TableUtility:
    """Measure what a publication keeps, and the facts for its providers."""
    # Fewer queries on large tables, to bound the time of the report.
    queries = max(50, min(QUERIES, _QUERY_WORK // publication.source.encoded.rows))
    return TableUtility(
        description=f"{publication.constraint} against {coalition_text(publication.m)}, made by "
        f"the method {publication.method!r} and verified. {publication.pooled}",
        loss=publication_loss(publication),
        queries=queries,
        query_error=query_error(publication.source, publication, queries),
        providers=for_providers(publication),
    )


def coalition_text(m: int) -> str:
    """Return in words which coalitions are withstood."""
    if m == 0:
        return "outsiders"
    return f"any {m} colluding providers" if m > 1 else "any single provider"


def _cuts(publication: PublishedRecords) -> CutInfo:
    """Return whether sensitive values influenced the cuts (statement 6 of the theory page)."""
    recipe = publication.recipe
    if recipe.blind:
        return CutInfo(by_values=False, left_out=publication.suppressed)
    by_numbers = recipe.constraint.records_alone
    return CutInfo(not by_numbers or recipe.rules.relaxed or recipe.rules.split == "fitness")


def _check(name: str, value: Any, kind: type, made_by: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidInputError(
            f"{name} must be the result of {made_by}, not a {type(value).__name__}."
        )
