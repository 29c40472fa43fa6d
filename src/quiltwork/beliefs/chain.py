"""`MarkovChain` and `HiddenChain`: time-homogeneous chains as beliefs, seen whole or in part.

Construction of a `MarkovChain` validates and costs O(k²) (O(k³ log k) with zero entries and a
stationary start); everything else is computed on first use and cached. Periodic, reducible and
absorbing chains are valid; each property documents its value for them.

A `HiddenChain` has inner states, each of which shows one of the states in the data. Memory of
several steps, the duration of a stay and hidden Markov models all have this form. Queries, secrets
and labels are about shown states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.arguments import flag, hashable, listed
from quiltwork.beliefs import contexts, evolution, structure
from quiltwork.beliefs import stationary as _stationary
from quiltwork.beliefs.belief import Initial, SimulatedBelief, parse_stored_field
from quiltwork.beliefs.gaps import recorded_runs
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
from quiltwork.beliefs.origins import grid_of
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, distinct_labels, parse_states, show_labels
from quiltwork.beliefs.transition_counts import count_transitions, smoothed_rows, smoothed_start
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, counted, integer

_WRITTEN = ("transition", "shows", "initial", "states", "grid", "sources")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MarkovChain(SimulatedBelief):
    """A chain with a known transition matrix, started from `initial`.

    Args:
        transition: k×k, row x the distribution of the state after x; rows sum to 1 within 1e-9
            and are divided by their sum unless that is within 2⁻⁵⁰ of 1.
        initial: the distribution of X_1, or "stationary", or "any" for every distribution.
        states: one label per row; 0..k−1 if not given.
        grid: the step and binning of the data, to be checked against them.
        sources: where the data of a fit came from; `fit` sets it.

    Raises:
        InvalidInputError: naming the row or label that is wrong, or for a stationary start where
            the stationary distribution is not unique.

    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> chain
    MarkovChain(2 states: 'rest', 'walk'; initial='stationary')
    >>> chain.stationary
    array([0.8, 0.2])
    """

    transition: FloatArray
    initial: Initial
    states: tuple[Label, ...]
    grid: Grid | None
    sources: Sources
    schema = "belief/markov-chain"

    def __init__(
        self,
        transition: ArrayLike,
        initial: ArrayLike | Literal["stationary", "any"] = "stationary",
        states: Iterable[Any] | None = None,
        *,
        grid: Grid | None = None,
        sources: Sources = NO_SOURCES,
    ) -> None:
        matrix = parse_stochastic(transition, "transition")
        self.__setstate__(
            (
                matrix,
                parse_initial(initial, len(matrix)),
                parse_states(states, len(matrix)),
                parse_grid(grid),
                sources,
            )
        )
        if isinstance(self.initial, str) and self.initial == "stationary":
            _ = self.recurrent_class

    @overload
    @classmethod
    def fit(
        cls,
        sequences: Any,
        smoothing: Number = 0.5,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["stationary", "any", "empirical"] = "stationary",
        grid: Grid | None = None,
    ) -> MarkovChain: ...

    @overload
    @classmethod
    def fit(
        cls,
        sequences: Any,
        smoothing: Number = 0.5,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["stationary", "any", "empirical"] = "stationary",
        grid: Grid | None = None,
        *,
        order: int = 1,
        durations: bool = False,
    ) -> MarkovChain | HiddenChain: ...

    @classmethod
    def fit(
        cls,
        sequences: Any,
        smoothing: Number = 0.5,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["stationary", "any", "empirical"] = "stationary",
        grid: Grid | None = None,
        *,
        order: int = 1,
        durations: bool = False,
    ) -> MarkovChain | HiddenChain:
        """Return the chain fitted to one sequence or many by smoothed maximum likelihood.

        Never fit on the data to be released: the noise scale would then depend on them. The chain
        records where its sequences came from, so that such a release warns (`fitted_on`).
        O(T + k²).

        Args:
            sequences: one sequence of labels, or a dict or list of sequences (a list whose items
                are all lists, arrays or series; tuples and text are labels). Transitions are
                counted within sequences only.
            smoothing: added to every transition count. A state that is never left gets a uniform
                row; with smoothing 0 it is refused.
            states: the states; by default those of the grid, else the labels that occur, sorted.
            initial: as in the constructor, or "empirical" for the smoothed frequencies of the
                sequences' first states.
            grid: the step and binning of the data; `read_series` records it with what it reads.
            order: the number of past states on which the next one depends; above one the result is
                a `HiddenChain` about the same states.
            durations: whether the next state depends on how long the state has lasted, up to a cap
                chosen by held-out likelihood; the result is a `HiddenChain` too.

        Raises:
            InvalidInputError: naming the sequence and position that cannot be read.

        >>> MarkovChain.fit([0, 1, 1, 0, 0, 1], smoothing=0.5).transition
        array([[0.375, 0.625],
               [0.5  , 0.5  ]])
        """
        pieces = split_sequences(sequences)
        data_grid, runs = grid_of(pieces, grid), recorded_runs(pieces)
        if flag(durations, "durations") or integer(order, "order", 1) > 1:
            begins = contexts.parse_memory_start(initial)
            fitted = contexts.fit_memory(runs, smoothing, states, data_grid, order, durations)
            return HiddenChain(
                fitted.transition,
                fitted.shows,
                begins,
                fitted.states,
                grid=data_grid,
                sources=Sources.of(pieces, fitted.transition),
            )
        counts = count_transitions(runs, states, data_grid)
        rows = smoothed_rows(counts, smoothing)
        if isinstance(initial, str) and initial == "empirical":
            initial = smoothed_start(counts, smoothing)
        sources = Sources.of(pieces, rows)
        return cls(rows, initial, counts.states, grid=data_grid, sources=sources)

    @cached_property
    def possible(self) -> BoolArray:
        """Which transitions have positive probability."""
        return frozen(self.transition > 0)

    @cached_property
    def recurrent_classes(self) -> tuple[IntArray, ...]:
        """The closed communicating classes, as sorted state indices. O(k³ log k)."""
        return tuple(frozen(states) for states in structure.recurrent_classes(self.possible))

    @cached_property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return len(self.recurrent_classes[0]) == self.size

    @cached_property
    def period(self) -> int:
        """The period of the recurrent part: the least common multiple over its classes.

        1 for absorbing chains; transient states do not matter.
        """
        blocks = (self.possible[np.ix_(states, states)] for states in self.recurrent_classes)
        return int(np.lcm.reduce([structure.class_period(block) for block in blocks]))

    @property
    def is_aperiodic(self) -> bool:
        """Whether `period` is 1."""
        return self.period == 1

    @property
    def absorbing_states(self) -> tuple[Label, ...]:
        """The labels of the states that are never left."""
        stays = self.possible.sum(axis=1) == 1
        return tuple(self.states[x] for x in np.flatnonzero(stays & self.possible.diagonal()))

    @cached_property
    def recurrent_class(self) -> IntArray:
        """The only closed class, as sorted state indices.

        Raises:
            InvalidInputError: if there are several.
        """
        classes = self.recurrent_classes
        if len(classes) > 1:
            groups = " and ".join(
                "{" + show_labels(tuple(self.states[x] for x in members)) + "}"
                for members in classes[:2]
            )
            raise InvalidInputError(
                f"This chain has {len(classes)} recurrent classes (it never leaves {groups}), so "
                "its stationary distribution is not unique; give initial= a distribution or 'any'."
            )
        return classes[0]

    @cached_property
    def stationary(self) -> FloatArray:
        """The distribution π = πP; 0 on transient states. O(k³), by GTH elimination.

        A periodic chain has one too, although its marginals need not approach it.

        Theorem: docs/theory/stationary-distribution.md

        Raises:
            InvalidInputError: if there are several recurrent classes, hence many such π.
        """
        recurrent = self.recurrent_class
        result = np.zeros(self.size)
        block = self.transition[np.ix_(recurrent, recurrent)]
        result[recurrent] = _stationary.irreducible_stationary(block)
        return frozen(result)

    @cached_property
    def second_singular_value(self) -> float:
        """An upper bound on σ₂ of D^½·P·D^−½, D = diag(π); 1.0 for reducible chains. O(k³).

        ‖P^n f‖ ≤ σ₂^n·‖f‖ in L²(π) for every f of mean 0, reversible or not.

        Theorem: docs/theory/stationary-distribution.md
        """
        if not self.is_irreducible:
            return 1.0
        return _stationary.second_singular_value(self.transition, self.stationary)

    @property
    def eigengap(self) -> float:
        """The eigen-gap of P·P*, rounded down; 0.0 for reducible and for periodic chains.

        Exactly one eigenvalue 1 is dropped, so a repeated eigenvalue 1 gives 0.

        Theorem: docs/theory/stationary-distribution.md
        """
        sigma = self.second_singular_value
        gap = (1 - sigma) * (1 + sigma)
        return max(0.0, math.nextafter(math.nextafter(gap, -1), -1))

    @cached_property
    def is_reversible(self) -> bool:
        """Whether π(x)·P(x, y) = π(y)·P(y, x) up to a relative 1e-9; False if reducible."""
        if not self.is_irreducible:
            return False
        flow = self.stationary[:, np.newaxis] * self.transition
        return bool(np.allclose(flow, flow.T, rtol=1e-9, atol=0.0))

    @property
    def start(self) -> FloatArray:
        """The distribution of X_1 as an array; `UnsupportedError` for "any"."""
        return start_distribution(self.initial, lambda: self.stationary)

    def reversed(self) -> MarkovChain:
        """Return the stationary chain run backwards: P*(x, y) = π(y)·P(y, x)/π(x). O(k³).

        Raises:
            UnsupportedError: for reducible chains, where a transient state has no reversal.
        """
        if not self.is_irreducible:
            raise UnsupportedError(
                "Only an irreducible chain has a time reversal, and some states of this one are "
                "never reached again. Restrict the chain to one recurrent class."
            )
        backwards = _stationary.time_reversal(self.transition, self.stationary)
        return MarkovChain(backwards, states=self.states, grid=self.grid, sources=self.sources)

    def marginal(self, t: int) -> FloatArray:
        """Return the distribution of X_t, t = 1 being the start. O(k²·t), at most O(k³ log t).

        Raises:
            UnsupportedError: for initial="any".
        """
        steps = integer(t, "t", 1) - 1
        if isinstance(self.initial, str) and self.initial == "stationary":
            return self.stationary
        return frozen(evolution.evolve(self.start, self.transition, steps))

    def support(self, t: int) -> BoolArray:
        """Return which states X_t can take, by boolean powers; for "any", from some start.

        Cost: O(k²·t), at most O(k³ log t).
        """
        steps = integer(t, "t", 1) - 1
        if not isinstance(self.initial, str):
            return frozen(structure.reach_in_steps(self.initial > 0, self.possible, steps))
        if self.initial == "any":
            everywhere = np.ones(self.size, dtype=np.bool_)
            return frozen(structure.reach_in_steps(everywhere, self.possible, steps))
        recurrent = np.zeros(self.size, dtype=np.bool_)
        recurrent[self.recurrent_class] = True
        return frozen(recurrent)

    def allows(self, codes: IntArray) -> bool:
        """Return whether a path of state indices has positive probability. O(length)."""
        return bool(self.support(1)[codes[0]] and self.possible[codes[:-1], codes[1:]].all())

    def _simulated(self, steps: int, seed: int | None) -> IntArray:
        return evolution.simulate(self.start, self.transition, steps, seed)

    def summary(self) -> str:
        """Return states, start and grid in words."""
        return self._summarized("a Markov chain", initial=self.initial)

    def __repr__(self) -> str:
        """Return states, start and grid, without the matrix."""
        return f"{self._words('', self.initial)})"


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

    def summary(self) -> str:
        """Return states, number of inner states, start and grid in words."""
        memory = f" with longer memory ({counted(self.inner.size, 'inner state')})"
        return self._summarized("a chain", memory, self.initial)

    def __repr__(self) -> str:
        """Return states, number of inner states, start and grid."""
        memory = f"; {self.inner.size} inner states for longer memory"
        return f"{self._words(memory, self.initial)})"


def start_distribution(initial: Initial, settled: Callable[[], FloatArray]) -> FloatArray:
    """Return the distribution of the first state; UnsupportedError for "any"."""
    if not isinstance(initial, str):
        return initial
    if initial == "stationary":
        return settled()
    raise UnsupportedError(
        "initial='any' stands for every initial distribution, so there is no single one to use; "
        "give initial= an array or 'stationary'."
    )


def parse_initial(initial: Any, size: int) -> Initial:
    """Return an argument `initial`: a distribution, "stationary" or "any"."""
    if isinstance(initial, str):
        if initial == "stationary":
            return "stationary"
        if initial == "any":
            return "any"
        raise InvalidInputError(
            f"initial must be a distribution, 'stationary' or 'any', not {initial!r}."
        )
    return parse_distribution(initial, size, "initial")
