"""Heat maps of a mechanism and of what a remap makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.report.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.counts.geometric import GeometricMechanism
    from quiltwork.counts.remaps.remap import Remap

_LARGEST = 400


def heat_map(mechanism: GeometricMechanism, remap: Remap | None = None) -> Figure:
    """Draw the probabilities of all answers, before and after a remap; needs the `plot` extra.

    Raises:
        InvalidInputError: above n = 400, or if the remap is for another n.
    """
    if mechanism.n > _LARGEST:
        raise InvalidInputError(f"A heat map is readable up to n = {_LARGEST}, not {mechanism.n}.")
    if remap is not None and remap.n != mechanism.n:
        raise InvalidInputError(f"The remap is for n = {remap.n}, not {mechanism.n}.")
    panels = [(f"geometric mechanism, α = {float(mechanism.alpha):.3g}", mechanism.matrix())]
    if remap is not None:
        after = np.zeros_like(panels[0][1])
        np.add.at(after.T, remap.table, panels[0][1].T)
        panels.append((f"remapped for {remap.loss_name} loss", after))
    figure = new_figure(5.2 * len(panels), 4.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    top = max(float(matrix.max()) for _, matrix in panels)
    for axis, (title, matrix) in zip(axes, panels, strict=True):
        image = _panel(axis, title, matrix, top)
    figure.colorbar(image, ax=list(axes), label="probability (colours by its square root)")
    return figure


def _panel(axis: Any, title: str, matrix: Any, top: float) -> Any:
    """Draw one matrix; colours follow the square root, or a faint diagonal would not be seen."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    scale = PowerNorm(0.5, vmin=0, vmax=top)
    image = axis.imshow(matrix, cmap="viridis", norm=scale, interpolation="nearest")
    axis.set(title=title, xlabel="answer", ylabel="count")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(MaxNLocator(integer=True))
    if len(matrix) <= 8:
        for (i, r), value in np.ndenumerate(matrix):
            shade = "black" if scale(value) > 0.5 else "white"
            axis.text(r, i, f"{value:.2g}", ha="center", va="center", color=shade, fontsize=8)
    return image
