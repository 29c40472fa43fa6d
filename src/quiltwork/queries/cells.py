"""Counting queries: one state, a histogram, transition counts, the most common states.

The L1 sensitivity to one time point is 1 for a count, 2 for a histogram (one cell down, another
up) and 2 per pair of the window that contains the point for transition counts. Cost: one pass
over the data.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.states import Label, distinct_labels, parse_label, show_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.queries.query import (
    IntArray,
    Integers,
    Query,
    Sensitivity,
    States,
    as_integers,
    counts_of,
)


@dataclass(frozen=True, kw_only=True)
class Count(Query):
    """The number of time points in one state."""

    kind: ClassVar[str] = "count"
    state: Label

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "state", parse_label(self.state, "The state to count"))

    @property
    def sensitivity(self) -> Sensitivity:
        """1 per time point."""
        return Sensitivity(1)

    def check(self, states: States) -> None:
        """Raise InvalidInputError for a state that is not the belief's."""
        if self.state not in states:
            raise InvalidInputError(
                f"The state to count, {self.state!r}, is not a state of the belief; its states "
                f"are {show_labels(states)}."
            )

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the number of points with the code of the state."""
        if self.state not in states:
            return np.zeros(1, dtype=np.int64)
        code = states.index(self.state)
        matches = sum(np.count_nonzero(piece == code) for piece in self.pieces(codes))
        return np.array([matches], dtype=np.int64)

    def cells(self, states: States) -> tuple[Any, ...]:
        """The state."""
        return (self.state,)

    def present(self, noisy: Integers, states: States, points: int) -> int:
        """Return the integer."""
        return int(noisy[0])

    def parameters(self) -> dict[str, Any]:
        """The state."""
        return {"state": labels_to_json([self.state])[0]}


@dataclass(frozen=True, kw_only=True)
class OverStates(Query):
    """A query with one or more cells per state.

    `states` lists the states where the belief has none (rows in `Clusters` can hold anything): the
    cells of a release must not depend on which states occur in the data. Rows with other values
    are encoded as k and counted in no cell.
    """

    states: States | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.states is not None:
            object.__setattr__(self, "states", distinct_labels(self.states))

    def check(self, states: States) -> None:
        """Raise InvalidInputError for states other than those declared in the query."""
        if self.states is not None and self.states != states:
            raise InvalidInputError(
                f"The query names the states {show_labels(self.states)}, the belief "
                f"{show_labels(states)}; leave them out of the query."
            )

    def cells(self, states: States) -> tuple[Any, ...]:
        """The states."""
        return states

    def states_among(self, cells: tuple[Any, ...]) -> States | None:
        """Return the states behind the cells of an answer; None if not all are among the cells."""
        return cells

    def parameters(self) -> dict[str, Any]:
        """Return the declared states, if any."""
        return {} if self.states is None else {"states": labels_to_json(self.states)}


@dataclass(frozen=True, kw_only=True)
class Histogram(OverStates):
    """The number of time points in each state."""

    kind: ClassVar[str] = "histogram"

    @property
    def sensitivity(self) -> Sensitivity:
        """2 per time point: one cell falls by 1, another rises by 1."""
        return Sensitivity(2)

    @property
    def squared_l2_sensitivity(self) -> int:
        """2 = 1² + 1²: one cell falls by 1, another rises by 1."""
        return 2

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the count of every code."""
        return np.asarray(sum(counts_of(piece, len(states)) for piece in self.pieces(codes)))

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Return one integer per state."""
        return as_integers(noisy)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """The number of points: each is in one cell."""
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
        """Return one share per state."""
        return np.array([float(Fraction(int(m), points)) for m in noisy])

    def total(self, points: int, subjects: int) -> Fraction | None:
        """1, the sum of all shares."""
        return Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Transitions(OverStates):
    """Transition counts as a matrix: row = from, column = to."""

    kind: ClassVar[str] = "transitions"

    @property
    def sensitivity(self) -> Sensitivity:
        """2 per pair of neighbours: one cell falls by 1, another rises by 1."""
        return Sensitivity(0, pair=2)

    @property
    def squared_l2_sensitivity(self) -> int:
        """6 = 2² + 1 + 1: at worst both pairs of a point leave one cell for two others."""
        return 6

    def states_among(self, cells: tuple[Any, ...]) -> States:
        """Return the states that pairs begin with: every state."""
        return tuple(dict.fromkeys(begin for begin, _ in cells))

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the count of every pair of neighbours with both ends in the window."""
        size, counts = len(states), np.zeros(len(states) ** 2, dtype=np.int64)
        for part in self.pieces(codes, overlap=1):
            in_cells = np.maximum(part[:-1], part[1:]) < size
            counts += counts_of((part[:-1] * size + part[1:])[in_cells], size * size)
        return counts

    def cells(self, states: States) -> tuple[Any, ...]:
        """Return all (from, to) pairs, row by row."""
        return tuple(product(states, repeat=2))

    def present(self, noisy: Integers, states: States, points: int) -> IntArray:
        """Return a square matrix."""
        return as_integers(noisy).reshape(len(states), len(states))

    def total(self, points: int, subjects: int) -> Fraction | None:
        """The number of pairs: every point but a subject's last begins one."""
        return Fraction(points - subjects)


@dataclass(frozen=True, kw_only=True)
class Top(Histogram):
    """The `k` states with the largest noisy counts, with these counts, the largest first.

    Noise is added to the count of every state, and the selection uses noisy counts alone. `among`
    is the number of states, set when the query is planned.
    """

    kind: ClassVar[str] = "top"
    k: int
    among: int | None = None

    def states_among(self, cells: tuple[Any, ...]) -> None:
        """None: only the selected states are released."""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer(self.k, "k", 1)

    def check(self, states: States) -> None:
        """Raise InvalidInputError if k exceeds the number of states."""
        super().check(states)
        if self.k > len(states):
            raise InvalidInputError(
                f"k is {self.k}, but there are only {len(states)} states; give a smaller k."
            )

    @property
    def chosen_among(self) -> int | None:
        """The number of states."""
        return self.among

    def chosen(
        self, noisy: tuple[int, ...], cells: tuple[Any, ...]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return the k largest noisy counts and their states; ties go to the earlier state."""
        order = sorted(range(len(noisy)), key=lambda index: -noisy[index])[: self.k]
        return tuple(noisy[index] for index in order), tuple(cells[index] for index in order)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """None: the sum of selected counts is not public."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the declared states, if any, k and the number of states."""
        return {**super().parameters(), "k": self.k, "among": self.among}


@dataclass(frozen=True, kw_only=True)
class MostCommon(OverStates):
    """The state with the most time points, drawn by the exponential mechanism.

    P(s) ∝ e^(count(s)/scale): n changed points change log P(s) by at most 2n/scale, so the
    L1 sensitivity is 2n and calibration is that of a histogram.
    """

    kind: ClassVar[str] = "most_common"
    mechanism: ClassVar[str] = "exponential"

    @property
    def sensitivity(self) -> Sensitivity:
        """2 per time point, as for a histogram."""
        return Sensitivity(2)

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the count of every state, the mechanism's score."""
        return np.asarray(sum(counts_of(piece, len(states)) for piece in self.pieces(codes)))

    def present(self, noisy: Integers, states: States, points: int) -> Label:
        """Return the state whose index was drawn."""
        return states[int(noisy[0])]
