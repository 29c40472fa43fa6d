"""Figures of the audit; they need the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.report.plots import COLOURS, new_figure, titled_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.audit.leakage import Leakage
    from quiltwork.audit.odds import Odds


def leakage_figure(found: Leakage) -> Figure:
    """Draw what each protected time point leaks at most."""
    figure, axes = titled_axes(f"Exact leakage: {found.epsilon:.4g}")
    axes.stairs(found.levels, [*(found.starts - 0.5), found.nodes.stop - 0.5], baseline=None)
    axes.axhline(found.epsilon, linestyle=":", color="0.4")
    axes.set(xlabel="time point", ylabel="largest log odds factor", ylim=(0, None))
    return figure


def odds_figure(seen: Odds) -> Figure:
    """Draw prior and posterior of the last state, and how far the odds moved."""
    figure = new_figure()
    above, below = figure.subplots(2, 1, sharex=True)
    for axes in (above, below):
        axes.set_prop_cycle(color=COLOURS)
    above.plot(seen.nodes, seen.prior[:, -1], linestyle=":", label="before")
    above.plot(seen.nodes, seen.posterior[:, -1], label="after")
    above.set(ylabel=f"P({seen.states[-1]!r})", ylim=(0, 1))
    above.legend()
    below.plot(seen.nodes, seen.moved, drawstyle="steps-mid")
    below.set(xlabel="time point", ylabel="log odds factor", ylim=(0, None))
    return figure
