"""Heat maps of a mechanism and of what a remap makes of it, as charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.report.charts import MatrixChart

if TYPE_CHECKING:
    from quiltwork.counts.geometric import GeometricMechanism
    from quiltwork.counts.remaps.remap import Remap

_LARGEST = 400
_LARGEST_WRITTEN = 8


def heat_maps(mechanism: GeometricMechanism, remap: Remap | None = None) -> tuple[MatrixChart, ...]:
    """Return the probabilities of all answers, before and after a remap.

    Raises:
        InvalidInputError: above n = 400, or if the remap is for another n.
    """
    if mechanism.n > _LARGEST:
        raise InvalidInputError(f"A heat map is readable up to n = {_LARGEST}, not {mechanism.n}.")
    if remap is not None and remap.n != mechanism.n:
        raise InvalidInputError(f"The remap is for n = {remap.n}, not {mechanism.n}.")
    before = mechanism.matrix()
    first = _heat_map(f"geometric mechanism, α = {float(mechanism.alpha):.3g}", before)
    if remap is None:
        return (first,)
    after = np.zeros_like(before)
    np.add.at(after.T, remap.table, before.T)
    return first, _heat_map(f"remapped for {remap.loss_name} loss", after)


def _heat_map(title: str, matrix: Any) -> MatrixChart:
    """Return one matrix; shades follow the square root, or a faint diagonal would not be seen."""
    names = tuple(map(str, range(len(matrix))))
    written = matrix.tolist() if len(matrix) <= _LARGEST_WRITTEN else []
    return MatrixChart(
        title,
        "The darker, the likelier the answer (shades by the square root of the probability).",
        "count",
        "answer",
        names,
        names,
        tuple(map(tuple, np.sqrt(matrix).tolist())),
        tuple(tuple(f"{value:.2g}" for value in row) for row in written),
    )
