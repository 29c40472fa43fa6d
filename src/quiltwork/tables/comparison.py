"""`compare`: several candidate tables side by side, risk against utility.

Risk is what recipients without rows of their own gain: the people that they recognise, and the
values that they guess. All candidates answer the same random range queries. What a coalition of
providers can do is bounded by each table's m and constraint.
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
_COLOURS = 6  # lines that one picture tells apart
_RISKS = {
    "recognised": "people recognised by their quasi-identifiers, mean risk",
    "guessed": "sensitive values guessed from the group, share that is right",
}


@dataclass(frozen=True)
class CandidateTable:
    """One table that could be published.

    Attributes:
        name: its name in the comparison.
        groups: the number of groups of rows with equal texts.
        suppressed: rows that are left out.
        recognised: the mean probability that a person's record is picked, groups/people.
        highest: the largest such probability, 1/(size of the smallest group).
        guessed: the share of records that have the most common sensitive value of their group; the
            largest share over sensitive columns.
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
    """Candidates in the order in which they were passed."""

    schema = ("table-comparison", 1)

    candidates: tuple[CandidateTable, ...]

    def explain(self) -> str:
        """Return a line on each candidate: its risk and its utility."""
        return "\n".join(map(_line_about, self.candidates))

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each candidate."""
        rows: list[dict[str, Any]] = self.body()["candidates"]
        return rows

    def chart(self, risk: Risk = "recognised") -> LineChart:
        """Draw each candidate as a point: risk to the right, error upwards; best is bottom left.

        With more than six, those whose names differ only before the first comma are joined by a
        line.
        """
        choice(risk, tuple(_RISKS), "risk")
        lines: dict[str, list[CandidateTable]] = {}
        for candidate in self.candidates:
            key = (
                candidate.name.partition(", ")[2]
                if len(self.candidates) > _COLOURS
                else candidate.name
            )
            lines.setdefault(key, []).append(candidate)
        return LineChart(
            "Risk against utility",
            f"Each point is one candidate table: {_RISKS[risk]}, and the mean relative error of "
            "range queries. Further left is less risk, further down more use.",
            _RISKS[risk],
            "query error",
            tuple(
                Line(
                    _line_name(line),
                    tuple((getattr(candidate, risk), candidate.error) for candidate in line),
                    not line[1:],
                )
                for line in lines.values()
            ),
        )


def _line_about(candidate: CandidateTable) -> str:
    """Return a sentence on the risk and the utility of a candidate."""
    return (
        f"{candidate.name}: {candidate.groups:,} groups, {percent(candidate.recognised, 2)} of "
        f"people recognised (with a probability of at most {percent(candidate.highest, 2)}), "
        f"{percent(candidate.guessed)} of sensitive values guessed, query error "
        f"{candidate.error:.3g}."
    )


def _line_name(line: list[CandidateTable]) -> str:
    """Name a line after its first and last point."""
    first, last = line[0].name, line[-1].name
    return first if first == last else f"{first.partition(', ')[0]} to {last}"


def compare(
    table: Table, candidates: Mapping[str, Publication], queries: int = 2500, seed: int = 0
) -> TableComparison:
    """Compare tables that `anonymize` made of one table; names are those of the picture.

    Cost: that of `query_error`, and one pass over each table.

    Raises:
        InvalidInputError: unless there are candidates by name, made on this machine of this table.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, anonymize
    >>> frame = pandas.DataFrame({"age": range(20, 40), "zip": [1, 2] * 10, "ill": [*"abcab"] * 4})
    >>> table = Table(frame, None, ["age", "zip"], "ill")
    >>> tables = {f"k={k}": anonymize(table, KAnonymity(k), m=0) for k in (2, 5)}
    >>> [(table.name, table.highest) for table in compare(table, tables, queries=50).candidates]
    [('k=2', 0.5), ('k=5', 0.2)]
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise InvalidInputError("Pass candidates by name, such as {'k=5': anonymize(…)}.")
    measured = []
    for name, publication in candidates.items():
        published = require_local(publication)
        error = query_error(table, published, queries, seed)
        linkage, guesses = reidentification(published.table), disclosures(published.table)
        measured.append(
            CandidateTable(
                str(name),
                linkage.groups,
                published.suppressed,
                linkage.mean,
                linkage.highest,
                max(guess.mean for guess in guesses),
                publication_loss(published).gcp,
                error,
            )
        )
    return TableComparison(tuple(measured))
