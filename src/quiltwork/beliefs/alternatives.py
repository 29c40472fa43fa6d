"""`plausible`: the beliefs that public data do not rule out.

Every kind of memory is fitted on the data and scored by steps that were held out: blocks of each
sequence are dealt into two halves, and each half is scored by what the other says. A belief stays
if it is likely enough beside the best one. That is a rule for choosing what to protect against, not
a proof that an adversary believes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quiltwork.beliefs import contexts
from quiltwork.beliefs.base import Belief
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.contexts import MOST_INNER
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.fitting import read_paths, read_smoothing
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import IntArray
from quiltwork.beliefs.origins import grid_of, start_of
from quiltwork.beliefs.phases import held_out_phases, read_period, tally_phases
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.exact import Number

_DAY = 86_400
_NATS = 0.01
_LEAST = 3.0


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
) -> list[Belief]:
    """Return the beliefs that these (public) data do not rule out, the likeliest first.

    Tried are chains of order one and two, chains that know how long a state has lasted, and, where
    times are known or `period` is given, chains with a matrix per phase. A guarantee under the list
    holds against each of them. `candidates` tells the scores.

    Args:
        sequences: one sequence or many, as in `MarkovChain.fit`; not the data to be released.
        states: the states; if not given, those of the grid, else the labels found, sorted.
        smoothing: as in `MarkovChain.fit`.
        period: as in `CyclicChain.fit`; "day" if not given and the times tell it.
        grid: what a time point and a state are; `read_series` notes it with what it reads.

    Raises:
        InvalidInputError: naming the sequence and position that cannot be read.

    >>> coins = MarkovChain([[0.5, 0.5], [0.5, 0.5]]).sample(2000, seed=1)
    >>> plausible(coins)[0]
    MarkovChain(2 states: 0, 1; initial='stationary')
    """
    found = candidates(sequences, states=states, smoothing=smoothing, period=period, grid=grid)
    return [one.belief for one in found if one.plausible]


def candidates(
    sequences: Any,
    *,
    states: Iterable[Any] | None = None,
    smoothing: Number = 0.5,
    period: Any = None,
    grid: Grid | None = None,
) -> list[Candidate]:
    """Return every belief that was tried with its score, the likeliest first.

    One is plausible if held-out data are at most 3 nats, or a hundredth of a nat per step, less
    likely under it than under the best. The simplest chain counts as best where nothing is likelier
    by more than 3 nats.
    """
    pieces = split_sequences(sequences)
    known = grid_of(pieces, grid)
    paths, labels = read_paths(pieces, states, known)
    amount, size = max(read_smoothing(smoothing), 0.5), len(labels)
    given: dict[str, Any] = {"smoothing": smoothing, "states": labels, "grid": known}
    one = contexts.last_states(size, 1)
    scored: list[tuple[str, Belief, float]] = [
        ("order 1", MarkovChain.fit(sequences, **given), _score(paths, one, size, amount))
    ]
    if size**2 <= MOST_INNER and size > 1:
        score = _score(paths, contexts.last_states(size, 2), size, amount)
        scored.append(("order 2", MarkovChain.fit(sequences, **given, order=2), score))
    cap = contexts.best_cap(paths, size, amount)
    if cap > 1:
        score = _score(paths, contexts.ages(size, cap), size, amount)
        scored.append(("durations", MarkovChain.fit(sequences, **given, durations=True), score))
    wanted = _known_period(period, known, [start_of(piece) for piece in pieces])
    if wanted is not None:
        clock = read_period(wanted, known, [start_of(piece) for piece in pieces])
        halves = tally_phases(pieces, labels, known, clock)
        cyclic = CyclicChain.fit(sequences, wanted, **given)
        told, plain = held_out_phases(halves, amount)
        if told > plain:  # turns are held out, not blocks: by how much a clock helps is what counts
            scored.append(("time of day", cyclic, scored[0][2] + told - plain))
    return _judged(scored, sum(len(path) - 1 for path in paths))


def _score(paths: list[IntArray], kind: contexts.Remembered, size: int, smoothing: float) -> float:
    return contexts.held_out(paths, kind, size, smoothing)


def _known_period(period: Any, grid: Grid | None, starts: list[int | None]) -> Any:
    if period is not None:
        return period
    step = None if grid is None else grid.step
    timed = step is not None and _DAY % step == 0 and step < _DAY and None not in starts
    return "day" if timed else None


def _judged(scored: list[tuple[str, Belief, float]], steps: int) -> list[Candidate]:
    best = max(score for _, _, score in scored)
    room = max(_LEAST, _NATS * steps)
    order = np.argsort(
        [-score - (_LEAST if n == 0 else 0) for n, (_, _, score) in enumerate(scored)]
    )
    return [
        Candidate(name, belief, score / max(1, steps), score >= best - room)
        for name, belief, score in (scored[place] for place in order.tolist())
    ]
