"""Which published groups a row fits: for those who hold rows and the published texts only.

Cost: O(rows × groups × quasi-identifiers) bytes compared, in portions of bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.encoding import Column
from quiltwork.publishing.generalization.reading import Reader
from quiltwork.publishing.table import Table

_PORTION = 1 << 23
"""Pairs of row and group that are compared at a time."""


def fitting_groups(
    published: Table, own: Table, rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Give portions of `rows` of the own table, each with which groups (columns) its rows fit.

    The texts are read as the own table declares: its orders and hierarchies.
    """
    columns = {column.name: column for column in published.encoded.quasi}
    tests = []
    for mine in own.encoded.quasi:
        shown = columns[mine.name]
        covered = _covering(shown, mine, own.orders.get(mine.name, ()))
        tests.append((covered[shown.codes[published.groups.first]], mine.codes))
    step = max(1, _PORTION // max(1, published.groups.count))
    for start in range(0, len(rows), step):
        portion = rows[start : start + step]
        fits = np.ones((len(portion), published.groups.count), dtype=bool)
        for covered, codes in tests:
            fits &= covered.T[codes[portion]]
        yield portion, fits


def _covering(published: Column, own: Column, order: Sequence[Any]) -> NDArray[np.bool_]:
    """Tell which published texts (rows) cover which own values (columns)."""
    reader = Reader(own, order)
    covered = np.zeros((len(published.values), len(own.values)), dtype=bool)
    for row, text in zip(covered, published.values, strict=True):
        row[reader.codes(text)] = True
    return covered
