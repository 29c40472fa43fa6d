"""What providers ask about a table before they sign: whose rows are in it, and who could undo it.

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

_LIMIT = 10_000  # steps within a group; what takes more counts as not withstood


@dataclass(frozen=True)
class ForProviders(ResultBase):
    """What a publication is to its providers.

    Attributes:
        rows: provider → how many rows it gave.
        published: provider → how many of them are published.
        groups: how many groups there are.
        alone: how many of them have the rows of one provider alone.
        asked: how many colluding providers it was made to withstand.
        safe: the largest coalition that is withstood; its `breach` names those who, with one
            more, leave fewest records of others where that breaks k-anonymity, and else the first
            who break something.
    """

    rows: dict[str, int]
    published: dict[str, int]
    groups: int
    alone: int
    asked: int
    safe: MaxM

    def body(self) -> dict[str, Any]:
        """Return it as JSON values; no record's value is in it."""
        breach = self.safe.breach
        weakest = None
        if breach is not None and breach.settled:
            weakest = {
                "coalition": [str(one) for one in breach.coalition],
                "group": [str(one) for one in breach.group],
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
        """Say whose rows are in it, how many may collude, and who would break it next."""
        if len(self.rows) == 1:
            return ""
        given = ", ".join(
            f"{name} {rows:,}"
            if self.published[name] == rows
            # so that whoever is left out sees it
            else f"{name} {self.published[name]:,} of {rows:,}"
            for name, rows in self.rows.items()
        )
        return f"Rows: {given}. {self.withstood}"

    @property
    def withstood(self) -> str:
        """How many may collude, and who would break it next, in words."""
        breach = self.safe.breach
        if breach is None:
            return "It withstands every coalition that leaves one of them out."
        said = f"It withstands {int(self.safe)} colluding. "
        if int(self.safe) > self.asked:
            said = (
                f"It withstands {int(self.safe)} colluding, and {self.asked} was asked: m = "
                f"{int(self.safe)} costs nothing here. "
            )
        if not breach.settled or breach.outsiders:
            return said + f"Whether it withstands {breach.m} was not settled."
        left = f"{breach.left_size:,} record{'' if breach.left_size == 1 else 's'} of others"
        leave = "leaves" if len(breach.coalition) == 1 else "together leave"
        return said + (
            f"Weakest: {' and '.join(map(str, breach.coalition))} {leave} {left} in the "
            f"group ({', '.join(map(str, breach.group))}), which breaks {breach.broken}."
        )


def for_providers(publication: PublishedRecords) -> ForProviders:
    """Count whose rows are published, and find how many colluding providers are withstood."""
    source = publication.source.encoded
    names = [str(name) for name in source.providers]
    given = np.bincount(source.provider, minlength=len(names)).tolist()
    shown = np.bincount(source.provider[publication.rows], minlength=len(names)).tolist()
    return ForProviders(
        rows=dict(zip(names, given, strict=True)),
        published=dict(zip(names, shown, strict=True)),
        groups=publication.boxes.count,
        alone=publication.of_one_provider,
        asked=publication.m,
        safe=_weakest(publication.table, publication.recipe.constraint, publication.m),
    )


def _weakest(table: Table, constraint: Constraint, verified: int) -> MaxM:
    """Find how many are withstood, and who of one more leave fewest records of others."""
    safe = max_m_above(table, constraint, _LIMIT, verified)
    breach, encoded = safe.breach, table.encoded
    k = constraint.records_asked
    if breach is None or breach.outsiders or not breach.settled or encoded.subject is not None:
        return safe
    counts = count_groups(encoded, table.groups.labels, table.groups.count)
    left = np.bincount(counts.group, counts.weight) - most_known(counts, breach.m)
    weakest = int(np.argmin(left))
    if left[weakest] >= k:
        return safe
    group = counts.cut(weakest)
    largest = np.argsort(-group.weights.sum(axis=1), kind="stable")
    members = largest[: min(breach.m, group.size - 1)]
    rest = group.left(members).as_dict()
    found = replace(
        breach,
        coalition=tuple(encoded.providers[code] for code in group.providers[members]),
        group=table.group_values(weakest),
        broken=str(KAnonymity(k)),
        left={encoded.classes[code]: number for code, number in rest.items()},
        left_size=int(left[weakest]),
    )
    return MaxM(int(safe), found, safe.largest_passing_k)


def write_row_groups(
    publication: Publication, folder: str | Path, formulas: Formulas = "keep"
) -> list[Path]:
    """Write each provider's own rows as they were published, one CSV file each, to a new folder.

    Give each provider its own file and nobody else's: with it, its rows and the published table it
    can check alone what is left of the others (`own_view`). m-privacy holds against coalitions that
    know where their rows are, so this gives nothing away.

    Raises:
        InvalidInputError: if the folder exists, or a provider's name is no name of a file.
        StorageError: if it cannot be written.
    """

    row_groups = require_local(publication).row_groups()
    for name in row_groups:
        if not name or Path(name).name != name or "\0" in name or name.startswith("."):
            raise InvalidInputError(f"Provider {name!r} cannot name a file; call it otherwise.")
    target = as_path(folder)
    try:
        target.mkdir(0o700)
    except OSError as error:
        raise InvalidInputError(
            f"Cannot make the folder {str(target)!r}: {error.strerror}; name a new one."
        ) from None
    return [
        write_table(frame, target / f"{name}.csv", formulas) for name, frame in row_groups.items()
    ]
