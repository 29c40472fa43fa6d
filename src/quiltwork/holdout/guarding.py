"""`guard`: an evaluation function that can be called again and again without fooling anybody.

For searches that call a function with a candidate and read a number: grid searches, Optuna, an
agent in a loop. What it calls is a holdout or a board, so whatever these promise holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.reusable import ReusableHoldout


def guard(
    evaluate: Callable[[Any, Any], Any], *, holdout: ReusableHoldout | Ladder
) -> Callable[[Any], float]:
    """Wrap an evaluation so that every score comes from a holdout or a board.

    Args:
        evaluate: called as evaluate(candidate, rows); returns one value in [0, 1] for each row,
            larger is better.
        holdout: what answers: a `ReusableHoldout` with the candidate's score, a `Ladder` with the
            best score so far, which the candidate may have lifted.

    Returns:
        A function of the candidate alone. It raises `BudgetExceeded` when nothing is left, never
        a number in its place, so that no search mistakes silence for a score.

    Raises:
        InvalidInputError: for what is no function, or neither a holdout nor a board.

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(2000, 2))
    >>> held = ReusableHoldout(rows[:1000], rows[1000:], threshold=0.1, noise=0.01, budget=2)
    >>> score = guard(lambda cut, data: data[:, 0] > cut, holdout=held)
    >>> round(score(0.0), 1), held.asked
    (0.5, 1)
    """
    if not callable(evaluate):
        raise InvalidInputError(
            f"evaluate must be a function of a candidate and rows, not {shortened(evaluate)}."
        )
    if isinstance(holdout, ReusableHoldout):
        return lambda candidate: holdout.ask(lambda rows: evaluate(candidate, rows)).value
    if isinstance(holdout, Ladder):
        return lambda candidate: _submit(holdout, lambda rows: evaluate(candidate, rows))
    raise InvalidInputError(
        f"holdout must be a ReusableHoldout or a Ladder, not {type(holdout).__name__}."
    )


def _submit(board: Ladder, statistic: Callable[[Any], Any]) -> float:
    board.submit("guarded", statistic)
    return 0.0 if board.best is None else board.best
