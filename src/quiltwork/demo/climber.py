"""A greedy climber on three leaderboards, simulated: nothing can be learnt, so truth is ½.

Labels are fair coins that no feature knows. The climber asks for the accuracy of many random
classifiers, keeps those that the board calls better than ½, and submits their majority vote. A
plain board believes it; the reusable holdout and the Ladder do not. For simulation only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import Number, integer
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.reusable import ReusableHoldout

_MOST_CELLS = 10**9


@dataclass(frozen=True)
class Climb:
    """What each board claims for the climber's vote after so many questions.

    `plain` is the accuracy on the holdout itself, `reusable` the holdout's answer, None once its
    budget is spent, `ladder` the Ladder's best; `rounds` were spent of the reusable holdout.
    """

    questions: int
    plain: float
    reusable: float | None
    ladder: float
    rounds: int


@dataclass(frozen=True)
class Attack:
    """A simulated attack on so many rows: its climbs, the true accuracy of every classifier, and
    how far the Ladder's best may be off, at 95 %.
    """

    rows: int
    climbs: tuple[Climb, ...]
    truth: float
    ladder_width: float


def simulate_attack(
    rows: int = 2_000,
    questions: int = 1_000,
    threshold: Number = Fraction(1, 20),
    noise: Number = Fraction(1, 200),
    budget: int = 100,
    seed: int = 0,
) -> Attack:
    """Let the climber loose; O(rows·questions).

    `seed` is for the simulated data; the holdout's own noise is fresh at every run.

    >>> found = simulate_attack(rows=1000, questions=200)
    >>> found.climbs[-1].plain > 0.6, found.truth
    (True, 0.5)
    """
    count, most = integer(rows, "rows", 10), integer(questions, "questions", 1)
    if count * most > _MOST_CELLS:
        raise InvalidInputError(
            f"rows times questions can be at most {_MOST_CELLS:,}, which fits the memory; ask for "
            "fewer of one of them."
        )
    rng = np.random.default_rng(integer(seed, "seed", 0))
    train, held = (rng.integers(0, 2, (count, most + 1)).astype(bool) for _ in range(2))
    ours = ReusableHoldout(train, held, threshold=threshold, noise=noise, budget=budget)
    answers = [one.value for one in ours.ask_many(_every_classifier)]
    answers += [0.5] * (most - len(answers))
    exact = _every_classifier(held).mean(axis=0)
    board = Ladder(held, submissions=2 * most)
    checkpoints = sorted({max(1, round(most * share)) for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1)})
    climbs, tried, kept = [], 0, []
    for upto in checkpoints:
        kept += _climb_ladder(board, range(tried, upto))
        tried = upto
        board.submit("climber", partial(_vote, kept=tuple(kept)))
        by_exact, by_ours = _better(exact[:upto]), _better(answers[:upto])
        climbs.append(
            Climb(
                upto,
                float(_vote(held, by_exact).mean()),
                _asked(ours, by_ours),
                float(board.best or 0.0),
                budget - ours.remaining,
            )
        )
    return Attack(count, tuple(climbs), 0.5, board.width)


def _every_classifier(data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether each random classifier (a column) is right about the label (the last one)."""
    return np.asarray(data[:, :-1] == data[:, -1:])


def _better(scores: Sequence[float] | NDArray[np.float64]) -> tuple[tuple[int, bool], ...]:
    """Return the classifiers that look better than ½, and the others turned round."""
    return tuple((index, score > 0.5) for index, score in enumerate(scores) if score != 0.5)


def _vote(data: NDArray[np.bool_], kept: Sequence[tuple[int, bool]]) -> NDArray[np.bool_]:
    """Return whether the majority of the kept classifiers is right about each row."""
    votes = np.full(len(data), 0.5)
    for index, straight in kept:
        votes += np.where(data[:, index] == straight, 1, -1)
    return np.asarray((votes > 0) == data[:, -1])


def _asked(holdout: ReusableHoldout, kept: Sequence[tuple[int, bool]]) -> float | None:
    try:
        return holdout.ask(lambda data: _vote(data, kept), label="vote").value
    except BudgetExceeded:
        return None


def _climb_ladder(board: Ladder, tried: range) -> list[tuple[int, bool]]:
    """Submit each classifier and keep those that move the board."""
    kept = []
    for index in tried:
        moved = board.submit("climber", partial(_vote, kept=((index, True),)))
        if moved is not None:
            kept.append((index, True))
    return kept
