"""`assess`: everything a table reveals, in one result, with what it does not protect against.

Re-identification: someone who knows a person's quasi-identifiers, and that the person is in the
table (the "prosecutor"), picks the right record of a group of n people with probability 1/n. The
mean over records is the share of people that an attack on everybody finds (the "marketer").

Attribute disclosure: someone who knows which group a person is in guesses the group's most common
value; the share of that value is how surely it is right. Compared with guessing the most common
value of the whole table, that is what the table gave away.

Attacks: k-anonymity and its kin bound what one table tells someone who does not know how it was
made, has no other table and does not learn from it. Each attack breaks one of these assumptions; it
is carried out on this very table, as far as what it needs is at hand (`attacks`).
"""

from __future__ import annotations

from dataclasses import dataclass
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
from quiltwork.tables.table import Table, read_table

QUERIES = 2500
_QUERY_WORK = 200_000_000
"""Rows × queries that are spent on the query error."""
SMALL = (2, 3, 5, 10, 20)
"""Group sizes below which records are counted: the usual thresholds of statistical offices."""
SURE = tuple(step / 10 for step in range(1, 11))
"""Confidences from which records are counted."""


@dataclass(frozen=True)
class Reidentification:
    """The risk that records are attributed to people.

    Attributes:
        people: in the table: records, or subjects where the table names them.
        groups: with equal quasi-identifiers.
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
    >>> found = reidentification(Table(frame, None, ["age"], "ill"))
    >>> found.highest, round(found.mean, 3), found.unique
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
    """The risk that one sensitive column is inferred.

    Attributes:
        attribute: the column.
        records: in the table; with subjects, each person counts once for every value in a group.
        base: the share of the most common value in the whole table.
        mean: the share of records whose value the best guess per group hits.
        highest: the largest share of one value in a group.
        certain: records in groups with a single value.
        surer: confidence → records in groups where one value has at least this share.
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
        """How much more often the guess is right than without the table's groups."""
        return self.mean - self.base


def disclosures(table: Table) -> tuple[Disclosure, ...]:
    """Measure each sensitive column of a table as it stands.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["3*", "3*", "4*", "4*"], "ill": ["a", "b", "a", "a"]})
    >>> found, = disclosures(Table(frame, None, ["age"], "ill"))
    >>> found.base, found.mean, found.certain
    (0.75, 0.75, 2)
    """
    found = attribute_counts(table).items()
    return tuple(_disclosure(name, counts) for name, counts in found)


def _disclosure(name: str, counts: ValueCounts) -> Disclosure:
    most = np.maximum.reduceat(counts.records, counts.starts)
    share = most / counts.sizes
    rows = int(counts.sizes.sum())
    return Disclosure(
        attribute=name,
        records=rows,
        base=float(counts.overall.max()),
        mean=int(most.sum()) / rows,
        highest=float(share.max()),
        certain=int(counts.sizes[most == counts.sizes].sum()),
        surer={level: int(counts.sizes[share >= level].sum()) for level in SURE},
    )


@dataclass(frozen=True)
class TableUtility:
    """What a publication keeps of its rows, and what its providers ask before they sign.

    Attributes:
        made: what every group satisfies, and how it was made.
        loss: what generalization lost.
        queries: how many range queries were asked for the query error.
        query_error: their mean relative error.
        providers: whose rows are in it, and who would break it next.
    """

    made: str
    loss: InformationLoss
    queries: int
    query_error: float
    providers: ForProviders


@dataclass(frozen=True)
class Assessment(ChartedResult):
    """What a table reveals as it stands.

    Attributes:
        rows: of the table.
        models: the values of k, l, t, β and δ that it has.
        reidentification: the risk that records are attributed to people.
        disclosures: the risk that sensitive values are inferred, per column.
        learned: how well a learner guesses sensitive values within the groups, where the original
            records were at hand to score it.
        cuts: how the groups were cut, for a publication.
        downcoded: how much of the generalization can be undone.
        against: what another release adds, if one was compared.
        subtracted: what providers learn by taking out their own records, if the table names them.
        attacks: what each attack on the table found; `to_frame` has a row for each.
        kept: what a publication keeps, and what its providers ask.
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
    kept: TableUtility | None = None

    def explain(self) -> str:
        """Say how large the smallest group is, and what every attack found."""
        found = (f"{one.attack} ({one.decided}): {one.found}" for one in self.attacks)
        return "\n".join(
            (
                f"{self.rows:,} records; every one is alike with {self.models.k - 1:,} others at "
                "least in what identifies them. Attacks on the table:",
                *found,
            )
        )

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each attack."""
        return [one.body() for one in self.attacks]

    def chart(self) -> BarChart:
        """Show how often sensitive values are guessed right, without the table and by attack."""
        first = self.disclosures[0]
        bars = [("without the table", first.base), ("by the groups", first.mean)]
        bars += [(f"by {one.attack}", one.reached) for one in self.attacks if one.reached]
        return BarChart(
            f"How often {first.attribute} is guessed right",
            "The share of records whose value is guessed: the most common value of the table, that "
            "of each group, and what attacks make of the groups.",
            "share of records",
            tuple((name, round(share, 4)) for name, share in bars),
        )

    def body(self) -> dict[str, Any]:
        """Return everything by name, and what groups add to guesses."""
        gains = [{**plain(one), "gain": one.gain} for one in self.disclosures]
        found = {**super().body(), "disclosures": gains}
        del found["kept"]
        if self.kept is None:
            return found
        return {
            **found,
            "loss": plain(self.kept.loss),
            "queries": self.kept.queries,
            "query_error": self.kept.query_error,
            "for_providers": self.kept.providers.body(),
        }


def assess(
    released: Table | Publication,
    against: Intersection | None = None,
    learned: tuple[LearnerScore, ...] | None = None,
) -> Assessment:
    """Measure a table as it stands: groups are rows with equal quasi-identifiers.

    `against` is what `intersection(earlier, table)` found, `learned` what
    `definetti_of_texts(table, original)`. Of a publication more is at hand: it is compared with
    another cut (`rehearse_intersection`), a learner is scored, and what was lost and what its
    providers ask is measured as well. Subtraction is carried out where the table names its
    providers. Cost: a few passes over the rows; of a publication also the attacks, and at most
    2,500 random queries.

    Raises:
        InvalidInputError: if there is no Table, it is empty, or it has missing values that it does
            not declare; if `against` is something else.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..29"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> found = assess(Table(frame, None, ["age"], "ill"))
    >>> found.models.k, [one.attack for one in found.attacks]
    (3, ['minimality', 'deFinetti', 'downcoding', 'intersection', 'subtraction'])
    """
    made = released if isinstance(released, PublishedRecords) else None
    table = read_table(released if made is None else made.table)
    _check("against", against, Intersection, "intersection(earlier, later)")
    for one in learned if isinstance(learned, tuple) else (learned,):
        _check("learned", one, LearnerScore, "definetti(publication)")
    kept = None
    if made is not None:
        against = rehearse_intersection(made) if against is None else against
        learned = definetti(made) if learned is None else learned
        kept = _kept(made)
    disclosed = disclosures(table)
    cuts = None if made is None else _cuts(made)
    undone = downcoding_of_texts(table) if made is None else downcoding(made)
    taken_out = subtraction(table)
    best = max(disclosed, key=lambda one: one.gain)
    return Assessment(
        rows=table.encoded.rows,
        models=privacy_models(table),
        reidentification=reidentification(table),
        disclosures=disclosed,
        learned=learned,
        cuts=cuts,
        downcoded=undone,
        against=against,
        subtracted=taken_out,
        attacks=attacks_on(
            (best.base, best.mean, best.attribute), cuts, learned, undone, against, taken_out
        ),
        kept=kept,
    )


def _kept(made: PublishedRecords) -> TableUtility:
    """Measure what a publication keeps, and what its providers ask."""
    queries = max(50, min(QUERIES, _QUERY_WORK // made.source.encoded.rows))
    return TableUtility(
        made=f"{made.constraint} against {coalition_text(made.m)}, made by the method "
        f"{made.method!r} and verified. {made.pooled}",
        loss=publication_loss(made),
        queries=queries,
        query_error=query_error(made.source, made, queries),
        providers=for_providers(made),
    )


def coalition_text(m: int) -> str:
    """Say who is withstood."""
    if m == 0:
        return "outsiders"
    return f"any {m} colluding providers" if m > 1 else "any single provider"


def _cuts(made: PublishedRecords) -> CutInfo:
    """Say whether sensitive values had a say in the cuts (statement 6 of the theory page)."""
    recipe = made.recipe
    if recipe.blind:
        return CutInfo(by_values=False, left_out=made.suppressed)
    by_numbers = recipe.constraint.records_alone
    return CutInfo(not by_numbers or recipe.rules.relaxed or recipe.rules.split == "fitness")


def _check(name: str, value: Any, kind: type, made_by: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidInputError(f"{name} is what {made_by} returned, not a {type(value).__name__}.")
