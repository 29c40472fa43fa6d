"""`plausible`: the beliefs that public data do not rule out, by held-out likelihood.

Every kind of memory is fitted on the data and scored on held-out steps: blocks of each sequence are
dealt into two halves, and each half is scored by the fit on the other. A belief stays if its
likelihood is close to that of the best one. This is a rule for choosing what to protect against,
not a proof that an adversary believes nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quiltwork.beliefs import contexts
from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.contexts import MOST_INNER
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import IntArray
from quiltwork.beliefs.origins import grid_of, local_start, split_at_clock_changes
from quiltwork.beliefs.phases import (
    MOST_CELLS,
    PhaseCounts,
    count_phase_transitions,
    parse_period,
    phase_log_likelihoods,
)
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.transition_counts import encode_paths, parse_smoothing
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.exact import Number

_DAY = 86_400
_NATS = 0.01
"""Nats per step by which a plausible belief may be less likely than the best …"""
_LEAST = 3.0
"""… but never less than so many nats in all: a likelihood ratio of 20."""
_MOST_PHASED = 150_000
"""Phases times k³ that are calibrated in half a minute, such as 1,440 minutes of four states."""
_MOST_SCORED = 1_000_000


@dataclass(frozen=True)
class Candidate:
    """A fitted belief with its held-out log-likelihood per step, and whether it is plausible."""

    name: str
    belief: Belief
    per_step: float
    plausible: bool


def plausible(
    sequences: Any,
    *,
    states: Iterable[Any] | None = None,
    smoothing: Number = 0.5,
    period: Any = None,
    grid: Grid | None = None,
    initial: Literal["stationary", "any"] = "stationary",
) -> list[Belief]:
    """Return the beliefs that these (public) data do not rule out, the likeliest first.

    Fitted are chains of order one and two, chains with durations (how long a state has lasted),
    and, where times are known or `period` is given, chains with a matrix per phase. A guarantee
    under the list holds against each of them. `candidates` returns the scores. A warning names a
    kind of memory that fits better than all of these but is too large to calibrate.

    Args:
        sequences: one sequence or many, as in `MarkovChain.fit`; not the data to be released.
        states: the states; if not given, those of the grid, else the labels found, sorted.
        smoothing: as in `MarkovChain.fit`.
        period: as in `CyclicChain.fit`; by default "day" where times are known.
        grid: the step and states of the data; `read_series` records it with what it reads.
        initial: the start of each belief.

    Raises:
        InvalidInputError: naming the sequence and position that cannot be read.

    >>> coins = MarkovChain([[0.5, 0.5], [0.5, 0.5]]).sample(2000, seed=1)
    >>> plausible(coins)[0]
    MarkovChain(2 states: 0, 1; initial='stationary')
    """
    fitted, too_large = evaluate_candidates(sequences, states, smoothing, period, grid, initial)
    for sentence in too_large:
        warnings.warn(sentence, QuiltworkWarning, stacklevel=2)
    return [candidate.belief for candidate in fitted if candidate.plausible]


def candidates(sequences: Any, **options: Any) -> list[Candidate]:
    """Return every fitted belief with its score, the likeliest first; arguments as `plausible`.

    A belief is plausible if the held-out log-likelihood is at most 3 nats, or a hundredth of a nat
    per step, below the best. The chain of order 1 comes first unless another is 3 nats likelier.
    """
    return evaluate_candidates(sequences, **options)[0]


def evaluate_candidates(
    sequences: Any,
    states: Iterable[Any] | None = None,
    smoothing: Number = 0.5,
    period: Any = None,
    grid: Grid | None = None,
    initial: Any = "stationary",
) -> tuple[list[Candidate], list[str]]:
    """Return `candidates`, and a warning for each better kind of memory that is too large.

    Better by the rule of `candidates`: scoring such a memory is cheap, calibrating it is not.
    """
    data = _encode(sequences, states, smoothing, period, grid)
    fitted = _candidates(data, sequences, smoothing, initial)
    return fitted, _too_large_memories(data, fitted)


@dataclass(frozen=True, eq=False)
class _Data:
    """Sequences as state indices, with transition counts by phase where times are known."""

    paths: list[IntArray]
    labels: tuple[Label, ...]
    grid: Grid | None
    amount: float
    period: Any
    phases: PhaseCounts | None

    @property
    def steps(self) -> int:
        return sum(len(path) - 1 for path in self.paths)

    def score(self, kind: contexts.ContextModel) -> float:
        return contexts.held_out_log_likelihood(self.paths, kind, len(self.labels), self.amount)

    @property
    def second(self) -> bool:
        """Whether order two can be fitted and calibrated."""
        long_enough = max(map(len, self.paths)) > 2
        return long_enough and 1 < len(self.labels) ** 2 <= MOST_INNER

    @property
    def phased(self) -> bool:
        """Whether a matrix per phase can be fitted and calibrated."""
        size, phases = len(self.labels), 0 if self.phases is None else self.phases.halves.shape[1]
        return 0 < phases < sum(map(len, self.paths)) and phases * size**3 <= _MOST_PHASED


def _encode(
    sequences: Any, states: Iterable[Any] | None, smoothing: Number, period: Any, grid: Grid | None
) -> _Data:
    pieces = recorded_runs(split_sequences(sequences))
    common = grid_of(pieces, grid)
    paths, labels = encode_paths(pieces, states, common)
    parts = pieces
    try:
        parts = tuple(part for piece in pieces for part in split_at_clock_changes(piece))
        divided = True
    except InvalidInputError:
        if period is not None:
            raise
        divided = False
    starts = [local_start(part) for part in parts]
    cycle, phases = _default_period(period, common, starts), None
    if not divided:
        cycle = None
    if cycle is not None:
        clock = parse_period(cycle, common, starts)
        if clock.period < sum(map(len, paths)) and clock.period * len(labels) ** 2 <= MOST_CELLS:
            phases = count_phase_transitions(parts, labels, common, clock)
    amount = max(parse_smoothing(smoothing), 0.5)
    return _Data(paths, labels, common, amount, cycle, phases)


def _candidates(data: _Data, sequences: Any, smoothing: Number, initial: Any) -> list[Candidate]:
    size = len(data.labels)
    options: dict[str, Any] = {"smoothing": smoothing, "states": data.labels, "grid": data.grid}
    options["initial"] = initial
    first = data.score(contexts.last_states(size, 1))
    scored: list[tuple[str, Belief, float]] = [
        ("order 1", MarkovChain.fit(sequences, **options), first)
    ]
    if data.second:
        score = data.score(contexts.last_states(size, 2))
        scored.append(("order 2", MarkovChain.fit(sequences, **options, order=2), score))
    cap = contexts.best_cap(data.paths, size, data.amount)
    if cap > 1:
        score = data.score(contexts.ages(size, cap))
        scored.append(("durations", MarkovChain.fit(sequences, **options, durations=True), score))
    if data.phases is not None and data.phased:
        by_phase, pooled = phase_log_likelihoods(data.phases, data.amount)
        # Whole turns are held out here, not blocks, so only the gain over one matrix is comparable.
        if by_phase > pooled:
            cyclic = CyclicChain.fit(sequences, data.period, **options)
            scored.append((_clock(data.period), cyclic, first + by_phase - pooled))
    return _judged(scored, data.steps)


def _too_large_memories(data: _Data, fitted: list[Candidate]) -> list[str]:
    size, scores = len(data.labels), {}
    first = data.score(contexts.last_states(size, 1))
    if not data.second and size > 1 and size**3 <= _MOST_SCORED:
        scores[f"order 2, with {size**2:,} pasts,"] = data.score(contexts.last_states(size, 2))
    if 2 * size > contexts.MOST_AGES:
        caps = [cap for cap in contexts.CAPS if cap > 1 and cap * size**2 <= _MOST_SCORED]
        ages = [data.score(contexts.ages(size, cap)) for cap in caps]
        scores["how long a state has lasted"] = max(ages, default=first)
    if data.phases is not None and not data.phased:
        by_phase, pooled = phase_log_likelihoods(data.phases, data.amount)
        cycle = f"the {_clock(data.period)}, in {data.phases.halves.shape[1]:,} phases,"
        scores[cycle] = first + by_phase - pooled
    best = max(candidate.per_step for candidate in fitted) * data.steps
    return [
        f"The data are likelier with {name} than with all that was fitted, by "
        f"{(score - best) / data.steps:.3f} nats per step, and {size} states are too many to "
        "protect against that; merge states (--edges, --states), or read longer steps (--every)."
        for name, score in scores.items()
        if score > best + nats_allowed(data.steps)
    ]


def _clock(period: Any) -> str:
    return "time of week" if isinstance(period, str) and period == "week" else "time of day"


def _default_period(period: Any, grid: Grid | None, starts: list[int | None]) -> Any:
    if period is not None:
        return period
    step = None if grid is None else grid.step
    timed = step is not None and _DAY % step == 0 and step < _DAY and None not in starts
    return "day" if timed else None


def nats_allowed(steps: int) -> float:
    """Return the nats by which a plausible belief may be less likely than the best."""
    return max(_LEAST, _NATS * steps)


def _judged(scored: list[tuple[str, Belief, float]], steps: int) -> list[Candidate]:
    best = max(score for _, _, score in scored)
    order = np.argsort(
        [-score - (_LEAST if n == 0 else 0) for n, (_, _, score) in enumerate(scored)]
    )
    return [
        Candidate(name, belief, score / max(1, steps), score >= best - nats_allowed(steps))
        for name, belief, score in (scored[place] for place in order.tolist())
    ]
