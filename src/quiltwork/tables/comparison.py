"""`compare`: several candidate tables side by side, risk against utility.

Risk is what recipients without rows of their own gain: whom they recognise, and what they guess.
All candidates answer the same random range queries. What a coalition of providers can do is in each
table's m and constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import percent
from quiltwork.report.charts import Line, LineChart
from quiltwork.results import ChartedResult
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.metrics.query_error import query_error
from quiltwork.tables.publishing.published_records import Publication, require_local
from quiltwork.tables.risk.assessment import disclosures, reidentification
from quiltwork.tables.table import Table

Risk: TypeAlias = Literal["recognised", "guessed"]
_COLOURS = 6
_RISKS = {
    "recognised": "people recognised by their quasi-identifiers, mean risk",
    "guessed": "sensitive values guessed from the group, share that is right",
}


@dataclass(frozen=True)
class CandidateTable:
    """One table that could be published.

    Attributes:
        name: what it is called in the comparison.
        groups: how many groups of rows look alike.
        suppressed: rows that are left out.
        recognised: the mean risk that a person's record is picked, groups/people.
        highest: the largest risk of a person, 1/(smallest group).
        guessed: the share of records whose sensitive value the most common one of their group is;
            of several columns the largest.
        gcp: the share of the columns' ranges that a cell covers, on average.
        error: the mean relative error of random range queries.
    """

    name: str
    groups: int
    suppressed: int
    recognised: float
    highest: float
    guessed: float
    gcp: float
    error: float


@dataclass(frozen=True)
class TableComparison(ChartedResult):
    """Candidates, in the order in which they were given."""

    schema = ("table-comparison", 1)

    candidates: tuple[CandidateTable, ...]

    def explain(self) -> str:
        """Say what each costs and gives away."""
        lines = [
            f"{one.name}: {one.groups:,} groups, {percent(one.recognised, 2)} of people "
            f"recognised (at most {percent(one.highest, 2)} sure), {percent(one.guessed)} of "
            f"sensitive values guessed, query error {one.error:.3g}."
            for one in self.candidates
        ]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per candidate."""
        rows: list[dict[str, Any]] = self.body()["candidates"]
        return rows

    def chart(self, risk: Risk = "recognised") -> LineChart:
        """Draw each candidate as a point: risk to the right, error upwards; best is bottom left.

        Of more than six, those whose names differ only before the first comma are joined by a line.
        """
        choice(risk, tuple(_RISKS), "risk")
        alike: dict[str, list[CandidateTable]] = {}
        for one in self.candidates:
            rest = one.name.partition(", ")[2] if len(self.candidates) > _COLOURS else one.name
            alike.setdefault(rest, []).append(one)
        return LineChart(
            "Risk against utility",
            f"Each point is one candidate table: {_RISKS[risk]}, and the mean relative error of "
            "range queries. Further left is less risk, further down more use.",
            _RISKS[risk],
            "query error",
            tuple(
                Line(
                    _joined(some),
                    tuple((getattr(one, risk), one.error) for one in some),
                    not some[1:],
                )
                for some in alike.values()
            ),
        )


def _joined(some: list[CandidateTable]) -> str:
    """Name a line after its first and last point."""
    first, last = some[0].name, some[-1].name
    return first if first == last else f"{first.partition(', ')[0]} to {last}"


def compare(
    table: Table, candidates: Mapping[str, Publication], queries: int = 2500, seed: int = 0
) -> TableComparison:
    """Measure tables that `anonymize` made of one table; names are those of the picture.

    Cost: that of `query_error` and of one pass over each table.

    Raises:
        InvalidInputError: unless there are candidates by name, made on this machine of this table.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, anonymize
    >>> frame = pandas.DataFrame({"age": range(20, 40), "zip": [1, 2] * 10, "ill": [*"abcab"] * 4})
    >>> table = Table(frame, None, ["age", "zip"], "ill")
    >>> tables = {f"k={k}": anonymize(table, KAnonymity(k), m=0) for k in (2, 5)}
    >>> [(one.name, one.highest) for one in compare(table, tables, queries=50).candidates]
    [('k=2', 0.5), ('k=5', 0.2)]
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise InvalidInputError("Give candidates by name, such as {'k=5': anonymize(…)}.")
    found = []
    for name, publication in candidates.items():
        made = require_local(publication)
        error = query_error(table, made, queries, seed)
        seen, guesses = reidentification(made.table), disclosures(made.table)
        found.append(
            CandidateTable(
                str(name),
                seen.groups,
                made.suppressed,
                seen.mean,
                seen.highest,
                max(one.mean for one in guesses),
                publication_loss(made).gcp,
                error,
            )
        )
    return TableComparison(tuple(found))
