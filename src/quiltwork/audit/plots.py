"""Figures of the audit; they need the `plot` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quiltwork.audit.leakage import Leakage
    from quiltwork.audit.odds import Odds


def leakage_figure(found: Leakage) -> Figure:
    """Draw what each protected time point leaks at most."""
    figure = _figure()
    axes = figure.subplots()
    axes.plot(list(found.nodes), found.per_node, drawstyle="steps-mid")
    axes.axhline(found.epsilon, linestyle=":", color="0.4")
    axes.set(xlabel="time point", ylabel="largest log odds factor", ylim=(0, None))
    axes.set_title(f"Exact leakage: {found.epsilon:.4g}")
    return figure


def odds_figure(seen: Odds) -> Figure:
    """Draw prior and posterior of the last state, and how far the odds moved."""
    figure = _figure()
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(seen.nodes, seen.prior[:, -1], linestyle=":", label="before")
    above.plot(seen.nodes, seen.posterior[:, -1], label="after")
    above.set(ylabel=f"P({seen.states[-1]!r})", ylim=(0, 1))
    above.legend()
    below.plot(seen.nodes, seen.moved, drawstyle="steps-mid")
    below.set(xlabel="time point", ylabel="log odds factor", ylim=(0, None))
    return figure


def _figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "Plots need matplotlib; install the extra quiltwork[plot]."
        ) from None
    return Figure(figsize=(7, 4.5), layout="constrained")
