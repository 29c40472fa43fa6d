"""Facts for the providers of a published table: whose rows are in it, and who could undo it.

Cost: a verification of the published groups for each number of colluding providers that is tried,
about log2 of them (`max_m`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.files import as_path
from quiltwork.results import ResultBase
from quiltwork.tables.codes.group import count_groups
from quiltwork.tables.constraints import Constraint, KAnonymity
from quiltwork.tables.constraints.coalition_bounds import most_known
from quiltwork.tables.publishing.published_records import (
    Publication,
    PublishedRecords,
    require_local,
)
from quiltwork.tables.publishing.writing import Formulas, write_table
from quiltwork.tables.table import Table
from quiltwork.tables.verification.max_m import MaxM, max_m_above

_LIMIT = 10_000  # checks within a group; a group that needs more counts as breached


@dataclass(frozen=True)
class ForProviders(ResultBase):
    """Facts about a publication for its providers.

    Attributes:
        rows: provider → number of rows that it contributed.
        published: provider → how many of them are published.
        groups: the number of groups.
        alone: the number of groups with the rows of one provider alone.
        asked: the number of colluding providers it was made to withstand.
        safe: the largest coalition that is withstood. Its `breach` names, for one more provider,
            those who leave the fewest records of others if that breaks k-anonymity, and else the
            first breach.
    """

    rows: dict[str, int]
    published: dict[str, int]
    groups: int
    alone: int
    asked: int
    safe: MaxM

    def body(self) -> dict[str, Any]:
        """Return it as JSON values; it contains no value of a record."""
        breach = self.safe.breach
        weakest = None
        if breach is not None and breach.settled:
            weakest = {
                "coalition": [str(member) for member in breach.coalition],
                "group": [str(member) for member in breach.group],
                "breaks": breach.broken,
                "left": breach.left_size,
            }
        return {
            "providers": [
                {"provider": name, "rows": rows, "published": self.published[name]}
                for name, rows in self.rows.items()
            ],
            "groups_of_one": self.alone,
            "withstands": int(self.safe),
            "weakest": weakest,
        }

    def explain(self) -> str:
        """Return in words whose rows are in it, how many may collude, and who breaks it next."""
        if len(self.rows) == 1:
            return ""
        rows_of_each = ", ".join(
            f"{name} {rows:,}"
            if self.published[name] == rows
            # so that providers see that rows of theirs were left out
            else f"{name} {self.published[name]:,} of {rows:,}"
            for name, rows in self.rows.items()
        )
        return f"Rows: {rows_of_each}. {self.withstood}"

    @property
    def withstood(self) -> str:
        """How many providers may collude, and who would break it next, in words."""
        breach = self.safe.breach
        # No coalition of all providers leaves anybody to protect.
        most = int(self.safe) if breach is not None else len(self.rows) - 1
        coalitions = f"{most} colluding"
        if breach is None:
            coalitions = "every coalition that leaves one of them out"
        sentence = f"It withstands {coalitions}"
        if most > self.asked:
            sentence += f", although only {self.asked} was requested: m = {most} costs nothing here"
        sentence += ". "
        if breach is None:
            return sentence.strip()
        if not breach.settled or breach.outsiders:
            return sentence + f"Whether it withstands {breach.m} is undecided."
        left = f"{breach.left_size:,} record{'' if breach.left_size == 1 else 's'} of others"
        leave = "leaves" if len(breach.coalition) == 1 else "together leave"
        return sentence + (
            f"Weakest: {' and '.join(map(str, breach.coalition))} {leave} {left} in the "
            f"group ({', '.join(map(str, breach.group))}), which breaks {breach.broken}."
        )


def for_providers(publication: PublishedRecords) -> ForProviders:
    """Count whose rows are published, and find how many colluding providers are withstood."""
    source = publication.source.encoded
    names = [str(name) for name in source.providers]
    contributed = np.bincount(source.provider, minlength=len(names)).tolist()
    published = np.bincount(source.provider[publication.rows], minlength=len(names)).tolist()
    return ForProviders(
        rows=dict(zip(names, contributed, strict=True)),
        published=dict(zip(names, published, strict=True)),
        groups=publication.boxes.count,
        alone=publication.of_one_provider,
        asked=publication.m,
        safe=_weakest(publication.table, publication.recipe.constraint, publication.m),
    )


def _weakest(table: Table, constraint: Constraint, verified: int) -> MaxM:
    """Return max_m, with the coalition of one more that leaves the fewest records of others."""
    safe = max_m_above(table, constraint, _LIMIT, verified)
    breach, encoded = safe.breach, table.encoded
    k = constraint.records_asked
    # Without a settled breach by providers there is no weakest coalition to name.
    if breach is None or breach.outsiders or not breach.settled or encoded.subject is not None:
        return safe
    counts = count_groups(encoded, table.groups.labels, table.groups.count)
    remaining = np.bincount(counts.group, counts.weight) - most_known(counts, breach.m)
    weakest = int(np.argmin(remaining))
    if remaining[weakest] >= k:
        return safe
    group = counts.cut(weakest)
    largest = np.argsort(-group.weights.sum(axis=1), kind="stable")
    members = largest[: min(breach.m, group.size - 1)]
    left_values = group.left(members).as_dict()
    verdict = replace(
        breach,
        coalition=tuple(encoded.providers[code] for code in group.providers[members]),
        group=table.group_values(weakest),
        broken=str(KAnonymity(k)),
        left={encoded.classes[code]: number for code, number in left_values.items()},
        left_size=int(remaining[weakest]),
    )
    return MaxM(int(safe), verdict, safe.largest_passing_k)


def write_row_groups(
    publication: Publication, folder: str | Path, formulas: Formulas = "keep"
) -> list[Path]:
    """Write each provider's own rows as published to a new folder, one CSV file per provider.

    Give each provider only its own file. With it, its rows and the published table, it can check
    alone what is left of the others (`own_view`). m-privacy assumes coalitions that know where
    their rows are, so this reveals nothing more.

    Raises:
        InvalidInputError: if the folder exists, or a provider's name cannot be a file name.
        StorageError: if it cannot be written.

    >>> import pandas, tempfile
    >>> from quiltwork.tables import anonymize
    >>> frame = pandas.DataFrame({"who": [*"ABAB"], "age": [20, 21, 22, 23], "ill": [*"xyxy"]})
    >>> publication = anonymize(Table(frame, "who", ["age"], "ill"), KAnonymity(2), m=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_row_groups(publication, f"{folder}/row_groups")]
    ['A.csv', 'B.csv']
    """

    row_groups = require_local(publication).row_groups()
    # Names come from data: none may leave the folder or hide a file.
    for name in row_groups:
        if not name or Path(name).name != name or "\0" in name or name.startswith("."):
            raise InvalidInputError(
                f"The name of provider {name!r} cannot be a file name; rename the provider."
            )
    target = as_path(folder)
    try:
        target.mkdir(0o700)
    except OSError as error:
        raise InvalidInputError(
            f"Cannot create the folder {str(target)!r}: {error.strerror}. Choose a new folder."
        ) from None
    return [
        write_table(frame, target / f"{name}.csv", formulas) for name, frame in row_groups.items()
    ]
