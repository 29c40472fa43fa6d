"""Fitting beliefs with longer memory: several states back, or how long a state has lasted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quiltwork.beliefs import contexts
from quiltwork.beliefs.contexts import MOST_INNER, Remembered
from quiltwork.beliefs.fitting import read_paths, read_smoothing, smoothed_rows, tally_paths
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.hidden import HiddenChain
from quiltwork.beliefs.sources import Sources
from quiltwork.errors import InvalidInputError


def fit_memory(
    sequences: Sequence[Any],
    smoothing: object,
    states: Iterable[Any] | None,
    initial: Any,
    grid: Grid | None,
    order: int,
    durations: bool,
) -> HiddenChain:
    """Fit a chain whose next state depends on more than the last one.

    Raises:
        InvalidInputError: for memory of both kinds, too many contexts, or a start that does not
            say what was before it.
    """
    if durations and order > 1:
        raise InvalidInputError(
            "order and durations are two kinds of memory; ask for one, or give a list of both "
            "beliefs."
        )
    if not (isinstance(initial, str) and initial in ("stationary", "any")):
        raise InvalidInputError(
            "A belief with memory begins with a past, which a distribution of first states does "
            "not tell; use initial='stationary' or 'any'."
        )
    paths, labels = read_paths(sequences, states, grid)
    amount, size = read_smoothing(smoothing), len(labels)
    paths = [path for path in paths if len(path) > order]
    if not paths:
        raise InvalidInputError(
            f"No sequence has more than {order} time points, so none shows what follows {order} "
            "states; use a lower order, or longer sequences."
        )
    if durations:
        kind = contexts.ages(size, contexts.best_cap(paths, size, max(amount, 0.5)))
    else:
        kind = memory_of(size, order)
    plain = smoothed_rows(tally_paths(paths, labels), smoothing)
    rows = contexts.smoothed(contexts.counted(paths, kind)[0], kind, plain, amount)
    if not (rows >= 0).all():
        raise InvalidInputError(
            "Some pasts never occur in the data, so without smoothing nothing is known about what "
            "follows them; use smoothing > 0."
        )
    matrix = contexts.inner_matrix(rows, kind)
    shows = [labels[code] for code in kind.shows.tolist()]
    return HiddenChain(
        matrix, shows, initial, labels, grid=grid, sources=Sources.of(sequences, matrix)
    )


def memory_of(size: int, order: int) -> Remembered:
    """Return the contexts of so many states back.

    Raises:
        InvalidInputError: if there are too many.
    """
    if size**order > MOST_INNER:
        raise InvalidInputError(
            f"{size} states and order {order} make {size**order:,} pasts; at most {MOST_INNER} are "
            "calibrated here. Merge states (wider edges), or use a lower order."
        )
    return contexts.last_states(size, order)
