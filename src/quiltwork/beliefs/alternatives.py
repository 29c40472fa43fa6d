"""`plausible`: the beliefs that public data do not rule out.

Every kind of memory is fitted on the data and scored by steps that were held out: blocks of each
sequence are dealt into two halves, and each half is scored by what the other says. A belief stays
if it is likely enough beside the best one. That is a rule for choosing what to protect against, not
a proof that an adversary believes nothing else.
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
_LEAST = 3.0
_MOST_PHASED = 150_000
"""So many phases times k³ are calibrated in half a minute; 1,440 minutes of four states are."""
_MOST_SCORED = 1_000_000


@dataclass(frozen=True)
class Candidate:
    """A belief with the log-likelihood of held-out data per step under it."""

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

    Tried are chains of order one and two, chains that know how long a state has lasted, and, where
    times are known or `period` is given, chains with a matrix per phase. A guarantee under the list
    holds against each of them. `candidates` tells the scores. A warning names a kind of memory that
    is likelier than all of these and too large to be calibrated.

    Args:
        sequences: one sequence or many, as in `MarkovChain.fit`; not the data to be released.
        states: the states; if not given, those of the grid, else the labels found, sorted.
        smoothing: as in `MarkovChain.fit`.
        period: as in `CyclicChain.fit`; "day" if not given and the times tell it.
        grid: what a time point and a state are; `read_series` notes it with what it reads.
        initial: how each of them begins.

    Raises:
        InvalidInputError: naming the sequence and position that cannot be read.

    >>> coins = MarkovChain([[0.5, 0.5], [0.5, 0.5]]).sample(2000, seed=1)
    >>> plausible(coins)[0]
    MarkovChain(2 states: 0, 1; initial='stationary')
    """
    found, beyond = evaluate_candidates(sequences, states, smoothing, period, grid, initial)
    for sentence in beyond:
        warnings.warn(sentence, QuiltworkWarning, stacklevel=2)
    return [one.belief for one in found if one.plausible]


def candidates(sequences: Any, **options: Any) -> list[Candidate]:
    """Return every belief that was tried with its score, the likeliest first; as in `plausible`.

    One is plausible if held-out data are at most 3 nats, or a hundredth of a nat per step, less
    likely under it than under the best. The simplest chain counts as best where nothing is likelier
    by more than 3 nats.
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
    """Return `candidates`, and a sentence for each memory that beats them and is too large.

    It beats them by the rule of `candidates`; scoring it is cheap, calibrating it is not.
    """
    data = _read(sequences, states, smoothing, period, grid)
    found = _candidates(data, sequences, smoothing, initial)
    return found, _beyond(data, found)


@dataclass(frozen=True, eq=False)
class _Data:
    """Sequences as state indices, and by phase of a clock where there is one."""

    paths: list[IntArray]
    labels: tuple[Label, ...]
    grid: Grid | None
    amount: float
    period: Any
    phases: PhaseCounts | None

    @property
    def steps(self) -> int:
        return sum(len(path) - 1 for path in self.paths)

    def remembering(self, kind: contexts.ContextModel) -> float:
        return contexts.held_out_log_likelihood(self.paths, kind, len(self.labels), self.amount)

    @property
    def second(self) -> bool:
        """Whether order two can be fitted and calibrated."""
        shown = max(map(len, self.paths)) > 2
        return shown and 1 < len(self.labels) ** 2 <= MOST_INNER

    @property
    def phased(self) -> bool:
        """Whether a matrix per phase can be fitted and calibrated."""
        size, phases = len(self.labels), 0 if self.phases is None else self.phases.halves.shape[1]
        return 0 < phases < sum(map(len, self.paths)) and phases * size**3 <= _MOST_PHASED


def _read(
    sequences: Any, states: Iterable[Any] | None, smoothing: Number, period: Any, grid: Grid | None
) -> _Data:
    pieces = recorded_runs(split_sequences(sequences))
    known = grid_of(pieces, grid)
    paths, labels = encode_paths(pieces, states, known)
    parts = pieces
    try:
        parts = tuple(part for piece in pieces for part in split_at_clock_changes(piece))
        divided = True
    except InvalidInputError:
        if period is not None:
            raise
        divided = False
    starts = [local_start(part) for part in parts]
    wanted, phases = _known_period(period, known, starts), None
    if not divided:
        wanted = None
    if wanted is not None:
        clock = parse_period(wanted, known, starts)
        if clock.period < sum(map(len, paths)) and clock.period * len(labels) ** 2 <= MOST_CELLS:
            phases = count_phase_transitions(parts, labels, known, clock)
    amount = max(parse_smoothing(smoothing), 0.5)
    return _Data(paths, labels, known, amount, wanted, phases)


def _candidates(data: _Data, sequences: Any, smoothing: Number, initial: Any) -> list[Candidate]:
    size = len(data.labels)
    given: dict[str, Any] = {"smoothing": smoothing, "states": data.labels, "grid": data.grid}
    given["initial"] = initial
    one = data.remembering(contexts.last_states(size, 1))
    scored: list[tuple[str, Belief, float]] = [
        ("order 1", MarkovChain.fit(sequences, **given), one)
    ]
    if data.second:
        score = data.remembering(contexts.last_states(size, 2))
        scored.append(("order 2", MarkovChain.fit(sequences, **given, order=2), score))
    cap = contexts.best_cap(data.paths, size, data.amount)
    if cap > 1:
        score = data.remembering(contexts.ages(size, cap))
        scored.append(("durations", MarkovChain.fit(sequences, **given, durations=True), score))
    if data.phases is not None and data.phased:
        told, alike = phase_log_likelihoods(data.phases, data.amount)
        if told > alike:  # turns are held out, not blocks: by how much a clock helps is what counts
            cyclic = CyclicChain.fit(sequences, data.period, **given)
            scored.append((_clock(data.period), cyclic, one + told - alike))
    return _judged(scored, data.steps)


def _beyond(data: _Data, found: list[Candidate]) -> list[str]:
    size, scores = len(data.labels), {}
    one = data.remembering(contexts.last_states(size, 1))
    if not data.second and size > 1 and size**3 <= _MOST_SCORED:
        scores[f"order 2, with {size**2:,} pasts,"] = data.remembering(
            contexts.last_states(size, 2)
        )
    if 2 * size > contexts.MOST_AGES:
        able = [cap for cap in contexts.CAPS if cap > 1 and cap * size**2 <= _MOST_SCORED]
        ages = [data.remembering(contexts.ages(size, cap)) for cap in able]
        scores["how long a state has lasted"] = max(ages, default=one)
    if data.phases is not None and not data.phased:
        told, plain = phase_log_likelihoods(data.phases, data.amount)
        turn = f"the {_clock(data.period)}, in {data.phases.halves.shape[1]:,} phases,"
        scores[turn] = one + told - plain
    best = max(candidate.per_step for candidate in found) * data.steps
    return [
        f"The data are likelier with {name} than with all that was fitted, by "
        f"{(score - best) / data.steps:.3f} nats per step, and {size} states are too many to "
        "protect against that; merge states (--edges, --states), or read longer steps (--every)."
        for name, score in scores.items()
        if score > best + nats_allowed(data.steps)
    ]


def _clock(period: Any) -> str:
    return "time of week" if isinstance(period, str) and period == "week" else "time of day"


def _known_period(period: Any, grid: Grid | None, starts: list[int | None]) -> Any:
    if period is not None:
        return period
    step = None if grid is None else grid.step
    timed = step is not None and _DAY % step == 0 and step < _DAY and None not in starts
    return "day" if timed else None


def nats_allowed(steps: int) -> float:
    """By how many nats a belief may be less likely than the best and stay."""
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
