"""Queries that count: one state, all states, pairs of neighbouring states, the commonest state.

One changed point moves a count by at most 1, a histogram by 2 (one cell down, another up) and
transition counts by 2 for every pair of the window that touches the changed points. Cost: one
pass over the data.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.states import Label, list_states, read_label, show_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.queries.query import (
    IntArray,
    Integers,
    Moves,
    Query,
    States,
    as_integers,
    counts_of,
)


@dataclass(frozen=True, kw_only=True)
class Count(Query):
    """How many time points are in one state."""

    kind: ClassVar[str] = "count"
    state: Label

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "state", read_label(self.state, "The state to count"))

    @property
    def moves(self) -> Moves:
        """By one for every point."""
        return Moves(1)

    def check(self, states: States) -> None:
        """Refuse a state that the belief does not know."""
        if self.state not in states:
            raise InvalidInputError(
                f"The state to count, {self.state!r}, is none of the belief's: "
                f"{show_labels(states)}."
            )

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Count the points whose code is that of the state."""
        if self.state not in states:
            return np.zeros(1, dtype=np.int64)
        code = states.index(self.state)
        matches = sum(np.count_nonzero(piece == code) for piece in self.pieces(codes))
        return np.array([matches], dtype=np.int64)

    def cells(self, states: States) -> tuple[Any, ...]:
        """The one state."""
        return (self.state,)

    def present(self, noisy: Integers, states: States, points: int) -> int:
        """One integer."""
        return int(noisy[0])

    def parameters(self) -> dict[str, Any]:
        """The state."""
        return {"state": labels_to_json([self.state])[0]}


@dataclass(frozen=True, kw_only=True)
class OverStates(Query):
    """A query with one or more cells per state.

    `states` names them where the belief does not (rows in `Clusters` can be anything): the cells
    of a release must not depend on which states the data happen to contain. Rows with other values,
    which are encoded as k, are in no cell.
    """

    states: States | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.states is not None:
            object.__setattr__(self, "states", list_states(self.states))

    def check(self, states: States) -> None:
        """Refuse states other than those declared in the query."""
        if self.states is not None and self.states != states:
            raise InvalidInputError(
                f"The query names the states {show_labels(self.states)}, the belief "
                f"{show_labels(states)}; leave them out of the query."
            )

    def cells(self, states: States) -> tuple[Any, ...]:
        """The states."""
        return states

    def states_among(self, cells: tuple[Any, ...]) -> States | None:
        """The states that all cells of an answer are about; None if some may not be among them."""
        return cells

    def parameters(self) -> dict[str, Any]:
        """The declared states, if any."""
        return {} if self.states is None else {"states": labels_to_json(self.states)}


@dataclass(frozen=True, kw_only=True)
class Histogram(OverStates):
    """How many time points are in each state."""

    kind: ClassVar[str] = "histogram"

    @property
    def moves(self) -> Moves:
        """A point leaves one state for another."""
        return Moves(2)

    @property
    def moves_squared(self) -> int:
        """One cell falls by 1 and another rises by 1."""
        return 2

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Count every code."""
        return np.asarray(sum(counts_of(one, len(states)) for one in self.pieces(codes)))

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """One integer per state."""
        return as_integers(noisy)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Every point is in one cell."""
        return Fraction(points)


@dataclass(frozen=True, kw_only=True)
class Frequencies(Histogram):
    """The share of time points in each state: the histogram divided by the public length."""

    kind: ClassVar[str] = "frequencies"

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Multiples of 1/points."""
        return Fraction(0), Fraction(1, points)

    def divisor(self, points: int) -> int:
        """Counts are divided by the number of points."""
        return points

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """One share per state."""
        return np.array([float(Fraction(int(m), points)) for m in noisy])

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Shares add up to 1."""
        return Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Transitions(OverStates):
    """How often each state follows each, as a matrix: row = from, column = to."""

    kind: ClassVar[str] = "transitions"

    @property
    def moves(self) -> Moves:
        """A pair leaves one cell for another."""
        return Moves(0, pair=2)

    @property
    def moves_squared(self) -> int:
        """Two pairs leave one cell, at most, for one each: 2² + 1 + 1."""
        return 6

    def states_among(self, cells: tuple[Any, ...]) -> States:
        """Where pairs come from."""
        return tuple(dict.fromkeys(one for one, _ in cells))

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Count every pair of neighbours with both ends in the window."""
        size, found = len(states), np.zeros(len(states) ** 2, dtype=np.int64)
        for part in self.pieces(codes, overlap=1):
            known = np.maximum(part[:-1], part[1:]) < size
            found += counts_of((part[:-1] * size + part[1:])[known], size * size)
        return found

    def cells(self, states: States) -> tuple[Any, ...]:
        """All (from, to) pairs, row by row."""
        return tuple(product(states, repeat=2))

    def present(self, noisy: Integers, states: States, points: int) -> IntArray:
        """A square matrix."""
        return as_integers(noisy).reshape(len(states), len(states))

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Every point but the last of a subject begins one pair."""
        return Fraction(points - subjects)


@dataclass(frozen=True, kw_only=True)
class Top(Histogram):
    """The `k` states with the largest noisy counts, the largest first, with these counts.

    Noise is added to the count of every state, which states come out is computed from noisy counts
    alone. `among` is the number of states, known when the query is planned.
    """

    kind: ClassVar[str] = "top"
    k: int
    among: int | None = None

    def states_among(self, cells: tuple[Any, ...]) -> None:
        """Only those that came out are released."""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer(self.k, "k", 1)

    def check(self, states: States) -> None:
        """Refuse more states than there are."""
        super().check(states)
        if self.k > len(states):
            raise InvalidInputError(f"k is {self.k}, and there are {len(states)} states.")

    @property
    def chosen_among(self) -> int | None:
        """All states."""
        return self.among

    def chosen(
        self, noisy: tuple[int, ...], cells: tuple[Any, ...]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The largest noisy counts; of equal ones those of earlier states."""
        order = sorted(range(len(noisy)), key=lambda place: -noisy[place])[: self.k]
        return tuple(noisy[place] for place in order), tuple(cells[place] for place in order)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Nothing is known about the sum of some."""
        return None

    def parameters(self) -> dict[str, Any]:
        """The states declared, if any, and how many are shown of how many."""
        return {**super().parameters(), "k": self.k, "among": self.among}


@dataclass(frozen=True, kw_only=True)
class MostCommon(OverStates):
    """The state with the most time points, chosen by the exponential mechanism.

    P(s) ∝ e^(count(s)/scale): n changed points move log P(s) by at most 2n/scale, so `change`
    is 2n and calibration is that of a histogram.
    """

    kind: ClassVar[str] = "most_common"
    mechanism: ClassVar[str] = "exponential"

    @property
    def moves(self) -> Moves:
        """A point leaves one state for another."""
        return Moves(2)

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """The counts that the mechanism weighs."""
        return np.asarray(sum(counts_of(one, len(states)) for one in self.pieces(codes)))

    def present(self, noisy: Integers, states: States, points: int) -> Label:
        """The state whose index was drawn."""
        return states[int(noisy[0])]
