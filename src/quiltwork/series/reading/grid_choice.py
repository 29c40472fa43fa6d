"""The grid to read a series on: what the caller asks for, completed by what the belief is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quiltwork.beliefs import Belief
from quiltwork.beliefs.grids import Grid, Rule, differing, duration, read_edges, seconds_of
from quiltwork.beliefs.states import Label, list_states
from quiltwork.errors import InvalidInputError


def asked_grid(
    edges: Sequence[object] | None,
    labels: Sequence[Label] | None,
    states: Sequence[Label] | None,
    every: str | None,
    rule: Rule | None,
) -> Grid:
    """Return the grid that the arguments of `read_series` describe; bins, where there are any, win.

    Raises:
        InvalidInputError: for what cannot be a grid.
    """
    named = labels if labels is not None or edges is not None else states
    return Grid(
        None if every is None else seconds_of(every),
        None if edges is None else read_edges(edges),
        None if named is None else list_states(named),
        rule,
    )


def agreed_grid(asked: Grid, members: Sequence[Belief], *, named: bool, timed: bool) -> Grid:
    """Return the grid to read on, every part of which is known or does not matter.

    Args:
        asked: what the caller asks for.
        members: the beliefs that the series is for.
        named: whether names of bins are given.
        timed: whether there is a time column.

    Raises:
        InvalidInputError: if a belief is about another grid, or the parts do not go together.
    """
    grid = asked
    for belief in members:
        if words := differing(belief.grid, asked):
            raise InvalidInputError(
                f"The belief was made for {words[0]}, and {words[1]} were asked for, about which "
                "it says nothing. Leave that out to read the data on the belief's grid, or fit a "
                "belief on the other."
            )
        grid = grid.completed(belief.grid)
    if named and grid.edges is None:
        raise InvalidInputError("Labels name the bins between edges; give edges as well.")
    if grid.step is not None and not timed:
        raise _no_times(grid.step, asked.step)
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


def _no_times(step: int, asked: int | None) -> InvalidInputError:
    if asked is None:
        return InvalidInputError(
            f"The belief is about steps of {duration(step)}, and without times the records cannot "
            "be put on them; name the time column (--time, or time= of read_series)."
        )
    return InvalidInputError(
        "A regular grid (every) needs the name of the time column (time, --time)."
    )
