"""Suppression on Spark: the widest groups are left out, as many as the budget allows.

It is the local backend's rule: groups wider than twice the mean over records, in order of falling
width, each if it still fits. Only the numbers, widths and sizes of such groups come to the driver,
the widest `MOST_GROUPS` at most. Cost: two passes over the published records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.spark.finish import GROUP, WIDTH
from quiltwork.tables.spark.session import mapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_GROUPS = 200_000
"""Wide groups that the driver takes; those after them are kept."""
_GRID = 2.0**40
"""Widths are added up as whole numbers of this grid, so that sums do not depend on the order."""

Counts = NDArray[np.int64]


def without_widest(published: DataFrame, room: int) -> tuple[DataFrame, int]:
    """Leave out at most `room` records; return the rest and how many are gone.

    The rest is kept on disk, apart from the whole, unless nothing is gone.
    """
    from pyspark import StorageLevel

    keys, sizes = _wide_groups(published)
    chosen = fitting(sizes, room)
    if not len(chosen):
        return published, 0
    rest = mapped(published, _without(keys[chosen]), published.schema)
    rest = rest.persist(StorageLevel.DISK_ONLY)
    rest.count()  # so that it no longer needs the whole
    return rest, int(sizes[chosen].sum())


def _without(groups: Counts) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def keep(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            gone = np.isin(batch.column(GROUP).to_numpy(), groups)
            yield batch.filter(pa.array(~gone))

    return keep


def fitting(sizes: Counts, room: int) -> Counts:
    """Return which of the groups, in their order, are left out: each that still fits.

    >>> fitting(np.array([5, 9, 3, 4]), 12).tolist()
    [0, 2, 3]
    """
    chosen = []
    for group, size in enumerate(sizes.tolist()):
        if size <= room:
            chosen.append(group)
            room -= size
    return np.array(chosen, dtype=np.int64)


def _wide_groups(published: DataFrame) -> tuple[Counts, Counts]:
    """Return the groups wider than twice the mean and their sizes, the widest first."""
    from pyspark.sql import functions

    width = functions.col(WIDTH)
    on_grid = functions.floor(width * functions.lit(_GRID)).cast("decimal(38, 0)")
    total, rows = published.agg(functions.sum(on_grid), functions.count("*")).collect()[0]
    limit = 2 * float(total) / _GRID / rows
    groups = published.where(width > limit).groupBy(GROUP, WIDTH)
    sizes = groups.agg(functions.count(functions.lit(1)).alias("size"))
    widest = sizes.orderBy(functions.desc(WIDTH), GROUP).limit(MOST_GROUPS).toArrow()
    keys, counts = (widest.column(name).to_numpy() for name in (GROUP, "size"))
    return keys, counts
