"""How far a Ladder leaderboard's best score can be from the truth, whatever the contestants do.

All that contestants learn is a sequence of scores that never gets worse, on a grid of 1/g; there
are C(k+g+1, g+2) beginnings of such sequences, so as many submissions could ever be made, and one
union bound covers them all.

Theorem: docs/theory/ladder.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from quiltwork.beliefs import Belief
from quiltwork.holdout.concentration import concentration

_UP = 1 + 2.0**-40
_FINEST = 4096


def log_possible_submissions(submissions: int, steps: int) -> float:
    """Return ln C(k+g+1, g+2), rounded up: Σ_t of the beginnings of length t−1.

    Scores take the g+1 values 0, 1/g, …, 1, or "none yet".
    """
    top, chosen = submissions + steps + 1, steps + 2
    found = math.lgamma(top + 1) - math.lgamma(chosen + 1) - math.lgamma(top - chosen + 1)
    return max(0.0, found) * _UP + 2.0**-40


def width_at(
    beliefs: Belief | Sequence[Belief] | None, rows: int, submissions: int, beta: float, steps: int
) -> float:
    """Return the width with a given grid: √((ln(2/β) + ln N)/(κn)) + 1/g.

    Theorem: docs/theory/ladder.md
    """
    rate = concentration(beliefs).rate
    exponent = math.log(2 / beta) + log_possible_submissions(submissions, steps)
    return (math.sqrt(exponent / (rate * rows)) + 1 / steps) * _UP


def best_steps(
    beliefs: Belief | Sequence[Belief] | None, rows: int, submissions: int, beta: float
) -> int:
    """Return the number of steps g, up to 4096, with the least width."""
    rate = concentration(beliefs).rate

    def width(steps: int) -> float:
        exponent = math.log(2 / beta) + log_possible_submissions(submissions, steps)
        return math.sqrt(exponent / (rate * rows)) + 1 / steps

    return min(range(1, _FINEST + 1), key=width)


def ladder_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, submissions: int, beta: float
) -> float:
    """Return the least width of a Ladder with this many rows and submissions."""
    steps = best_steps(beliefs, rows, submissions, beta)
    return width_at(beliefs, rows, submissions, beta, steps)
