"""`assess`: everything a table reveals, in one frozen result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.results import ResultBase, plain
from quiltwork.tables.metrics.models import Models, privacy_models
from quiltwork.tables.risk.definetti import Learned
from quiltwork.tables.risk.disclosure import (
    Disclosure,
    Reidentification,
    disclosures,
    reidentification,
)
from quiltwork.tables.risk.downcoding import Downcoded, downcoding_of
from quiltwork.tables.risk.intersection import Intersection
from quiltwork.tables.risk.minimality import Refused
from quiltwork.tables.risk.warnings import RiskWarning, warnings_for
from quiltwork.tables.table import Table, read_table


@dataclass(frozen=True)
class Assessment(ResultBase):
    """What a table reveals as it stands.

    Attributes:
        rows: of the table.
        models: the values of k, l, t, β and δ that it has.
        reidentification: the risk that records are attributed to people.
        disclosures: the risk that sensitive values are inferred, per column.
        learned: how well a learner guesses sensitive values within the groups, where the original
            records were at hand to score it.
        refused: groups that numbers of records alone do not explain, for a publication.
        downcoded: how much of the generalization can be undone.
        against: what an earlier release adds, if one was compared.
        warnings: attacks that none of these values covers.
    """

    rows: int
    models: Models
    reidentification: Reidentification
    disclosures: tuple[Disclosure, ...]
    learned: tuple[Learned, ...] | None
    refused: Refused | None
    downcoded: Downcoded
    against: Intersection | None
    warnings: tuple[RiskWarning, ...]

    def explain(self) -> str:
        """Say how large the smallest group is, and which attacks no value here covers."""
        attacks = ", ".join(one.attack for one in self.warnings) or "none"
        return (
            f"{self.rows:,} records; every one is alike with {self.models.k - 1:,} others at least "
            f"in what identifies them. Attacks that no value here covers: {attacks}."
        )

    def body(self) -> dict[str, Any]:
        """Return everything by name, JSON-ready."""
        gains = [{**plain(one), "gain": one.gain} for one in self.disclosures]
        return {
            **super().body(),
            "disclosures": gains,
            "learned": None if self.learned is None else [one.body() for one in self.learned],
            "against": None if self.against is None else self.against.body(),
        }


def assess(
    table: Table,
    against: Intersection | None = None,
    learned: tuple[Learned, ...] | None = None,
    refused: Refused | None = None,
    downcoded: Downcoded | None = None,
) -> Assessment:
    """Measure a table as it stands: groups are rows with equal quasi-identifiers.

    `against` is what `intersection(earlier, table)` found, `learned` what `definetti(publication)`
    or `definetti_on(table, original)` did, `refused` what `refused_cuts(publication)` did,
    `downcoded` what `downcoding(publication)` did; without it the texts of the table
    are counted. Cost: a few passes over the rows.

    Raises:
        InvalidInputError: if there is no Table, it is empty, or it has missing values that it does
            not declare; if `against` is something else.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..29"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> found = assess(Table(frame, None, ["age"], "ill"))
    >>> found.models.k, [one.attack for one in found.warnings]
    (3, ['minimality', 'deFinetti', 'downcoding', 'intersection'])
    """
    disclosed = disclosures(read_table(table))
    _check("against", against, Intersection, "intersection(earlier, later)")
    _check("refused", refused, Refused, "refused_cuts(publication)")
    _check("downcoded", downcoded, Downcoded, "downcoding(publication)")
    for one in learned if isinstance(learned, tuple) else (learned,):
        _check("learned", one, Learned, "definetti(publication)")
    undone = downcoding_of(table) if downcoded is None else downcoded
    return Assessment(
        rows=table.encoded.rows,
        models=privacy_models(table),
        reidentification=reidentification(table),
        disclosures=disclosed,
        learned=learned,
        refused=refused,
        downcoded=undone,
        against=against,
        warnings=warnings_for(disclosed, learned, refused, undone, against),
    )


def _check(name: str, value: Any, kind: type, made_by: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidInputError(f"{name} is what {made_by} returned, not a {type(value).__name__}.")
