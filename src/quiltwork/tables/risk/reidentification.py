"""Re-identification: how surely a record is a known person's.

Someone who knows a person's quasi-identifiers, and that the person is in the table (the
"prosecutor"), picks the right record of a group of n people with probability 1/n. The mean over
records is the share of people that an attack on everybody finds (the "marketer").
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quiltwork.tables.metrics.counts import people_per_group
from quiltwork.tables.table import Table

SMALL = (2, 3, 5, 10, 20)
"""Group sizes below which records are counted: the usual thresholds of statistical offices."""


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

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, JSON-ready."""
        return asdict(self)


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
