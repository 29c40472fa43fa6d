"""A simulated climbing attack on three leaderboards where the true accuracy is always ½.

Labels are fair coins, independent of all features. The attacker asks for the accuracy of many
random classifiers, keeps those with a reported accuracy above ½, and submits their majority vote. A
plain board overestimates that vote; the reusable holdout and the Ladder do not.
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

_MAX_CELLS = 10**9


@dataclass(frozen=True)
class Climb:
    """The accuracy that each board reports for the attacker's vote after some questions.

    `plain` is the accuracy on the holdout itself, `reusable` the reusable holdout's answer (None
    once its budget is spent), `ladder` the Ladder's best score; `rounds` counts the rounds spent.
    """

    questions: int
    plain: float
    reusable: float | None
    ladder: float
    rounds: int


@dataclass(frozen=True)
class Attack:
    """A simulated attack: reported accuracies, the true one, the Ladder's 95 % error bound."""

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
    """Simulate the attack; O(rows·questions).

    `seed` fixes the simulated data; the holdout's own noise differs at every run.

    >>> attack = simulate_attack(rows=1000, questions=200)
    >>> attack.climbs[-1].plain > 0.6, attack.truth
    (True, 0.5)
    """
    count, total = integer(rows, "rows", 10), integer(questions, "questions", 1)
    if count * total > _MAX_CELLS:
        raise InvalidInputError(
            f"rows times questions can be at most {_MAX_CELLS:,}, to fit in memory. Reduce one of "
            "them."
        )
    rng = np.random.default_rng(integer(seed, "seed", 0))
    train, held = (rng.integers(0, 2, (count, total + 1)).astype(bool) for _ in range(2))
    ours = ReusableHoldout(train, held, threshold=threshold, noise=noise, budget=budget)
    answers = [answer.value for answer in ours.ask_many(_every_classifier)]
    answers += [0.5] * (total - len(answers))
    exact = _every_classifier(held).mean(axis=0)
    board = Ladder(held, submissions=2 * total)
    checkpoints = sorted({max(1, round(total * share)) for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1)})
    climbs, tried, kept = [], 0, []
    for upto in checkpoints:
        kept += _climb_ladder(board, range(tried, upto))
        tried = upto
        board.submit("climber", partial(_vote, kept=tuple(kept)))
        by_exact, by_ours = _keep_better(exact[:upto]), _keep_better(answers[:upto])
        climbs.append(
            Climb(
                upto,
                float(_vote(held, by_exact).mean()),
                _reusable_accuracy(ours, by_ours),
                float(board.best or 0.0),
                budget - ours.remaining,
            )
        )
    return Attack(count, tuple(climbs), 0.5, board.width)


def _every_classifier(data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether each random classifier (a column) predicts the label (the last column)."""
    return np.asarray(data[:, :-1] == data[:, -1:])


def _keep_better(scores: Sequence[float] | NDArray[np.float64]) -> tuple[tuple[int, bool], ...]:
    """Return each classifier with whether to use it (above ½) or its negation (below ½)."""
    return tuple((index, score > 0.5) for index, score in enumerate(scores) if score != 0.5)


def _vote(data: NDArray[np.bool_], kept: Sequence[tuple[int, bool]]) -> NDArray[np.bool_]:
    """Return whether the majority vote of the kept classifiers is right about each row."""
    votes = np.full(len(data), 0.5)
    for index, straight in kept:
        votes += np.where(data[:, index] == straight, 1, -1)
    return np.asarray((votes > 0) == data[:, -1])


def _reusable_accuracy(holdout: ReusableHoldout, kept: Sequence[tuple[int, bool]]) -> float | None:
    """Return the reusable holdout's answer for a vote; None once its budget is spent."""
    try:
        return holdout.ask(lambda data: _vote(data, kept), label="vote").value
    except BudgetExceeded:
        return None


def _climb_ladder(board: Ladder, tried: range) -> list[tuple[int, bool]]:
    """Submit each classifier and keep those that improve the board's best score."""
    kept = []
    for index in tried:
        announced = board.submit("climber", partial(_vote, kept=((index, True),)))
        if announced is not None:
            kept.append((index, True))
    return kept
