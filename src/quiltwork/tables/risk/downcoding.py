"""What can be undone of a generalization that goes just as far as needed.

Someone who has the published table and knows the rule it was made by, nothing else, concludes
(Cohen, Attacks on deidentification's defenses, USENIX Security 2022, calls it downcoding): a box is
the least one that covers its records, so both ends of a range and every member of a set are values
of some record. Of two records in `20..25` one is 20 and one is 25; it is only open which. For the
boxes of this library that is certain, and it matters the more the smaller groups are: n records in
a range tell 2 values, in a set as many as it has members.

Cost: a few passes over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.results import ResultBase
from quiltwork.tables.generalization.published_texts import RANGE, label_of
from quiltwork.tables.publishing.published_records import Publication, require_local
from quiltwork.tables.risk.overlaps import EVERYTHING
from quiltwork.tables.table import Table, read_table

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class DowncodingResult(ResultBase):
    """How much of a generalization can be undone from the table and its rule alone.

    Attributes:
        cells: records × quasi-identifiers.
        generalized: cells that are published as a range, a set or a label above several values.
        told: of these, cells whose value the table tells: only who of the group has it is open.
        certain: whether boxes are known to be the least ones, as those of this library are.
    """

    cells: int
    generalized: int
    told: int
    certain: bool = False


def downcoding_of_texts(table: Table) -> DowncodingResult:
    """Count what the texts of a table tell, if its boxes are the least that cover their records.

    A column in which some set has more members than the group has records is not made so, and
    tells nothing. Labels of hierarchies are not told from values, unless they end in stars.

    Raises:
        InvalidInputError: if there is no Table.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..25"] * 2 + ["31..39"] * 3, "ill": [*"abcab"]})
    >>> downcoding_of_texts(Table(frame, None, ["age"], "ill"))
    DowncodingResult(cells=5, generalized=5, told=4, certain=False)
    """
    groups = read_table(table).groups
    sizes = np.bincount(groups.labels, minlength=groups.count)
    generalized = told = 0
    for column in table.encoded.quasi:
        forms = np.array([_values_told(value) for value in column.values])
        values = forms[column.codes[groups.first]]
        generalized += int(sizes[values != 1].sum())
        told += _told(values, sizes)
    return DowncodingResult(table.encoded.rows * len(table.encoded.quasi), generalized, told)


def downcoding(publication: Publication) -> DowncodingResult:
    """Count what the boxes of a publication tell.

    Raises:
        InvalidInputError: if there is no publication.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, Table, anonymize
    >>> frame = pandas.DataFrame({"age": [20, 25, 30, 30, 30, 31], "ill": [*"abcabc"]})
    >>> pub = anonymize(Table(frame, None, ["age"], "ill"), KAnonymity(2), m=0)
    >>> pub.frame["age"].unique().tolist()
    ['20..25', '30..31']
    >>> downcoding(pub)
    DowncodingResult(cells=6, generalized=6, told=4, certain=True)
    """
    published = require_local(publication)
    boxes, sizes = published.boxes, published.sizes
    columns = published.source.encoded.quasi
    generalized = told = 0
    for column, box in zip(columns, boxes.columns, strict=True):
        several = box.lower < box.upper
        values = 1 + several + box.missing if box.members is None else box.members.sizes
        generalized += int(sizes[values > 1].sum())
        if column.hierarchy is None:
            told += _told(values, sizes)
    return DowncodingResult(len(published.rows) * len(columns), generalized, told, certain=True)


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
