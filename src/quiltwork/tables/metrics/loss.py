"""Information loss of generalization: NCP and GCP, discernibility, average class size.

The normalized certainty penalty (NCP) of a published value is the share of its column's range that
it covers: (high − low)/(largest − smallest) for numbers, (values − 1)/(all values − 1) for ordered
values and sets, (leaves − 1)/(all leaves − 1) for labels of a hierarchy. GCP is the mean over
cells: 0 for the original table, 1 for a table without information. Suppressed records count as 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from quiltwork.tables.publishing.published_records import PublishedRecords


@dataclass(frozen=True)
class InformationLoss:
    """The information loss of a published table.

    Attributes:
        ncp: column → mean normalized certainty penalty of its cells.
        gcp: the mean over all cells.
        discernibility: Σ size² over groups, plus the number of all rows for each suppressed record.
        average_class_size: records per group.
        relative_class_size: the same divided by the size of the smallest group; 1 is best.
        suppressed: the number of suppressed records.
    """

    ncp: dict[str, float]
    gcp: float
    discernibility: int
    average_class_size: float
    relative_class_size: float
    suppressed: int


def information_loss(
    names: tuple[str, ...],
    widths: NDArray[np.float64],
    sizes: NDArray[np.int64],
    suppressed: int = 0,
) -> InformationLoss:
    """Measure the loss of groups with given widths (group × column, each 0..1) and sizes.

    >>> lost = information_loss(("age",), np.array([[0.5], [0.0]]), np.array([3, 1]))
    >>> lost.gcp, lost.discernibility, lost.average_class_size
    (0.375, 10, 2.0)
    """
    published = int(sizes.sum())
    rows = published + suppressed
    sums = sizes @ widths + suppressed
    ncp = {name: float(total / rows) for name, total in zip(names, sums, strict=True)}
    mean_size = published / len(sizes) if len(sizes) else 0.0
    return InformationLoss(
        ncp=ncp,
        gcp=float(sums.mean() / rows),
        # Python integers: squares of large groups can exceed 64 bits.
        discernibility=int((sizes.astype(object) ** 2).sum()) + suppressed * rows,
        average_class_size=mean_size,
        relative_class_size=mean_size / int(sizes.min()) if len(sizes) else 0.0,
        suppressed=suppressed,
    )


def publication_loss(publication: PublishedRecords) -> InformationLoss:
    """Measure the information loss of a publication."""
    names = publication.source.quasi_identifiers
    widths = publication.boxes.widths
    return information_loss(names, widths, publication.sizes, publication.suppressed)
