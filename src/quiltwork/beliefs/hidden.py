"""`HiddenChain`: a chain of inner states of which the data show a function.

Memory of several steps, the duration of a stay and hidden Markov models all have this form: each
inner state shows one of the states in the data. Queries, secrets and labels are about shown states.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.arguments import hashable, listed
from quiltwork.beliefs import evolution
from quiltwork.beliefs.belief import Initial, SimulatedBelief, parse_stored_field
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.grids import Grid, parse_grid
from quiltwork.beliefs.matrices import (
    BoolArray,
    FloatArray,
    IntArray,
    frozen,
    parse_distribution,
    parse_numbers,
    parse_stochastic,
)
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, distinct_labels, parse_states, show_labels
from quiltwork.errors import InvalidInputError

_WRITTEN = ("transition", "shows", "initial", "states", "grid", "sources")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class HiddenChain(SimulatedBelief):
    """A chain of inner states, each of which shows one state.

    Args:
        transition: n×n, row x the distribution of the inner state after x.
        shows: the label that each inner state shows.
        initial: the distribution of the first inner state, or "stationary", or "any".
        states: the labels in order; by default in the order of `shows`.
        grid: the step and binning of the data, to be checked against them.
        sources: where the data of a fit came from; `MarkovChain.fit` sets it.

    Raises:
        InvalidInputError: naming the row or label that is wrong.

    >>> naps = HiddenChain(
    ...     [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.3, 0.0, 0.7]], ["awake", "asleep", "asleep"]
    ... )
    >>> naps
    HiddenChain(2 states: 'awake', 'asleep'; 3 inner states for longer memory; initial='stationary')
    >>> naps.marginal(1).round(3)
    array([0.652, 0.348])
    """

    inner: MarkovChain
    shown: IntArray
    states: tuple[Label, ...]
    grid: Grid | None
    sources: Sources
    schema = "belief/hidden-chain"

    def __init__(
        self,
        transition: ArrayLike,
        shows: Iterable[Any],
        initial: ArrayLike | Literal["stationary", "any"] = "stationary",
        states: Iterable[Any] | None = None,
        *,
        grid: Grid | None = None,
        sources: Sources = NO_SOURCES,
    ) -> None:
        inner = MarkovChain(transition, initial)
        labels = listed(shows, "shows")
        for place, label in enumerate(labels, start=1):
            if not hashable(label):
                raise InvalidInputError(
                    f"Inner state {place} shows a value that cannot be a label."
                )
        state_labels = distinct_labels(list(dict.fromkeys(labels)) if states is None else states)
        if len(labels) != inner.size:
            raise InvalidInputError(
                f"shows has {len(labels)} labels for {inner.size} inner states; give one for each."
            )
        index = {label: place for place, label in enumerate(state_labels)}
        for place, label in enumerate(labels, start=1):
            if label not in index:
                raise InvalidInputError(
                    f"Inner state {place} shows {label!r}, which is none of the states "
                    f"{show_labels(state_labels)}."
                )
        shown = np.array([index[label] for label in labels], dtype=np.int64)
        self.__setstate__((inner, shown, state_labels, parse_grid(grid), sources))

    @classmethod
    def from_emissions(
        cls,
        transition: ArrayLike,
        emissions: ArrayLike,
        initial: ArrayLike | Literal["stationary", "any"] = "stationary",
        states: Iterable[Any] | None = None,
        *,
        grid: Grid | None = None,
    ) -> HiddenChain:
        """Return a hidden Markov model; row h of `emissions` is the distribution shown by state h.

        Inner states are pairs of a hidden state and a shown state, n·k of them.

        >>> HiddenChain.from_emissions([[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]])
        HiddenChain(2 states: 0, 1; 4 inner states for longer memory; initial='stationary')
        """
        steps = parse_stochastic(transition, "transition")
        shares = parse_numbers(emissions, "emissions", dimensions=2)
        hidden, size = shares.shape
        if hidden != len(steps):
            raise InvalidInputError(
                f"emissions has {hidden} rows for {len(steps)} hidden states; give one for each."
            )
        rows = [
            parse_distribution(row, size, f"Row {place} of emissions")
            for place, row in enumerate(shares, start=1)
        ]
        labels, emitted = parse_states(states, size), np.array(rows)
        matrix = np.repeat((steps[:, :, np.newaxis] * emitted).reshape(hidden, -1), size, axis=0)
        possible = np.flatnonzero(emitted.ravel() > 0)
        if not isinstance(initial, str):
            begin = parse_distribution(initial, hidden, "initial")
            initial = (begin[:, np.newaxis] * emitted).ravel()[possible]
        shows = [labels[pair % size] for pair in possible.tolist()]
        return cls(matrix[np.ix_(possible, possible)], shows, initial, labels, grid=grid)

    @property
    def initial(self) -> Initial:
        """The distribution of the first inner state, "stationary" or "any"."""
        return self.inner.initial

    def marginal(self, t: int) -> FloatArray:
        """Return the distribution of the shown state at node t.

        Raises:
            UnsupportedError: for initial="any".
        """
        return frozen(self._summed(self.inner.marginal(t)))

    def support(self, t: int) -> BoolArray:
        """Return the possible shown states at node t."""
        return frozen(self._summed(self.inner.support(t).astype(np.float64)) > 0)

    def _summed(self, inner: FloatArray) -> FloatArray:
        return np.asarray(
            np.bincount(self.shown, weights=inner, minlength=self.size), dtype=np.float64
        )

    def allows(self, codes: IntArray) -> bool:
        """Return whether a path of shown states has positive probability. O(length·n²)."""
        able = self.inner.support(1) & (self.shown == codes[0])
        for code in codes[1:].tolist():
            if not able.any():
                return False
            able = self.inner.possible[able].any(axis=0) & (self.shown == code)
        return bool(able.any())

    def _simulated(self, steps: int, seed: int | None) -> IntArray:
        inner = evolution.simulate(self.inner.start, self.inner.transition, steps, seed)
        return np.asarray(self.shown[inner])

    def _written(self) -> dict[str, Any]:
        fields = {**self.inner._written(), **super()._written(), "shows": self.shown.tolist()}
        return {name: fields[name] for name in _WRITTEN}

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        fields = {name: parse_stored_field(document, name) for name in _WRITTEN}
        shows, states = fields["shows"], fields["states"]
        if not isinstance(shows, list) or not all(
            type(code) is int and 0 <= code < len(states) for code in shows
        ):
            raise InvalidInputError(
                "shows must be a list of positions in states, from 0; the document may have been "
                "edited."
            )
        return {**fields, "shows": [states[code] for code in shows]}

    def __repr__(self) -> str:
        """Return states, number of inner states, start and grid."""
        memory = f"; {self.inner.size} inner states for longer memory"
        return f"{self._words(memory, self.initial)})"
