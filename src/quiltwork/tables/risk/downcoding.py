"""What can be undone of a generalization that goes just as far as needed.

Two conclusions of someone who has the published table and knows the rule it was made by, nothing
else (Cohen, Attacks on deidentification's defenses, USENIX Security 2022, calls it downcoding):

- A box is the least one that covers its records, so both ends of a range and every member of a set
  are values of some record. Of two records in `20..25` one is 20 and one is 25; it is only open
  which. For the boxes of this library that is certain, and it matters the more the smaller groups
  are: n records in a range tell 2 values, in a set as many as it has members.
- A group of n records that could have been cut was not: along every quasi-identifier all cuts left
  fewer than the needed number of records on one side, so that one value is shared by at least
  n − 2·(needed − 1) of them. Sensitive values or colluding providers may have been the reason
  instead, so the conclusion is scored on the actual records.

Cost: a few passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.base import Constraint, as_constraint
from quiltwork.tables.generalization.labels import RANGE
from quiltwork.tables.generalization.reading import label_of
from quiltwork.tables.metrics.models import value_counts
from quiltwork.tables.partitioning.cut_rule import below_common_label
from quiltwork.tables.partitioning.records import records_of
from quiltwork.tables.publication import LocalPublication, Publication, made_here
from quiltwork.tables.risk.extents import EVERYTHING
from quiltwork.tables.risk.minimality import records_needed
from quiltwork.tables.table import Table, read_table

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Downcoded:
    """How much of a generalization can be undone from the table and its rule alone.

    Attributes:
        cells: records × quasi-identifiers.
        generalized: cells that are published as a range, a set or a label above several values.
        told: of these, cells whose value the table tells: only who of the group has it is open.
        shared: pairs of a group and a generalized quasi-identifier for which a reader concludes
            that n − 2·(needed − 1) of its n records share one value; None if nothing is concluded.
        shared_right: pairs for which that is so.
    """

    cells: int
    generalized: int
    told: int
    shared: int | None = None
    shared_right: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, JSON-ready."""
        return asdict(self)


def downcoding_of(table: Table) -> Downcoded:
    """Count what the texts of a table tell, if its boxes are the least that cover their records.

    A column in which some set has more members than the group has records is not made so, and
    tells nothing. Labels of hierarchies are not told from values, unless they end in stars.

    Raises:
        InvalidInputError: if there is no Table.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..25"] * 2 + ["31..39"] * 3, "ill": [*"abcab"]})
    >>> downcoding_of(Table(frame, None, ["age"], "ill"))
    Downcoded(cells=5, generalized=5, told=4, shared=None, shared_right=None)
    """
    groups = read_table(table).groups
    sizes = np.bincount(groups.labels, minlength=groups.count)
    generalized = told = 0
    for column in table.encoded.quasi:
        forms = np.array([_values_told(value) for value in column.values])
        values = forms[column.codes[groups.first]]
        generalized += int(sizes[values != 1].sum())
        told += _told(values, sizes)
    return Downcoded(table.encoded.rows * len(table.encoded.quasi), generalized, told)


def downcoding(
    publication: Publication, constraint: Constraint | Callable[..., bool] | None = None
) -> Downcoded:
    """Count what can be undone of a publication, and score what a reader concludes from the rule.

    `constraint` is what the publication was made with; without it, or if it asks for no number of
    records, nothing is concluded from cuts that were not made.

    Raises:
        InvalidInputError: if there is no publication, or the constraint is none.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, Table, anonymize
    >>> frame = pandas.DataFrame({"age": [20, 25, 30, 30, 30, 31], "ill": [*"abcabc"]})
    >>> pub = anonymize(Table(frame, None, ["age"], "ill"), KAnonymity(2), m=0)
    >>> pub.frame["age"].unique().tolist()  # four in 30..31, and no cut: at least two are alike
    ['20..25', '30..31']
    >>> downcoding(pub, KAnonymity(2))
    Downcoded(cells=6, generalized=6, told=4, shared=1, shared_right=1)
    """
    published = made_here(publication)
    boxes, sizes = published.boxes, published.sizes
    columns = published.source.encoded.quasi
    generalized = told = 0
    wide = []
    for place, column in enumerate(columns):
        sets, missing = boxes.members[place], boxes.missing[:, place]
        several = boxes.lower[:, place] < boxes.upper[:, place]
        values = 1 + several + missing if sets is None else sets.sizes
        wide.append(values > 1)
        generalized += int(sizes[wide[-1]].sum())
        if column.hierarchy is None:
            told += _told(values, sizes)
    cells = len(published.rows) * len(columns)
    needed = 1 if constraint is None else records_needed(as_constraint(constraint))
    if needed == 1:
        return Downcoded(cells, generalized, told)
    return Downcoded(cells, generalized, told, *_shared(published, needed, wide))


def _told(values: Counts, sizes: Counts) -> int:
    """Return how many cells the ends and members of boxes account for; 1 is an exact value."""
    several = np.where(values > 1, values, 0)
    return 0 if (several > sizes).any() else int(several.sum())


def _values_told(value: Any) -> int:
    """Return how many values a text names; 0 for stars."""
    if not isinstance(value, str):
        return 1
    if EVERYTHING in value:
        return 0
    if RANGE not in value and not value.startswith("{"):
        return 1
    label = label_of(value)
    return max(1, len(set(label.values)) + label.missing)


def _shared(publication: LocalPublication, needed: int, wide: list[Flags]) -> tuple[int, int]:
    """Return for how many groups and columns one value must be shared by many, and how many are.

    Under a hierarchy nodes are cut between what their label is made of, so that is compared.
    """
    records, sizes, labels = (
        records_of(publication.source.encoded),
        publication.sizes,
        publication.labels,
    )
    concluded = right = 0
    for place, several in enumerate(wide):
        codes = records.codes[place][publication.rows].astype(np.int64)
        blocks = records.trees[place]
        if blocks is not None:
            low, high = np.full(len(sizes), len(blocks[0])), np.zeros(len(sizes), dtype=np.int64)
            np.minimum.at(low, labels, codes)
            np.maximum.at(high, labels, codes)
            codes = blocks[below_common_label(blocks, low, high)[labels], codes]
        counted = value_counts(labels, codes, len(sizes), int(codes.max()) + 1)
        most = np.maximum.reduceat(counted.records, counted.starts)
        asked = several & (sizes >= 2 * needed)
        concluded += int(asked.sum())
        right += int((most[asked] >= sizes[asked] - 2 * (needed - 1)).sum())
    return concluded, right
