"""`DatedChain`: a cyclic chain by the local clock, for series that begin at one public moment.

When clocks change, phases jump: a step has the matrix of the phase it leaves, whichever phase comes
next. After a change the law of a time point differs from the law of its phase for hours, so laws
are propagated from the first time point on.

Theorem: docs/theory/cyclic-chains.md (Clocks that change)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.beliefs import evolution
from quiltwork.beliefs.belief import Initial, SimulatedBelief
from quiltwork.beliefs.calendars import FAR, Calendar
from quiltwork.beliefs.chain import parse_initial
from quiltwork.beliefs.evolution import ordered_product
from quiltwork.beliefs.grids import Grid, parse_grid
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray, frozen, parse_matrices
from quiltwork.beliefs.origins import require_step_divides
from quiltwork.beliefs.phases import cycle_words
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, parse_states
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer


@dataclass(frozen=True, init=False, eq=False, repr=False)
class DatedChain(SimulatedBelief):
    """A chain whose matrices follow a local clock from one moment on.

    `CyclicChain.beginning` makes one. The law of X_1 is given, or "any". A release aligns beliefs
    about days by itself; a ledger stores the aligned ones.

    Args:
        matrices: p matrices, one for each phase of the clock.
        states: one label per row; 0..k−1 if not given.
        initial: the distribution of X_1, or "any" for every distribution.
        grid: with the step of time points.
        sources: where the data of a fit came from.
        anchor: the local time of phase 0, in seconds.
        begins: the moment of X_1, in seconds since 1970 (UTC).
        calendar: the zone and its clock changes.

    Raises:
        InvalidInputError: for invalid arguments, and for steps that do not divide a clock change.
    """

    matrices: FloatArray
    initial: Initial
    states: tuple[Label, ...]
    grid: Grid | None
    sources: Sources
    anchor: int
    begins: int
    calendar: Calendar
    schema = "belief/dated-chain"

    def __init__(
        self,
        matrices: ArrayLike,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["any"] = "any",
        *,
        grid: Grid | None,
        sources: Sources = NO_SOURCES,
        anchor: int,
        begins: int,
        calendar: Calendar,
    ) -> None:
        steps = parse_matrices(matrices)
        size = steps.shape[1]
        data_grid = parse_grid(grid)
        if data_grid is None or data_grid.step is None:
            raise InvalidInputError(
                "A belief that follows a clock needs the length of a step: grid=qw.Grid(step='1h')."
            )
        if isinstance(initial, str) and initial != "any":
            raise InvalidInputError("initial must be the distribution of X_1, or 'any'.")
        if not isinstance(calendar, Calendar):
            raise InvalidInputError("calendar must be a Calendar, such as that of a fitted belief.")
        self.__setstate__(
            (
                *(
                    steps,
                    parse_initial(initial, size),
                    parse_states(states, size),
                    data_grid,
                    sources,
                ),
                *(integer(anchor, "anchor", 0), integer(begins, "begins", -FAR, FAR), calendar),
            )
        )
        require_changes_divided(calendar, data_grid.step, self.begins, calendar.end)

    @property
    def period(self) -> int:
        """The number of phases."""
        return len(self.matrices)

    @property
    def step(self) -> int:
        """The length of a step in seconds."""
        assert self.grid is not None  # noqa: S101  (the constructor refuses others)
        assert self.grid.step is not None  # noqa: S101
        return self.grid.step

    @property
    def longest(self) -> int:
        """The number of time points before the calendar ends."""
        return -(-(self.calendar.end - self.begins) // self.step)

    def phases(self, length: int) -> IntArray:
        """Return the phase of each of X_1..X_length. O(length).

        Raises:
            InvalidInputError: if the calendar ends before.
        """
        moments = self.begins + self.step * np.arange(length, dtype=np.int64)
        return self._phases_at(moments)

    def _phases_at(self, moments: IntArray) -> IntArray:
        local = self.calendar.shown(moments)
        phases: IntArray = (local - self.anchor) // self.step % self.period
        return phases

    def phase_of(self, node: int) -> int:
        """Return the phase of X_node; phases are cached, twice as many at a time."""
        cached: IntArray = self.__dict__.get("_cached_phases", np.empty(0, dtype=np.int64))
        if node > len(cached):
            cached = self.phases(min(max(2 * node, 1024), max(self.longest, node)))
            self.__dict__["_cached_phases"] = cached
        return int(cached[node - 1])

    def first_of_days(self, length: int) -> IntArray:
        """Return the nodes at which a period of the clock begins, and those after a change."""
        phases = self.phases(length)
        jumps = np.diff(phases, prepend=phases[:1] - 1) % self.period != 1 % self.period
        nodes: IntArray = np.flatnonzero((phases == 0) | jumps) + 1
        return nodes

    def around_changes(self, reach: int) -> list[IntArray]:
        """Return the distinct runs of phases within `reach` steps of a clock change."""
        last, reached = self.longest, 0
        runs: dict[bytes, IntArray] = {}
        changes = self.calendar.changes_between(self.begins, self.calendar.end - 1)
        nodes = [-(-(moment - self.begins) // self.step) for moment in changes]
        for number, node in enumerate(nodes):
            if node < reached:  # inside the run of the change before
                continue
            reached = node + reach
            for later in nodes[number + 1 :]:
                reached = later + reach if later - reach < reached else reached
            begin, end = max(node - reach, 0), min(reached, last)
            run = self._phases_at(self.begins + self.step * np.arange(begin, end, dtype=np.int64))
            runs.setdefault(run.tobytes(), run)
        return list(runs.values())

    @property
    def start(self) -> FloatArray:
        """The distribution of X_1 as an array; `UnsupportedError` for "any"."""
        if isinstance(self.initial, str):
            raise UnsupportedError(
                "initial='any' stands for every distribution, so there is no single one to use; "
                "give initial= an array."
            )
        return self.initial

    def marginal(self, t: int) -> FloatArray:
        """Return the distribution of X_t. O(k²·t).

        Raises:
            UnsupportedError: for initial="any".
        """
        law = self.start
        for phase in self.phases(integer(t, "t", 1))[:-1].tolist():
            law = ordered_product(law, self.matrices[phase])
        return frozen(law / law.sum())

    def support(self, t: int) -> BoolArray:
        """Return which states X_t can take; for "any", from some start. O(k²·t)."""
        current = np.ones(self.size, dtype=np.bool_)
        if not isinstance(self.initial, str):
            current = self.initial > 0
        for phase in self.phases(integer(t, "t", 1))[:-1].tolist():
            current = (self.matrices[phase] > 0)[current].any(axis=0)
        return frozen(np.array(current))

    def allows(self, codes: IntArray) -> bool:
        """Return whether a path of state indices has positive probability. O(length)."""
        phases = self.phases(len(codes))[:-1]
        steps = (self.matrices > 0)[phases, codes[:-1], codes[1:]]
        return bool(self.support(1)[codes[0]] and steps.all())

    def _simulated(self, steps: int, seed: int | None) -> IntArray:
        return evolution.simulate_cycle(self.start, self.matrices[self.phases(steps)], steps, seed)

    @property
    def begin_words(self) -> str:
        """The local time of X_1 with its offset, for people."""
        local = int(self.calendar.shown(np.array([self.begins]))[0])
        zone = timezone(timedelta(seconds=local - self.begins))
        return datetime.fromtimestamp(self.begins, UTC).astimezone(zone).isoformat("T", "minutes")

    def summary(self) -> str:
        """Return states, period, begin and grid in words."""
        cycle = cycle_words(self.period, None if self.grid is None else self.grid.step)
        local = f" by the clock of {self.calendar.zone}, from {self.begin_words}"
        changes = f" whose transition probabilities follow {cycle}{local}"
        return self._summarized("a chain", changes, self.initial)

    def __repr__(self) -> str:
        """Return states, period, begin and grid, without the matrices."""
        when = f"; period={self.period} by the clock of {self.calendar.zone}, from "
        return f"{self._words(f'{when}{self.begin_words}', self.initial)})"


def require_changes_divided(calendar: Calendar, step: int, begin: int, end: int) -> None:
    """Raise InvalidInputError if a step does not divide a clock change between two moments."""
    offsets = [calendar.offset, *(offset for _, offset in calendar.changes)]
    for before, (moment, after) in zip(offsets, calendar.changes, strict=False):
        if begin < moment <= end:
            require_step_divides(after - before, step)
