"""Public bins, which turn numbers into states, and the grid on which a series is read.

Edges e_1 < … < e_m make the m+1 states below e_1, from e_i up to but not including e_{i+1}, and
from e_m on. They are public: chosen without looking at the protected data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief
from quiltwork.beliefs.grids import (
    Grid,
    Rule,
    check_labels,
    duration,
    grid_difference,
    parse_duration,
    parse_edges,
)
from quiltwork.beliefs.states import Label, distinct_labels
from quiltwork.errors import InvalidInputError
from quiltwork.wording import argument


@dataclass(frozen=True)
class Bins:
    """Public edges and the labels of the states between them.

    >>> bins = Bins.at([0.5, 2])
    >>> bins.labels
    ('<0.5', '0.5..2', '>=2')
    >>> bins.codes(np.array([0.1, 0.5, 7.0])).tolist()
    [0, 1, 2]
    """

    edges: tuple[float, ...]
    labels: tuple[Label, ...]

    @classmethod
    def at(cls, edges: Sequence[object], labels: Sequence[Label] | None = None) -> Bins:
        """Build bins from increasing finite edges; one label more than edges.

        Raises:
            InvalidInputError: if edges are missing, not increasing or not finite, or labels do
                not fit.
        """
        numbers = parse_edges(edges)
        names = _interval_names(numbers) if labels is None else distinct_labels(labels)
        check_labels(numbers, names)
        return cls(numbers, names)

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the state of each value as 0..m; NaN must be removed before."""
        return np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)


def _interval_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    shown = [f"{edge:g}" for edge in edges]
    if len(set(shown)) < len(shown):
        shown = [repr(edge) for edge in edges]
    inner = [f"{a}..{b}" for a, b in pairwise(shown)]
    return (f"<{shown[0]}", *inner, f">={shown[-1]}")


def requested_grid(
    edges: Sequence[object] | None,
    labels: Sequence[Label] | None,
    states: Sequence[Label] | None,
    every: str | None,
    rule: Rule | None,
) -> Grid:
    """Return the grid that the arguments of `read_series` describe; bins win over states."""
    names = labels if labels is not None or edges is not None else states
    return Grid(
        None if every is None else parse_duration(every),
        None if edges is None else parse_edges(edges),
        None if names is None else distinct_labels(names),
        rule,
    )


def agreed_grid(requested: Grid, members: Sequence[Belief], *, named: bool, timed: bool) -> Grid:
    """Return the grid to read on: the requested grid, completed by those of the beliefs.

    Args:
        requested: the grid of the caller's arguments.
        members: the beliefs that the series is for.
        named: whether names of bins are given.
        timed: whether there is a time column.
    """
    grid = requested
    for belief in members:
        if words := grid_difference(belief.grid, requested):
            raise InvalidInputError(
                f"The belief was made for {words[0]}, and {words[1]} were asked for, about which "
                "it says nothing. Leave that out to read the data on the belief's grid, or fit a "
                "belief on the other."
            )
        grid = grid.completed(belief.grid)
    if named and grid.edges is None:
        raise InvalidInputError("Labels name the bins between edges; give edges as well.")
    if grid.step is not None and not timed:
        raise _no_times(grid.step, requested.step)
    if grid.step is None:
        return replace(grid, rule=None)
    if grid.edges is not None:
        return replace(grid, rule=grid.rule or "mean")
    if grid.rule not in (None, "mean", "last"):
        raise InvalidInputError(
            f"The rule {grid.rule!r} needs numbers; without edges, the last label of a step is "
            "taken."
        )
    return replace(grid, rule=None)


def _no_times(step: int, requested: int | None) -> InvalidInputError:
    if requested is None:
        return InvalidInputError(
            f"The belief is about steps of {duration(step)}, and without times the records cannot "
            f"be assigned to steps; name the time column, {argument('time')}."
        )
    return InvalidInputError(
        "A regular grid (every) needs the name of the time column (time, --time)."
    )
