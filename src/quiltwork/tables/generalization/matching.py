"""Which published groups a row fits: for those who hold rows and the published texts only.

Cost: O(rows × groups × quasi-identifiers) bytes compared, in portions of bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.encoding import Column
from quiltwork.tables.generalization.hierarchies import ROOT
from quiltwork.tables.generalization.reading import Reader, label_of
from quiltwork.tables.table import Table

_PORTION = 1 << 23
"""Pairs of row and group that are compared at a time."""


def fitting_groups(
    published: Table, own: Table, rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Give portions of `rows` of the own table, each with which groups (columns) its rows fit.

    The texts are read as the own table declares: its orders and hierarchies. A row that may be in a
    group whose text is not understood is taken to fit none: where it is is not known.
    """
    columns = {column.name: column for column in published.encoded.quasi}
    tests = []
    for mine in own.encoded.quasi:
        shown = columns[mine.name]
        covered, unread = _covering(shown, mine, own.orders.get(mine.name, ()))
        group = shown.codes[published.groups.first]
        tests.append((covered[group], unread[group], mine.codes))
    step = max(1, _PORTION // max(1, published.groups.count))
    for start in range(0, len(rows), step):
        portion = rows[start : start + step]
        fits = np.ones((len(portion), published.groups.count), dtype=bool)
        doubt = np.zeros_like(fits)
        for covered, unread, codes in tests:
            inside, perhaps = (side.T[codes[portion]] for side in (covered, unread))
            doubt = (doubt & (inside | perhaps)) | (fits & perhaps)
            fits &= inside
        yield portion, fits & ~doubt.any(axis=1, keepdims=True)


def _covering(
    published: Column, own: Column, order: Sequence[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which published texts (rows) cover which own values (columns), and which perhaps do.

    Next to sets a word is a value that others have. Next to the root of a hierarchy that was not
    declared, an unknown one may be a label of it.
    """
    reader = Reader(own, order)
    covered = np.zeros((len(published.values), len(own.values)), dtype=bool)
    for row, text in zip(covered, published.values, strict=True):
        row[reader.codes(text)] = True
    unread = ~np.array([reader.understands(text) for text in published.values])
    labels = [label_of(text) for text in published.values]
    if any(label.form == "set" and label.values for label in labels):
        unread[:] = False
    elif own.hierarchy is None and any(label.values == (ROOT, ROOT) for label in labels):
        unread |= ~covered.any(axis=1)
    known = np.array([value is not None for value in own.values])
    return covered, unread[:, None] & known
