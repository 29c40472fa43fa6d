"""`CyclicChain`: a chain whose matrices repeat with a period, such as a day or a week.

Matrix t mod p leads from node t to node t + 1, counted from 0 for node 1. In the long run the law
of a node depends on its phase alone: the law of phase 0 is stationary for one whole period.

The begin of a series is public, like its length. A series that begins φ phases later than the
belief has the belief rotated by φ (`CyclicChain.starting`), with the same law at every moment
(`align_to_starts`). Where clocks change during a series, phases follow the local clock
(`CyclicChain.beginning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.beliefs import evolution, structure
from quiltwork.beliefs.belief import Belief, Initial, SimulatedBelief
from quiltwork.beliefs.calendars import FAR, Calendar
from quiltwork.beliefs.chain import parse_initial, start_distribution
from quiltwork.beliefs.dated import DatedChain
from quiltwork.beliefs.evolution import ordered_product
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.grids import Grid, parse_grid
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray, frozen, parse_matrices
from quiltwork.beliefs.origins import (
    grid_of,
    grid_of_sequence,
    has_clock_change,
    local_start,
    split_at_clock_changes,
    utc_start,
    zone_name_of,
)
from quiltwork.beliefs.phases import (
    Period,
    count_phase_transitions,
    cycle_words,
    parse_period,
    smoothed_phases,
    start_suffix,
)
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, parse_states
from quiltwork.beliefs.stationary import irreducible_stationary
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer
from quiltwork.wording import argument

_TINY = 2.0**-960
"""Below this, a long-run probability is too close to underflow to be accurate."""
_SETTLED = 2.0**-50
"""A law this close to the cycle's is taken as the cycle's."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CyclicChain(SimulatedBelief):
    """A chain with one transition matrix per phase, started from `initial` in phase 0.

    Args:
        matrices: p matrices, k×k each; matrix 0 leads from node 1 to node 2, and node p + 1 is in
            phase 0 again.
        states: one label per row; 0..k−1 if not given.
        initial: the distribution of X_1, or "stationary" for the law that a period leaves
            unchanged, or "any" for every distribution.
        grid: the step and binning of the data, to be checked against them.
        sources: where the data of a fit came from; `fit` sets it.
        anchor: a moment of phase 0 in seconds, where the grid has a step; a release rotates the
            belief to the phases in which its data begin.
        calendar: the clock changes of a zone, for series that span some; `fit` stores that of its
            data.

    Raises:
        InvalidInputError: naming the matrix and row that is wrong, or for a stationary start where
            a period has several stationary laws.

    >>> day = CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])
    >>> day
    CyclicChain(2 states: 0, 1; period=2; initial='stationary')
    >>> day.marginal(1).round(4), day.marginal(2).round(4), day.marginal(3).round(4)
    (array([0.3765, 0.6235]), array([0.5882, 0.4118]), array([0.3765, 0.6235]))
    """

    matrices: FloatArray
    initial: Initial
    states: tuple[Label, ...]
    grid: Grid | None
    sources: Sources
    anchor: int | None
    calendar: Calendar | None
    schema = "belief/cyclic-chain"

    def __init__(
        self,
        matrices: ArrayLike,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["stationary", "any"] = "stationary",
        *,
        grid: Grid | None = None,
        sources: Sources = NO_SOURCES,
        anchor: int | None = None,
        calendar: Calendar | None = None,
    ) -> None:
        steps = parse_matrices(matrices)
        size = steps.shape[1]
        self.__setstate__(
            (
                steps,
                parse_initial(initial, size),
                parse_states(states, size),
                parse_grid(grid),
                sources,
                None if anchor is None else integer(anchor, "anchor", 0),
                calendar,
            )
        )
        if isinstance(self.initial, str) and self.initial == "stationary":
            # Computed now, so that a belief without a unique law fails here, not in a release.
            _ = self.laws

    @classmethod
    def fit(
        cls,
        sequences: Any,
        period: Period,
        smoothing: Number = 0.5,
        states: Iterable[Any] | None = None,
        initial: ArrayLike | Literal["stationary", "any"] = "stationary",
        grid: Grid | None = None,
        phase: int | Iterable[int] | None = None,
    ) -> CyclicChain:
        """Return a chain with a matrix per phase, fitted to one sequence or many.

        Neighbouring phases are pooled: a phase counts transitions up to h phases away from it.
        Periods are dealt into two folds, and h is chosen among 0, 1, 2, 4, … and the whole period
        by held-out likelihood; the largest of ties. Never fit on the data to be released.
        O(T + p·k²·log p).

        Args:
            sequences: as in `MarkovChain.fit`.
            period: a number of time points, or "day" or "week" where the grid has a step: then
                phase 0 is midnight, or midnight before Monday.
            smoothing: added, times k, to the counts of every row, in proportion to the chain of
                all phases together.
            states: the states; by default those of the grid, else the labels that occur, sorted.
            initial: as in the constructor.
            grid: the step and binning of the data; `read_series` records it with what it reads.
            phase: the phase of the first time point, from 0; one for all sequences or one for each.
                By default from the times of the data: with a number as period, the first sequence
                begins in phase 0. Without times every sequence begins in phase 0.

        Raises:
            InvalidInputError: naming the sequence and position that cannot be read.

        >>> days = CyclicChain.fit([0, 0, 1, 1] * 100, period=4)
        >>> days.matrices[1][0].round(3)
        array([0.005, 0.995])
        """
        pieces = split_sequences(sequences)
        data_grid = grid_of(pieces, grid)
        runs = recorded_runs(pieces)
        # Phases given by the caller are those of whole sequences; times give those of every part.
        if phase is None:
            runs = tuple(part for run in runs for part in split_at_clock_changes(run))
        if phase is not None and len(runs) > len(pieces):
            raise InvalidInputError(
                "Each part between gaps begins in another phase: leave phase out, and read the "
                "series with its step."
            )
        clock = parse_period(period, data_grid, [local_start(run) for run in runs], phase)
        counted = count_phase_transitions(runs, states, data_grid, clock)
        rows = smoothed_phases(counted, smoothing)
        sources = Sources.of(pieces, rows)
        kept: dict[str, Any] = {"grid": data_grid, "sources": sources, "anchor": clock.anchor}
        return cls(rows, counted.states, initial, **kept, calendar=calendar_of(pieces))

    @property
    def period(self) -> int:
        """The number of nodes after which the matrices repeat."""
        return len(self.matrices)

    @cached_property
    def possible(self) -> BoolArray:
        """Which transitions have positive probability, by phase."""
        return frozen(self.matrices > 0)

    @cached_property
    def laws(self) -> FloatArray:
        """(p, k) the long-run law of every phase; that of phase 0 is stationary for a period.

        Theorem: docs/theory/cyclic-chains.md

        Raises:
            InvalidInputError: if a period has several stationary laws.
        """
        # Supports by boolean products, since a possible product of floats may underflow to 0.
        turn, steps = np.eye(self.size), np.eye(self.size, dtype=np.bool_)
        for matrix, step in zip(self.matrices, self.possible, strict=True):
            turn, steps = ordered_product(turn, matrix), structure.boolean_product(steps, step)
        classes = structure.recurrent_classes(steps)
        if len(classes) > 1:
            raise InvalidInputError(
                f"One period of {self.period} steps has {len(classes)} recurrent classes, so the "
                "long-run law is not unique; give initial= a distribution or 'any'."
            )
        block = np.ix_(classes[0], classes[0])
        law = np.zeros(self.size)
        law[classes[0]] = irreducible_stationary(turn[block])
        laws, able = [law], [law > 0]
        for matrix, step in zip(self.matrices[:-1], self.possible, strict=False):
            laws.append(ordered_product(laws[-1], matrix))
            able.append(step[able[-1]].any(axis=0))
        rows, reached = np.array(laws), np.array(able)
        # Possible entries close to underflow have lost bits, and the law would be wrong unnoticed.
        if (turn[block][steps[block]] < _TINY).any() or (rows[reached] < _TINY).any():
            raise UnsupportedError(
                "The long-run probabilities of this chain differ by more than a float can hold; "
                "give the initial distribution yourself, or initial='any'."
            )
        return frozen(np.where(reached, rows, 0.0))

    @property
    def start(self) -> FloatArray:
        """The distribution of X_1 as an array; `UnsupportedError` for "any"."""
        return start_distribution(self.initial, lambda: frozen(self.laws[0].copy()))

    def starting(self, phase: int) -> CyclicChain:
        """Return the belief about series that begin `phase` phases later.

        >>> day = CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])
        >>> day.starting(1).matrices[0]
        array([[0.5, 0.5],
               [0.2, 0.8]])

        Raises:
            UnsupportedError: if the initial distribution is given, since it is that of phase 0.
        """
        later = integer(phase, "phase", 0) % self.period
        if not later:
            return self
        if not isinstance(self.initial, str):
            raise UnsupportedError(
                "This belief has an initial distribution, which is that of phase 0; make one with "
                "the distribution of the other phase."
            )
        step = None if self.grid is None else self.grid.step
        anchor = self.anchor
        if anchor is not None and step is not None:
            # Phase 0 moves with the rotation: a time of day keeps its matrix.
            anchor = (anchor + later * step) % (self.period * step)
        return CyclicChain(
            np.roll(self.matrices, -later, axis=0),
            self.states,
            self.initial,
            grid=self.grid,
            sources=self.sources,
            anchor=anchor,
            calendar=self.calendar,
        )

    def beginning(self, moment: int, calendar: Calendar | None = None) -> DatedChain:
        """Return the belief about series that begin at a UTC moment, in seconds since 1970.

        Its first law is the cycle's, propagated from the last clock change before the moment.
        `calendar` is the belief's by default.

        Raises:
            InvalidInputError: if the moment of phase 0 or the clock changes are unknown.
            UnsupportedError: if the initial distribution is given, since it is that of phase 0.
        """
        known = self.calendar if calendar is None else calendar
        if known is None or self.anchor is None or self.grid is None or self.grid.step is None:
            raise InvalidInputError(
                "To follow a local clock, a belief needs the moment of phase 0, the length of a "
                "step and the clock changes: fit it on data with times, or give "
                "grid=qw.Grid(step='1h'), anchor=0 for midnight, and calendar=."
            )
        if not isinstance(self.initial, str):
            raise UnsupportedError(
                "This belief has an initial distribution, which is that of phase 0, and clocks "
                "change in the series; make one with initial='stationary' or 'any'."
            )
        begins = integer(moment, "moment", -FAR, FAR)
        shared: dict[str, Any] = {
            "states": self.states,
            "grid": self.grid,
            "sources": self.sources,
            "anchor": self.anchor,
            "begins": begins,
            "calendar": known,
        }
        from_any_start = DatedChain(self.matrices, **shared)
        if self.initial == "any":
            return from_any_start
        return DatedChain(self.matrices, initial=self._law_at(from_any_start), **shared)

    def _law_at(self, dated: DatedChain) -> FloatArray:
        """Return the law at a series' begin: the cycle's, propagated from the last change."""
        calendar, step, begins = dated.calendar, dated.step, dated.begins
        earlier = calendar.changes_between(calendar.begin, begins)
        first = begins if not earlier else begins - ((begins - earlier[-1]) // step + 1) * step
        moments = np.arange(max(first, calendar.begin), begins + 1, step, dtype=np.int64)
        phases = (calendar.shown(moments) - dated.anchor) // step % self.period
        law: FloatArray = self.laws[phases[0]]
        for node, (phase, later) in enumerate(pairwise(phases.tolist())):
            law = ordered_product(law, self.matrices[phase])
            # Series can begin years after a change; without this the rounding errors would add up.
            law = law / law.sum()
            # A law that is the cycle's once stays so, and one comparison per period is enough.
            if node % self.period == 0 and np.abs(law - self.laws[later]).max() < _SETTLED:
                return np.asarray(self.laws[phases[-1]])
        return law

    def marginal(self, t: int) -> FloatArray:
        """Return the distribution of X_t, t = 1 being the start. O(k³·(p + log t)).

        Raises:
            UnsupportedError: for initial="any".
        """
        steps = integer(t, "t", 1) - 1
        if isinstance(self.initial, str) and self.initial == "stationary":
            return frozen(self.laws[steps % self.period].copy())
        law, (turns, rest) = self.start, divmod(steps, self.period)
        if turns:
            turn = np.eye(self.size)
            for matrix in self.matrices:
                turn = ordered_product(turn, matrix)
            law = evolution.evolve(law, turn / turn.sum(axis=1, keepdims=True), turns)
        for matrix in self.matrices[:rest]:
            law = ordered_product(law, matrix)
        return frozen(law / law.sum())

    def support(self, t: int) -> BoolArray:
        """Return which states X_t can take; for "any", from some start. O(k²·(k·p + log t))."""
        steps = integer(t, "t", 1) - 1
        if isinstance(self.initial, str) and self.initial == "stationary":
            return frozen(self.laws[steps % self.period] > 0)
        has_law = not isinstance(self.initial, str)
        current = self.start > 0 if has_law else np.ones(self.size, dtype=np.bool_)
        turns, rest = divmod(steps, self.period)
        if turns:
            turn = np.eye(self.size, dtype=np.bool_)
            for step in self.possible:
                turn = structure.boolean_product(turn, step)
            current = structure.reach_in_steps(current, turn, turns)
        for step in self.possible[:rest]:
            current = step[current].any(axis=0)
        return frozen(np.array(current))

    def allows(self, codes: IntArray) -> bool:
        """Return whether a path of state indices has positive probability. O(length)."""
        phases = np.arange(len(codes) - 1) % self.period
        return bool(
            self.support(1)[codes[0]] and self.possible[phases, codes[:-1], codes[1:]].all()
        )

    def phases_before(self, sequence: Any) -> int:
        """Return the phases by which a sequence begins later than this belief; 0 if unknown.

        Where clocks change in the sequence, this is about its first time point.
        """
        begins, step = local_start(sequence), None if self.grid is None else self.grid.step
        if begins is None or step is None or self.anchor is None:
            return 0
        return (begins - self.anchor) // step % self.period

    def _simulated(self, steps: int, seed: int | None) -> IntArray:
        return evolution.simulate_cycle(self.start, self.matrices, steps, seed)

    def summary(self) -> str:
        """Return states, period, start and grid in words."""
        step = None if self.grid is None else self.grid.step
        cycle = cycle_words(self.period, step)
        changes = f" whose transition probabilities follow {cycle}{self._begins()}"
        return self._summarized("a chain", changes, self.initial)

    def __repr__(self) -> str:
        """Return states, period, start and grid, without the matrices."""
        return f"{self._words(f'; period={self.period}', self.initial)}{self._begins()})"

    def _begins(self) -> str:
        """Return the time of phase 0 for a repr, unless it is midnight or Monday."""
        step = None if self.grid is None else self.grid.step
        if step is None or self.anchor is None:
            return ""
        return start_suffix(self.anchor, self.period * step)


def calendar_of(sequences: Iterable[Any]) -> Calendar | None:
    """Return the calendar of the sequences' zone around them; None if unknown, or several zones."""
    begins = [
        (zone_name_of(sequence), utc_start(sequence), len(sequence), grid_of_sequence(sequence))
        for sequence in sequences
    ]
    spans = [
        (zone, begin, begin + size * grid.step)
        for zone, begin, size, grid in begins
        if zone is not None and begin is not None and grid is not None and grid.step is not None
    ]
    # One sequence without times would be followed by a clock that may not be its own.
    if len(spans) < len(begins) or len({zone for zone, _, _ in spans}) != 1:
        return None
    return Calendar.of(spans[0][0], min(a for _, a, _ in spans), max(b for _, _, b in spans))


def align_to_starts(beliefs: Sequence[Belief], sequences: Iterable[Any]) -> tuple[Belief, ...]:
    """Return the beliefs, those about days rotated to every phase in which a sequence begins.

    Noise that suffices for each of them suffices for every subject: a subject that begins φ phases
    later has the law of the belief rotated by φ, which is in the list; the other subjects are
    independent of it, so their contribution to a pooled answer is noise, and a mixture of ratios is
    at most the largest of them. For a sequence in which clocks change it is the belief from its
    first moment on. Other beliefs stay, and so do those with an initial distribution.

    >>> day = CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])
    >>> align_to_starts([day], [[0, 1, 1]]) == (day,)
    True

    Theorem: docs/theory/cyclic-chains.md
    """
    data = list(sequences)
    changing = [sequence for sequence in data if has_clock_change(sequence)]
    steady = [sequence for sequence in data if not has_clock_change(sequence)]
    aligned: dict[Belief, None] = {}
    for belief in beliefs:
        if not isinstance(belief, CyclicChain):
            aligned[belief] = None
            continue
        if isinstance(belief.initial, str):
            phases = sorted({belief.phases_before(sequence) for sequence in steady})
            aligned.update((belief.starting(phase), None) for phase in phases)
        # A given initial distribution cannot be rotated; `require_aligned` refuses other phases.
        elif steady or not changing:
            aligned[belief] = None
        begun = {(zone_name_of(sequence), utc_start(sequence)): sequence for sequence in changing}
        for (zone, moment), sequence in begun.items():
            assert moment is not None  # noqa: S101  (clocks are known to change)
            same = belief.calendar is not None and belief.calendar.zone == zone
            aligned[
                belief.beginning(moment, belief.calendar if same else calendar_of([sequence]))
            ] = None
    return tuple(aligned)


def require_aligned(beliefs: Sequence[Belief], sequences: Iterable[Any]) -> None:
    """Raise InvalidInputError for sequences whose first phase has no belief among those given."""
    data = list(sequences)
    dated = [belief for belief in beliefs if isinstance(belief, DatedChain)]
    if dated:
        _refuse_other_begins(
            dated, any(isinstance(belief, CyclicChain) for belief in beliefs), data
        )
    for belief in beliefs:
        if not isinstance(belief, CyclicChain):
            continue
        if belief.anchor is None and len(phases := _phases(belief, data)) > 1:
            raise InvalidInputError(
                f"Sequences begin in {len(phases)} of {belief.period} phases, and the moment of "
                "this belief's first phase is unknown. Give it the step and a moment of that "
                "phase: grid=qw.Grid(step='1h'), anchor=0 for midnight."
            )
        steady = [sequence for sequence in data if not dated or not has_clock_change(sequence)]
        if any(map(has_clock_change, steady)):
            raise InvalidInputError(
                "Clocks change in these data, and the beliefs of a ledger are fixed for one "
                "beginning. Create its dataset with the time of the first time point (quiltwork "
                "ledger create --begins 2026-01-01T00:00), or leave out the time zone: then time "
                "points are in local time."
            )
        if dated and not steady:
            continue
        for later in sorted({belief.phases_before(sequence) for sequence in steady} - {0}):
            if not isinstance(belief.initial, str):
                raise InvalidInputError(
                    f"Data begin {later} of {belief.period} phases later than this belief, whose "
                    "initial distribution is that of its first phase; make one with the "
                    "distribution of the other phase, or with initial='stationary'."
                )
            if belief.starting(later) not in beliefs:
                raise InvalidInputError(
                    f"Data begin {later} of {belief.period} phases later than this belief, and the "
                    "beliefs of a ledger are fixed; register the data with its "
                    f"starting({later}), for several phases with a list of one for each "
                    "(quiltwork belief turn writes them)."
                )


def _refuse_other_begins(dated: Sequence[DatedChain], steady: bool, data: Sequence[Any]) -> None:
    """Raise InvalidInputError for data that begin at a moment, or in a zone, without a belief.

    Data in which clocks do not change may have a `steady` belief.
    """
    begins, zones = {one.begins for one in dated}, {one.calendar.zone for one in dated}
    for sequence in data:
        moment, zone = utc_start(sequence), zone_name_of(sequence)
        if moment is None or (steady and not has_clock_change(sequence)):
            continue
        if zone not in zones:
            shown = ", ".join(sorted(zones))
            raise InvalidInputError(
                f"The belief follows the clock of {shown}, but the data have "
                f"{'no time zone' if zone is None else 'the zone ' + zone}; read them with "
                f"{argument('timezone', shown)}."
            )
        if moment not in begins:
            shown = ", ".join(sorted(one.begin_words for one in dated)[:3])
            raise InvalidInputError(
                f"Some data begin at another moment than the belief, which is about series from "
                f"{shown}; make a belief for each moment (quiltwork belief turn --begins …)."
            )


def _phases(belief: CyclicChain, data: Iterable[Any]) -> set[int]:
    """Return the phases in which sequences begin, where known, up to a common offset."""
    begins = [
        (local_start(sequence), getattr(grid_of_sequence(sequence), "step", None))
        for sequence in data
    ]
    return {begin // step % belief.period for begin, step in begins if begin is not None and step}
