"""Transition counts of one or many sequences, and the smoothed maximum-likelihood matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.sequences import factorize_labels, position_of
from quiltwork.beliefs.states import Label, distinct_labels, show_labels, sorted_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import to_fraction

_LARGEST_SMOOTHING = 10**9
_MOST_STATES = 1000


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """The sufficient statistics of a fit: counts of transitions and of first states."""

    transitions: IntArray
    starts: IntArray
    states: tuple[Label, ...]


def count_transitions(
    sequences: Sequence[Any], states: Iterable[Any] | None, grid: Grid | None
) -> TransitionCounts:
    """Return transition counts within each sequence, none across. O(total length + k²).

    Without `states` they are those of the grid, then the labels that occur, sorted; None in the
    data is refused if it is not declared, since it may be a gap.
    """
    return count_path_transitions(*encode_paths(sequences, states, grid))


def count_path_transitions(
    paths: Sequence[IntArray], labels: tuple[Label, ...]
) -> TransitionCounts:
    """Return transition counts within each path of state indices."""
    size = len(labels)
    transitions = np.zeros(size * size, dtype=np.int64)
    starts = np.zeros(size, dtype=np.int64)
    for path in paths:
        transitions += np.bincount(path[:-1] * size + path[1:], minlength=size * size)
        starts[path[0]] += 1
    return TransitionCounts(transitions.reshape(size, size), starts, labels)


def encode_paths(
    sequences: Sequence[Any], states: Iterable[Any] | None, grid: Grid | None
) -> tuple[list[IntArray], tuple[Label, ...]]:
    """Return the sequences as state indices, and the states; see `count_transitions`."""
    pieces = [_factorize(piece, where) for where, piece in _numbered(sequences)]
    public = () if grid is None or grid.labels is None else grid.labels
    labels = _occurring_labels(pieces, public) if states is None else distinct_labels(states)
    if len(labels) > _MOST_STATES:
        raise InvalidInputError(
            f"The data have {len(labels):,} different states, and a belief about more than "
            f"{_MOST_STATES:,} is not fitted; turn numbers into a few bins by public edges "
            "(--edges), or merge states."
        )
    index = {label: i for i, label in enumerate(labels)}
    paths = []
    for where, codes, distinct in pieces:
        translation = np.array([index.get(label, -1) for label in distinct], dtype=np.int64)
        if (translation < 0).any():
            unknown = int(np.argmax(translation < 0))
            raise InvalidInputError(
                f"{where}Position {position_of(codes, unknown)} holds none of the states "
                f"{show_labels(labels)}; add what it holds to states, or drop it."
            )
        paths.append(translation[codes])
    return paths, labels


def _numbered(sequences: Sequence[Any]) -> list[tuple[str, Any]]:
    if len(sequences) == 1:
        return [("", sequences[0])]
    return [(f"Sequence {i}: ", piece) for i, piece in enumerate(sequences, start=1)]


def _factorize(piece: Any, where: str) -> tuple[str, IntArray, tuple[Label, ...]]:
    try:
        return where, *factorize_labels(piece)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}{error}") from None


def _occurring_labels(
    pieces: list[tuple[str, IntArray, tuple[Label, ...]]], public: tuple[Label, ...]
) -> tuple[Label, ...]:
    for where, codes, distinct in pieces:
        if None in distinct and None not in public:
            position = position_of(codes, distinct.index(None))
            raise InvalidInputError(
                f"{where}Position {position} holds None. If missing values are a state of their "
                "own, list None in states; otherwise fill or drop them."
            )
    labels = {label for _, _, distinct in pieces for label in distinct}
    return public + sorted_labels(labels.difference(public))


def smoothed_rows(counted: TransitionCounts, smoothing: object) -> FloatArray:
    """Return (count + smoothing)/(row total + k·smoothing); a row never left becomes uniform."""
    amount = parse_smoothing(smoothing)
    weights = counted.transitions + amount
    totals = weights.sum(axis=1, keepdims=True)
    for row in np.flatnonzero(totals == 0)[:1]:
        raise InvalidInputError(
            f"State {row + 1} of {len(totals)}, in their order, is never left in the data, so "
            "without smoothing nothing is known about what follows it; use smoothing > 0, or "
            "ChainBox.fit, which keeps such a row open."
        )
    return np.asarray(weights / totals)


def smoothed_start(counted: TransitionCounts, smoothing: object) -> FloatArray:
    """Return the smoothed frequencies of the first states."""
    weights = counted.starts + parse_smoothing(smoothing)
    return np.asarray(weights / weights.sum())


def parse_smoothing(smoothing: object) -> float:
    """Return the smoothing constant, which is added to counts."""
    amount = to_fraction(smoothing, "smoothing")
    if not 0 <= amount <= _LARGEST_SMOOTHING:
        raise InvalidInputError(
            f"smoothing must be from 0 to {_LARGEST_SMOOTHING}, not {smoothing!r}; 0.5 is usual."
        )
    return float(amount)
