"""What every query answers: integers, and how far they can move.

A query maps a sequence of states to integers; integer noise is added to them, and what a person
reads is computed from the noisy integers and public numbers alone. Privacy rests on what a query
declares in `moves`: from it `change` follows, the largest L1 distance between the answers of two
sequences that differ only in a run of time points, and so do the levels that are swept and debited.
Everything here is pure; nothing knows about beliefs or noise.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quiltwork.arguments import listed
from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened

IntArray: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[Any]
"""Integers of type int64, or Python's own where int64 could overflow."""
States: TypeAlias = tuple[Label, ...]

LONGEST = 2**53
MOST_RUNS = 10_000
_PIECE = 1 << 20


class Moves(NamedTuple):
    """How far the integers of an answer move in L1, at most, when points of its window change.

    By `point` for every point that changes, by `pair` for every pair of neighbours in the window
    with a point that changes, and by `once` if any point changes at all. A question whose answer
    moves otherwise, such as the longest stay, has to declare more than it moves: a point may move
    that by all the window has.
    """

    point: int
    pair: int = 0
    once: int = 0


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """One question about a sequence of states, on the window start..stop (1-based, inclusive).

    `stop` None is the end of the sequence; with `runs` only these parts of it count. `moves`,
    `evaluate` and `present` are what a release uses; the other methods describe the answer.
    """

    kind: ClassVar[str]
    mechanism: ClassVar[str] = "two-sided geometric"

    start: int = 1
    stop: int | None = None
    runs: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        first = integer(self.start, "The first time point of a window", 1, LONGEST)
        if self.stop is not None:
            integer(self.stop, "The last time point of a window", first, LONGEST)
        self._check_runs()

    def _check_runs(self) -> None:
        if not self.runs:
            return
        if self.moves.pair:
            raise InvalidInputError(
                f"A query of kind {self.kind!r} is about neighbours, and runs have gaps between "
                "them; ask about each run on its own."
            )
        ends = [end for run in self.runs for end in run]
        apart = all(a <= b for a, b in self.runs) and all(
            one[1] + 1 < other[0] for one, other in pairwise(self.runs)
        )
        if not apart or (self.start, self.stop) != (ends[0], ends[-1]):
            raise InvalidInputError("Runs are in order and apart, from the first to the last.")

    @property
    def words(self) -> str:
        """What is asked, for people: "time per day"; numbers and states have the same words."""
        return self.kind.removeprefix("numeric_").replace("_", " ")

    def on(self, start: int, stop: int | None = None) -> Self:
        """Return the same query on the window start..stop, which replaces an earlier window.

        Raises:
            InvalidInputError: if start < 1 or stop < start.

        >>> from quiltwork import queries
        >>> queries.histogram().on(3, 9).window(20)
        (3, 9)
        """
        return replace(self, start=start, stop=stop, runs=())

    def on_runs(self, runs: Iterable[tuple[int, int]]) -> Self:
        """Return the same query on several windows together, every point of them counted once.

        Raises:
            InvalidInputError: for a query about neighbours, and for what are no windows.

        >>> from quiltwork import queries
        >>> queries.histogram().on_runs([(3, 9), (20, 29), (8, 11)]).windows(40)
        ((3, 11), (20, 29))
        """
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(_read_run(run) for run in listed(runs, "runs")):
            if joined and start <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(stop, joined[-1][1])
            else:
                joined.append((start, stop))
        if not 1 <= len(joined) <= MOST_RUNS:
            raise InvalidInputError(f"Give one to {MOST_RUNS:,} runs, not {len(joined):,}.")
        whole = {"start": joined[0][0], "stop": joined[-1][1]}
        return replace(self, **whole, runs=tuple(joined) if len(joined) > 1 else ())

    def windows(self, length: int) -> tuple[tuple[int, int], ...]:
        """Return the runs of time points asked about in a sequence of this length, in order.

        Raises:
            InvalidInputError: if they do not fit.
        """
        whole = self.window(length)
        return self.runs or (whole,)

    def points(self, length: int) -> int:
        """Return how many time points are asked about in a sequence of this length."""
        return sum(stop - start + 1 for start, stop in self.windows(length))

    def window(self, length: int) -> tuple[int, int]:
        """Return the first and the last time point asked about in a sequence of this length.

        Raises:
            InvalidInputError: if the window does not fit.
        """
        integer(length, "length", 1, LONGEST)
        stop = length if self.stop is None else self.stop
        if not 1 <= self.start <= stop <= length:
            shown = "the end" if self.stop is None else stop
            raise InvalidInputError(
                f"The window from {self.start} to {shown} does not fit a sequence of length "
                f"{length}; windows are 1-based and inclusive."
            )
        return self.start, stop

    def change(self, start: ArrayLike, stop: ArrayLike, length: int | None) -> IntArray:
        """Return how far the integers move in L1, at most, when the points start..stop change.

        Vectorized; a run with stop < start is empty and moves nothing. The maximum is over all
        pairs of sequences that agree outside the run, possible under a belief or not. For a
        union of runs that do not touch, add their changes. `length` None: no end is known, which
        gives the same or more.

        Theorem: docs/theory/query-sensitivity.md
        """
        first, last = np.asarray(start, dtype=np.int64), np.asarray(stop, dtype=np.int64)
        low = np.maximum(first, self.start)
        ends = [end for end in (self.stop, length) if end is not None]
        high = np.minimum(last, min(ends)) if ends else last
        points = np.where(last >= first, np.maximum(high - low + 1, 0), 0)
        if self.runs:
            points = np.where(points > 0, self._upto(high) - self._upto(low - 1), 0)
        last_pair = np.minimum(high, min(ends) - 1) if ends else high
        pairs = np.maximum(last_pair - np.maximum(low - 1, self.start) + 1, 0)
        moves = self.moves
        moved: IntArray = points * moves.point + (points > 0) * (pairs * moves.pair + moves.once)
        return moved

    def _upto(self, nodes: IntArray) -> IntArray:
        """How many points of the runs are at these nodes or before."""
        begins, ends = np.array(self.runs, dtype=np.int64).T
        before = np.concatenate([[0], np.cumsum(ends - begins + 1)])
        run = np.searchsorted(begins, nodes, side="right")
        found: IntArray = before[run] - np.where(run > 0, np.maximum(ends[run - 1] - nodes, 0), 0)
        return found

    @property
    @abstractmethod
    def moves(self) -> Moves:
        """How far the integers move, at most, by what changes: all that privacy rests on."""

    @property
    def moves_squared(self) -> int:
        """How far the integers move in L2, squared, at most, when one point changes.

        As far as in L1, if a query does not say better.

        Theorem: docs/theory/query-sensitivity.md
        """
        point, pair, once = self.moves
        return (point + 2 * pair + once) ** 2

    def part(self, codes: NDArray[np.integer[Any]]) -> IntArray:
        """Cut an encoded sequence to the window.

        Always in 64 bits: codes may come in a narrow type, in which arithmetic would wrap.
        """
        parts = [codes[start - 1 : stop] for start, stop in self.windows(len(codes))]
        part = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return part.astype(np.int64, copy=False)

    def pieces(self, codes: NDArray[np.integer[Any]], overlap: int = 0) -> Iterator[IntArray]:
        """Yield what `part` has in pieces that fit any memory; neighbours may share some points."""
        for start, stop in self.windows(len(codes)):
            for first in range(start - 1, stop, _PIECE):
                last = min(first + _PIECE + overlap, stop)
                yield codes[first:last].astype(np.int64, copy=False)

    @abstractmethod
    def check(self, states: States) -> None:
        """Refuse states that the query cannot be asked about."""

    @abstractmethod
    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Answer for one sequence encoded as 0..k−1, as integers in the order of `cells`."""

    def evaluate_quietly(self, codes: IntArray, states: States) -> Integers:
        """Answer as `evaluate` does, but whatever the data are, without an error or a warning."""
        return self.evaluate(codes, states)

    @abstractmethod
    def cells(self, states: States) -> tuple[Any, ...]:
        """Name the integers of the answer, one label each."""

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return (offset, unit): integer m reads as offset + unit·m, for `points` time points."""
        return Fraction(0), Fraction(1)

    def divisor(self, points: int) -> int:
        """By what a total over `points` time points is divided to give the answer."""
        return 1

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Bound, in units of the value, what putting the answer on its grid may have cost.

        `states` are the public ones; () where none are known.
        """
        return Fraction(0)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Return what the true cells add up to, where that is public; else None."""
        return None

    @abstractmethod
    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Turn noisy integers into what a person reads; uses nothing else but public numbers."""

    def refined(self, scale: Fraction, points: int) -> Self:
        """Return the query on the grid to use with this noise; most have a grid of their own."""
        return self

    @property
    def chosen_among(self) -> int | None:
        """Of how many cells those that are released are chosen by their noisy numbers; else None.

        An interval of a chosen cell holds if those of all cells hold at once.
        """
        return None

    def chosen(
        self, noisy: tuple[int, ...], cells: tuple[Any, ...]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return the noisy integers that are released, and their cells: all of them."""
        return noisy, cells

    @property
    def largest(self) -> int:
        """A bound on the integers of one sequence's answer."""
        return 1 << 62

    @property
    def subdivision(self) -> int:
        """How many integers of `evaluate` make one unit of the scale before `refined`."""
        return 1

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What distinguishes this query from others of its kind, as JSON values."""


def _read_run(run: Any) -> tuple[int, int]:
    if not isinstance(run, (tuple, list)) or len(run) != 2:
        raise InvalidInputError(f"A run is two time points (start, stop), not {shortened(run)}.")
    first = integer(run[0], "The first time point of a window", 1, LONGEST)
    return first, integer(run[1], "The last time point of a window", first, LONGEST)


def as_integers(values: Integers) -> IntArray:
    """Pack integers as int64; released ones always fit."""
    return np.array([int(value) for value in values], dtype=np.int64)


def counts_of(codes: IntArray, size: int) -> IntArray:
    """Count the codes 0..size−1; the code `size` stands for everything else."""
    return np.bincount(codes, minlength=size)[:size].astype(np.int64, copy=False)


def read_query(value: Any) -> Query:
    """Read an argument that must be a query."""
    if isinstance(value, Query):
        return value
    raise InvalidInputError(
        f"A query must come from qw.queries, such as queries.histogram(), not {shortened(value)}."
    )
