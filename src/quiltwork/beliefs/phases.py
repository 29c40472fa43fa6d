"""Phases of a day or another cycle: periods, transition counts by phase, pooling of neighbours.

The number of neighbouring phases that are pooled is chosen by held-out likelihood, so that few data
give few different matrices and many data give one per phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from quiltwork.arguments import listed
from quiltwork.beliefs.contexts import log_likelihood
from quiltwork.beliefs.grids import Grid, duration
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.transition_counts import encode_paths, parse_smoothing
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted, integer, shortened
from quiltwork.wording import argument

Period: TypeAlias = "int | Literal['day', 'week']"

_DAY, _WEEK = 86_400, 604_800
_MONDAY = 4 * _DAY  # the first moment of the clock was a Thursday
_CYCLES = {"day": (_DAY, 0), "week": (_WEEK, _MONDAY)}
_LONGEST = 100_000
MOST_CELLS = 10_000_000
"""The largest number of phases times k²; each takes some hundred bytes while pooling."""
_WEEKDAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")


@dataclass(frozen=True)
class PhaseClock:
    """A period in steps, the first phase of each sequence, and a moment of phase 0."""

    period: int
    phases: tuple[int, ...]
    anchor: int | None


@dataclass(frozen=True, eq=False)
class PhaseCounts:
    """Transition counts by fold, phase and states: (2, p, k, k)."""

    halves: FloatArray
    states: tuple[Label, ...]


def parse_period(
    period: Any, grid: Grid | None, starts: Sequence[int | None], phase: Any = None
) -> PhaseClock:
    """Return the phases of sequences that begin at these moments, or in these phases."""
    step = None if grid is None else grid.step
    if isinstance(period, str):
        length, anchor = _cycle(period, step)
    else:
        length, anchor = integer(period, "period", 1, _LONGEST), None
    if phase is not None:
        numbers = [phase] if np.ndim(phase) == 0 else listed(phase, "phase")
        if len(numbers) not in (1, len(starts)):
            raise InvalidInputError(
                f"phase has {len(numbers)} numbers for {len(starts)} sequences; give one for all "
                "or one for each."
            )
        first_phases = [integer(number, "phase", 0) % length for number in numbers]
        each = tuple(first_phases * (len(starts) // len(first_phases)))
        return PhaseClock(length, each, anchor)
    times = [start for start in starts if start is not None]
    if len(times) < len(starts) or step is None:
        if isinstance(period, str):
            raise InvalidInputError(
                f"period={period!r} needs the moment at which each sequence begins, which is "
                "unknown. Give phase=, the number of steps since midnight, or read the sequences "
                f"with read_series({argument('time')}, {argument('every')})."
            )
        return PhaseClock(length, (0,) * len(starts), None)
    first = times[0] if anchor is None else anchor
    phases = tuple((start - first) // step % length for start in times)
    return PhaseClock(length, phases, first % (length * step))


def _cycle(period: str, step: int | None) -> tuple[int, int]:
    if period not in _CYCLES:
        raise InvalidInputError(
            f"period is {shortened(period)}; give a number of time points, 'day' or 'week'."
        )
    seconds, anchor = _CYCLES[period]
    if step is None:
        raise InvalidInputError(
            f"period={period!r} needs the length of a step, which is not known; give it with "
            "grid=Grid(step='10min'), or give the period as a number of time points."
        )
    if seconds % step or seconds // step > _LONGEST:
        raise InvalidInputError(
            f"Steps of {duration(step)} do not divide a {period} into at most {_LONGEST:,} phases; "
            "read the data in other steps."
        )
    return seconds // step, anchor


def cycle_words(period: int, step: int | None) -> str:
    """Return a cycle in words: the time of day or of the week, where the step is known.

    >>> cycle_words(24, 3600), cycle_words(24, None)
    ('the time of day (24 phases)', 'a cycle of 24 time points')
    """
    times = {_DAY: "the time of day", _WEEK: "the time of the week"}
    if step is not None and period * step in times:
        return f"{times[period * step]} ({period} phases)"
    return f"a cycle of {counted(period, 'time point')}"


def start_suffix(anchor: int, cycle: int) -> str:
    """Return the time of phase 0 for a repr; "" for midnight, or for Monday in a week.

    >>> start_suffix(8 * 3600, 86_400), start_suffix(_MONDAY, 604_800), start_suffix(60, 604_800)
    (', from 08:00', '', ', from Thursday 00:01')
    """
    if anchor % cycle in {start for length, start in _CYCLES.values() if length == cycle}:
        return ""
    minutes = anchor % _DAY // 60
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}"
    if cycle == _DAY:
        return f", from {clock}"
    return f", from {_WEEKDAYS[anchor % _WEEK // _DAY]} {clock}" if cycle == _WEEK else ""


def count_phase_transitions(
    sequences: Sequence[Any], states: Iterable[Any] | None, grid: Grid | None, clock: PhaseClock
) -> PhaseCounts:
    """Return transition counts by phase; periods alternate between two folds. O(T + p·k²)."""
    paths, labels = encode_paths(sequences, states, grid)
    size, period = len(labels), clock.period
    if sum(map(len, paths)) <= period:
        raise InvalidInputError(
            f"The data have no more time points than one period of {period}, so no phase occurs "
            "twice; use a shorter period, or more data."
        )
    if period * size * size > MOST_CELLS:
        raise InvalidInputError(
            f"{period:,} phases of {size:,} states make {period * size * size:,} transitions; at "
            f"most {MOST_CELLS:,} are fitted. Merge states (wider edges), or use longer steps."
        )
    counts = np.zeros(2 * period * size * size)
    for number, (path, first) in enumerate(zip(paths, clock.phases, strict=True)):
        cycle, phase = np.divmod(np.arange(len(path) - 1) + first, period)
        cell = (((cycle + number) % 2 * period + phase) * size + path[:-1]) * size + path[1:]
        counts += np.bincount(cell, minlength=len(counts))
    return PhaseCounts(counts.reshape(2, period, size, size), labels)


def smoothed_phases(counted: PhaseCounts, smoothing: object) -> FloatArray:
    """Return one matrix per phase, (p, k, k), with pooling chosen by held-out likelihood."""
    amount, scores = parse_smoothing(smoothing), {}
    if all(half.any() for half in counted.halves):
        scores = _scores(counted, max(amount, 0.5))
    width = max(scores, key=lambda reach: (scores[reach], reach), default=counted.halves.shape[1])
    matrices = pooled_matrices(counted.halves.sum(axis=0), width, amount)
    if np.isnan(matrices).any():
        raise InvalidInputError(
            "A state is never left in some phase of the data, so without smoothing its transition "
            "probabilities have no estimate; use smoothing > 0."
        )
    return matrices


def phase_log_likelihoods(counted: PhaseCounts, smoothing: float) -> tuple[float, float]:
    """Return held-out log-likelihoods: with the best pooling, and with all phases pooled."""
    scores = _scores(counted, smoothing)
    return max(scores.values()), scores[counted.halves.shape[1]]


def _scores(counted: PhaseCounts, smoothing: float) -> dict[int, float]:
    """Return the held-out log-likelihood for every reach of pooling."""
    a, b = counted.halves
    return {
        reach: sum(
            log_likelihood(test, pooled_matrices(fitted, reach, smoothing))
            for fitted, test in ((a, b), (b, a))
        )
        for reach in _reaches(len(a))
    }


def _reaches(period: int) -> list[int]:
    """Return the reaches tried: 0, 1, 2, 4, … phases to either side, and all phases."""
    most = (period - 1) // 2
    return [0, *(1 << power for power in range(most.bit_length()) if 1 << power <= most), period]


def pooled_matrices(counts: FloatArray, reach: int, smoothing: float) -> FloatArray:
    """Return a matrix per phase from phases up to `reach` away, smoothed towards all phases."""
    period, size = len(counts), counts.shape[1]
    overall = counts.sum(axis=0) + smoothing
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = overall / overall.sum(axis=1, keepdims=True)
        if 2 * reach + 1 >= period:
            return np.broadcast_to(overall, counts.shape).copy()
        around = np.concatenate([counts[period - reach :], counts, counts[:reach]])
        sums = np.concatenate([np.zeros((1, size, size)), np.cumsum(around, axis=0)])
        rows = sums[2 * reach + 1 :] - sums[:period] + smoothing * size * overall
        return np.asarray(rows / rows.sum(axis=2, keepdims=True))
