"""Downcoding: how much of a minimal generalization can be undone.

Someone who has the published table and knows only the rule by which it was made concludes (Cohen,
Attacks on deidentification's defenses, USENIX Security 2022): a box is the smallest one that covers
its records, so both ends of a range and every member of a set are values of some record. Of two
records in `20..25` one is 20 and one is 25; only who is which stays open. For the boxes of this
library that is certain, and it matters more for smaller groups: n records in a range reveal 2
values, in a set as many as it has members.

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
from quiltwork.tables.table import Table, as_table

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class DowncodingResult(ResultBase):
    """How much of a generalization can be undone from the table and its rule alone.

    Attributes:
        cells: records × quasi-identifiers.
        generalized: cells published as a range, a set or a label above several values.
        told: of these, cells whose value is revealed, except who in the group has it.
        certain: whether boxes are known to be the smallest ones, as those of this library are.
    """

    cells: int
    generalized: int
    told: int
    certain: bool = False


def downcoding_of_texts(table: Table) -> DowncodingResult:
    """Count the values that a table's texts reveal if its boxes are the smallest possible.

    A column in which some set has more members than the group has records is not made that way, and
    reveals nothing. Labels of hierarchies cannot be distinguished from values unless they end in
    stars.

    Raises:
        InvalidInputError: if the argument is not a Table.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": ["20..25"] * 2 + ["31..39"] * 3, "ill": [*"abcab"]})
    >>> downcoding_of_texts(Table(frame, None, ["age"], "ill"))
    DowncodingResult(cells=5, generalized=5, told=4, certain=False)
    """
    groups = as_table(table).groups
    sizes = np.bincount(groups.labels, minlength=groups.count)
    generalized = revealed = 0
    for column in table.encoded.quasi:
        counts_of_texts = np.array([_values_told(value) for value in column.values])
        values = counts_of_texts[column.codes[groups.first]]
        generalized += int(sizes[values != 1].sum())
        revealed += _told(values, sizes)
    return DowncodingResult(table.encoded.rows * len(table.encoded.quasi), generalized, revealed)


def downcoding(publication: Publication) -> DowncodingResult:
    """Count the values that the boxes of a publication reveal.

    Raises:
        InvalidInputError: if the argument is not a publication.

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
    generalized = revealed = 0
    for column, box in zip(columns, boxes.columns, strict=True):
        is_range = box.lower < box.upper
        values = 1 + is_range + box.missing if box.members is None else box.members.sizes
        generalized += int(sizes[values > 1].sum())
        # A label names all its leaves, whether they occur or not.
        if column.hierarchy is None:
            revealed += _told(values, sizes)
    return DowncodingResult(len(published.rows) * len(columns), generalized, revealed, certain=True)


def _told(values: Counts, sizes: Counts) -> int:
    """Return how many cells the ends and members of boxes account for; 1 is an exact value."""
    several = np.where(values > 1, values, 0)
    # A set with more members than records cannot be a smallest box: other rules made it.
    return 0 if (several > sizes).any() else int(several.sum())


def _values_told(value: Any) -> int:
    """Return how many values a text names; 0 for stars."""
    if not isinstance(value, str):
        return 1
    # A star hides which values occur.
    if EVERYTHING in value:
        return 0
    if RANGE not in value and not value.startswith("{"):
        return 1
    label = label_of(value)
    return max(1, len(set(label.values)) + label.missing)
