"""`DatedChain`: a cyclic chain for series that begin at one public moment, by the clock of a zone.

When clocks change, phases jump: a step is that of the phase it leaves, whatever phase comes next.
After a change the law of a time point is not that of its phase but what the steps before have made
of it; it is followed from the first time point on, and differs for hours.

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
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, parse_states
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer


@dataclass(frozen=True, init=False, eq=False, repr=False)
class DatedChain(SimulatedBelief):
    """A chain whose matrices follow the clock of a zone from one moment on.

    `CyclicChain.beginning` makes one. The law of X_1 is given, or "any"; a release places beliefs
    about days by itself, and a ledger keeps what was placed.

    Args:
        matrices: p matrices, one for each phase of the clock.
        states: one label per row; 0..k−1 if not given.
        initial: the distribution of X_1, or "any" for every distribution.
        grid: with the step of time points.
        sources: where the data of a fit were.
        anchor: what clocks show in phase 0, in seconds.
        begins: when X_1 is, in seconds since 1970 of UTC.
        calendar: the zone, and when its clocks change.

    Raises:
        InvalidInputError: for what cannot be read, and steps that do not divide a change of clocks.
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
        known = parse_grid(grid)
        if known is None or known.step is None:
            raise InvalidInputError("A belief about the clock needs the length of a step.")
        if isinstance(initial, str) and initial != "any":
            raise InvalidInputError("initial is the distribution of X_1, or 'any'.")
        if not isinstance(calendar, Calendar):
            raise InvalidInputError("calendar is a Calendar, such as that of a fitted belief.")
        self.__setstate__(
            (
                *(steps, parse_initial(initial, size), parse_states(states, size), known, sources),
                *(integer(anchor, "anchor", 0), integer(begins, "begins", -FAR, FAR), calendar),
            )
        )
        refuse_undivided(calendar, known.step, self.begins, calendar.end)

    @property
    def period(self) -> int:
        """How many phases there are."""
        return len(self.matrices)

    @property
    def step(self) -> int:
        """How far time points are apart, in seconds."""
        assert self.grid is not None  # noqa: S101  (the constructor refuses others)
        assert self.grid.step is not None  # noqa: S101
        return self.grid.step

    @property
    def longest(self) -> int:
        """How many time points there are before the calendar ends."""
        return -(-(self.calendar.end - self.begins) // self.step)

    def phases(self, length: int) -> IntArray:
        """Return the phase of each of X_1..X_length. O(length).

        Raises:
            InvalidInputError: if the calendar ends before.
        """
        moments = self.begins + self.step * np.arange(length, dtype=np.int64)
        found: IntArray = (self.calendar.shown(moments) - self.anchor) // self.step % self.period
        return found

    def phase_of(self, node: int) -> int:
        """Return the phase of X_node; those before are kept."""
        known: IntArray = self.__dict__.get("_known", np.empty(0, dtype=np.int64))
        if node > len(known):
            known = self.phases(min(max(2 * node, 1024), max(self.longest, node)))
            self.__dict__["_known"] = known
        return int(known[node - 1])

    def first_of_days(self, length: int) -> IntArray:
        """Return the nodes at which a turn of the clock begins, and those after a change."""
        phases = self.phases(length)
        jumps = np.diff(phases, prepend=phases[:1] - 1) % self.period != 1 % self.period
        found: IntArray = np.flatnonzero((phases == 0) | jumps) + 1
        return found

    def around_changes(self, reach: int) -> list[IntArray]:
        """Return the different rows of phases that lie so many steps around changes of clocks."""
        last, reached = self.longest, 0
        found: dict[bytes, IntArray] = {}
        changes = self.calendar.changes_between(self.begins, self.calendar.end - 1)
        nodes = [-(-(moment - self.begins) // self.step) for moment in changes]
        for number, node in enumerate(nodes):
            if node < reached:  # within the row of the one before
                continue
            reached = node + reach
            for later in nodes[number + 1 :]:
                reached = later + reach if later - reach < reached else reached
            begin, end = max(node - reach, 0), min(reached, last)
            moments = self.begins + self.step * np.arange(begin, end, dtype=np.int64)
            shown = self.calendar.shown(moments)
            row: IntArray = (shown - self.anchor) // self.step % self.period
            found.setdefault(row.tobytes(), row)
        return list(found.values())

    @property
    def start(self) -> FloatArray:
        """The distribution of X_1 as an array; `UnsupportedError` for "any"."""
        if isinstance(self.initial, str):
            raise UnsupportedError(
                "initial='any' stands for every distribution; give one, or 'stationary', to "
                "follow it."
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
        """When it begins, as the clock shows it, with its offset."""
        shown = int(self.calendar.shown(np.array([self.begins]))[0])
        place = timezone(timedelta(seconds=shown - self.begins))
        return datetime.fromtimestamp(self.begins, UTC).astimezone(place).isoformat("T", "minutes")

    def __repr__(self) -> str:
        """Name the states, the period, when it begins and the grid, not the matrices."""
        when = f"; period={self.period} by the clock of {self.calendar.zone}, from "
        return f"{self._words(f'{when}{self.begin_words}', self.initial)})"


def refuse_undivided(calendar: Calendar, step: int, begin: int, end: int) -> None:
    """Refuse steps that do not divide a change of clocks between two moments."""
    offsets = [calendar.offset, *(offset for _, offset in calendar.changes)]
    for before, (moment, after) in zip(offsets, calendar.changes, strict=False):
        if begin < moment <= end:
            require_step_divides(after - before, step)
