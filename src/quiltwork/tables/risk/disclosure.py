"""How surely a record is a known person's, and how surely its sensitive value is inferred.

Re-identification: someone who knows a person's quasi-identifiers, and that the person is in the
table (the "prosecutor"), picks the right record of a group of n people with probability 1/n. The
mean over records is the share of people that an attack on everybody finds (the "marketer").

Attribute disclosure: someone who knows which group a person is in guesses the group's most common
value; the share of that value is how surely it is right. Compared with guessing the most common
value of the whole table, that is what the table gave away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quiltwork.tables.metrics.models import ValueCounts, attribute_counts, people_per_group
from quiltwork.tables.table import Table

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
    return tuple(_disclosure(name, counts) for name, (counts, _) in found)


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
