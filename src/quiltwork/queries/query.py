"""`Query`, the base class of all queries: an integer answer with a declared sensitivity.

A query maps a sequence of states to integers. Integer noise is added to them, and the published
answer is computed from the noisy integers and public numbers alone. Privacy rests on the declared
`sensitivity`: `l1_sensitivity` follows from it, the largest L1 distance between the answers to two
sequences that differ only in a run of time points, and so do the levels that are swept and debited.
Everything here is pure and independent of beliefs and noise.

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
"""Time points that are widened to 64 bits at once: 8 MB, however long the series is."""


class Sensitivity(NamedTuple):
    """The L1 sensitivity of an answer in integers: an upper bound, as a sum of three parts.

    `point` for every changed time point, `pair` for every pair of neighbours in the window with a
    changed time point, and `once` if any time point changes. An answer whose sensitivity has
    another form, such as the longest stay, must declare an upper bound of this form: one time point
    can change the longest stay by the length of the window.
    """

    point: int
    pair: int = 0
    once: int = 0


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """A query about a sequence of states, on the window start..stop (1-based, inclusive).

    `stop` None is the end of the sequence; with `runs` only these parts of the window count. A
    release uses `sensitivity`, `evaluate` and `present`; the other methods describe the answer.
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
        if self.sensitivity.pair:
            raise InvalidInputError(
                f"A {self.words} query is about neighbouring time points, and runs have gaps "
                "between them; ask about each run on its own."
            )
        ends = [end for run in self.runs for end in run]
        apart = all(a <= b for a, b in self.runs) and all(
            earlier[1] + 1 < later[0] for earlier, later in pairwise(self.runs)
        )
        if not apart or (self.start, self.stop) != (ends[0], ends[-1]):
            raise InvalidInputError(
                "Runs must be in order, with gaps between them; build them with query.on_runs."
            )

    @property
    def words(self) -> str:
        """The name of the query for people, such as "time per day"."""
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
        """Return the same query on a union of windows; overlapping ones are merged.

        Raises:
            InvalidInputError: for a query about neighbours, and for runs that are not windows.

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
        """Return the runs of time points in the query's window, in order.

        Raises:
            InvalidInputError: if they do not fit.
        """
        whole = self.window(length)
        return self.runs or (whole,)

    def points(self, length: int) -> int:
        """Return the number of time points in the query's window."""
        return sum(stop - start + 1 for start, stop in self.windows(length))

    def window(self, length: int) -> tuple[int, int]:
        """Return the first and the last time point of the window in a sequence of this length.

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

    def l1_sensitivity(self, start: ArrayLike, stop: ArrayLike, length: int | None) -> IntArray:
        """Return the L1 sensitivity to the time points start..stop, in integers.

        The maximum of the L1 distance over all pairs of sequences that agree outside the run,
        possible under a belief or not. Vectorized over runs; an empty run (stop < start) gives 0.
        The sensitivity to a union of runs that do not touch is the sum. `length` None stands for
        an unbounded series, whose sensitivity is at least as large.

        Theorem: docs/theory/query-sensitivity.md
        """
        first, last = np.asarray(start, dtype=np.int64), np.asarray(stop, dtype=np.int64)
        low = np.maximum(first, self.start)
        ends = [end for end in (self.stop, length) if end is not None]
        high = np.minimum(last, min(ends)) if ends else last
        points = np.where(last >= first, np.maximum(high - low + 1, 0), 0)
        if self.runs:
            inside = self._points_until(high) - self._points_until(low - 1)
            points = np.where(points > 0, inside, 0)
        last_pair = np.minimum(high, min(ends) - 1) if ends else high
        pairs = np.maximum(last_pair - np.maximum(low - 1, self.start) + 1, 0)
        per = self.sensitivity
        total: IntArray = points * per.point + (points > 0) * (pairs * per.pair + per.once)
        return total

    def _points_until(self, nodes: IntArray) -> IntArray:
        """The number of points of the runs at or before each node."""
        begins, ends = np.array(self.runs, dtype=np.int64).T
        before = np.concatenate([[0], np.cumsum(ends - begins + 1)])
        run = np.searchsorted(begins, nodes, side="right")
        beyond = np.where(run > 0, np.maximum(ends[run - 1] - nodes, 0), 0)
        count: IntArray = before[run] - beyond
        return count

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """The declared L1 sensitivity; the privacy guarantee rests on it alone."""

    @property
    def squared_l2_sensitivity(self) -> int:
        """The squared L2 sensitivity of the integers to one time point.

        By default the square of the L1 sensitivity, which is an upper bound.

        Theorem: docs/theory/query-sensitivity.md
        """
        point, pair, once = self.sensitivity
        return (point + 2 * pair + once) ** 2

    def part(self, codes: NDArray[np.integer[Any]]) -> IntArray:
        """Return the codes inside the window.

        Always in 64 bits: codes may be stored in a narrow type, in which arithmetic would wrap.
        """
        parts = [codes[start - 1 : stop] for start, stop in self.windows(len(codes))]
        part = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return part.astype(np.int64, copy=False)

    def pieces(self, codes: NDArray[np.integer[Any]], overlap: int = 0) -> Iterator[IntArray]:
        """Yield the window's codes in pieces of bounded size, with `overlap` points shared."""
        for start, stop in self.windows(len(codes)):
            for first in range(start - 1, stop, _PIECE):
                last = min(first + _PIECE + overlap, stop)
                yield codes[first:last].astype(np.int64, copy=False)

    @abstractmethod
    def check(self, states: States) -> None:
        """Raise InvalidInputError for states that the query is not defined on."""

    @abstractmethod
    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the answer for a sequence of codes 0..k−1, as integers in the order of `cells`."""

    def evaluate_quietly(self, codes: IntArray, states: States) -> Integers:
        """Return the answer without raising or warning for any data; for releases that pay."""
        return self.evaluate(codes, states)

    @abstractmethod
    def cells(self, states: States) -> tuple[Any, ...]:
        """Return the labels of the integers of the answer."""

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return (offset, unit) of the grid: the integer m stands for offset + unit·m."""
        return Fraction(0), Fraction(1)

    def divisor(self, points: int) -> int:
        """Return the divisor that turns a total over `points` time points into the answer."""
        return 1

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Return a bound on the rounding error of the grid, in units of the answer.

        `states` are the public ones; () where the belief has none.
        """
        return Fraction(0)

    def total(self, points: int, subjects: int) -> Fraction | None:
        """Return the public sum of the true cells; None if it is not public."""
        return None

    @abstractmethod
    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Return the published answer, computed from noisy integers and public numbers alone."""

    def refined(self, scale: Fraction, points: int) -> Self:
        """Return the query on a grid that is fine enough for this noise; most have a fixed one."""
        return self

    @property
    def chosen_among(self) -> int | None:
        """The number of cells from which the released ones are selected by their noisy counts.

        None without selection. Intervals of selected cells must hold for all cells at once.
        """
        return None

    def chosen(
        self, noisy: tuple[int, ...], cells: tuple[Any, ...]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return the released noisy integers and their cells; all of them without selection."""
        return noisy, cells

    @property
    def largest(self) -> int:
        """An upper bound on the integers of the answer for one sequence."""
        return 1 << 62

    @property
    def subdivision(self) -> int:
        """The number of integers of `evaluate` per unit of noise scale before `refined`."""
        return 1

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters that identify the query within its kind, as JSON values."""


def _read_run(run: Any) -> tuple[int, int]:
    if not isinstance(run, (tuple, list)) or len(run) != 2:
        raise InvalidInputError(f"A run is two time points (start, stop), not {shortened(run)}.")
    first = integer(run[0], "The first time point of a window", 1, LONGEST)
    return first, integer(run[1], "The last time point of a window", first, LONGEST)


def as_integers(values: Integers) -> IntArray:
    """Return integers as an int64 array; released ones always fit."""
    return np.array([int(value) for value in values], dtype=np.int64)


def counts_of(codes: IntArray, size: int) -> IntArray:
    """Return the counts of the codes 0..size−1; the code `size` is any other value."""
    return np.bincount(codes, minlength=size)[:size].astype(np.int64, copy=False)


def parse_query(value: Any) -> Query:
    """Return an argument that must be a query."""
    if isinstance(value, Query):
        return value
    raise InvalidInputError(
        f"A query must come from qw.queries, such as queries.histogram(), not {shortened(value)}."
    )
