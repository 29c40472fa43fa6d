"""Each provider alone (Figure 1A): anonymize every part by itself, then put them together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import Progress, Rules, mondrian
from quiltwork.tables.partitioning.nodes import Counts
from quiltwork.tables.partitioning.records import Records

UNPUBLISHED = -1
"""The group of rows that cannot be published."""


def separate(
    records: Records, guard: Guard, rules: Rules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group, −1 for providers too small to be private.

    `guard` asks about outsiders only (m = 0): within a provider's own part nobody colludes. In the
    whole, each group has one provider, whom no coalition may leave out.
    """
    labels = np.full(records.count, UNPUBLISHED, dtype=np.int64)
    order = np.argsort(records.provider, kind="stable")
    starts = np.searchsorted(records.provider[order], np.arange(records.providers))
    groups = done = 0
    for rows in np.split(order, starts[1:]):
        done += len(rows)
        if not len(rows) or not guard.private(records, rows, np.zeros(1, dtype=np.int64))[0]:
            continue
        part = replace(records.take(rows))
        found = mondrian(part, guard, rules)
        labels[rows] = groups + found
        groups += int(found.max()) + 1
        if progress is not None:
            progress(done, records.count)
    return labels
