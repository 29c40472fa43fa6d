"""An order of records that content alone decides.

Where records with equal quasi-identifiers may go to different groups, something must say which; if
it were the order of the file, that order would show in what is published. Records that look alike
are taken in turns instead, by sensitive value and within it by provider, each spread evenly over
the whole: a part of a run is then about as diverse as the run. Cost: a few sorts of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.records import Records, Rows


def by_content(records: Records, subject: NDArray[np.int64] | None) -> Rows:
    """Return the row numbers in an order that is the same however the rows were given.

    Only rows that agree in everything, the person included, are left as they were.
    """
    alike = _numbered(records.codes)
    last = () if subject is None else (subject,)
    turn = _turns((alike, records.sensitive, records.provider), last)
    turn = _turns((alike, records.sensitive), (turn, records.provider, *last))
    return np.lexsort((*last, records.provider, records.sensitive, turn, alike))


def _numbered(columns: NDArray[Any]) -> NDArray[np.int64]:
    """Number the distinct combinations of codes in their order."""
    order = np.lexsort(columns[::-1])
    taken = columns[:, order]
    new = (taken[:, 1:] != taken[:, :-1]).any(axis=0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.concatenate(([0], np.cumsum(new)))
    return number


def _turns(kind: Sequence[NDArray[Any]], then: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return where each row stands among those of its kind, ordered by `then`, between 0 and 1."""
    order = np.lexsort((*then[::-1], *kind[::-1]))
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for column in kind:
        taken = column[order]
        new[1:] |= taken[1:] != taken[:-1]
    start = np.flatnonzero(new)
    sizes = np.diff(np.append(start, len(order)))
    turn = np.empty(len(order))
    turn[order] = (np.arange(len(order)) - np.repeat(start, sizes) + 0.5) / np.repeat(sizes, sizes)
    return turn
