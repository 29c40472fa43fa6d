"""Ten thousand questions and submissions on a hundred thousand rows, against means without any
protection, and what one more question costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.harness import compare
from quiltwork.holdout import Ladder, ReusableHoldout

ROWS, QUESTIONS, COLUMNS, CHUNK = 100_000, 10_000, 1000, 100


def agreement(rows: np.ndarray, start: int, shift: int) -> np.ndarray:
    """A hundred questions: in how many rows a column agrees with another one."""
    other = (start + shift) % COLUMNS
    return rows[:, start : start + CHUNK] == rows[:, other : other + 1]


def statistics() -> list[Callable[[np.ndarray], np.ndarray]]:
    shifts = range(1, QUESTIONS // COLUMNS + 1)
    return [
        partial(agreement, start=start, shift=shift)
        for shift in shifts
        for start in range(0, COLUMNS, CHUNK)
    ]


def _right(rows: np.ndarray, model: int) -> np.ndarray:
    return rows[:, model] == rows[:, 0]


def main() -> None:
    rng = np.random.default_rng(0)
    train, held = (rng.integers(0, 2, (ROWS, COLUMNS), dtype=np.uint8).astype(bool) for _ in "12")
    holdout = ReusableHoldout(train, held, threshold=0.1, noise=0.001, budget=50)

    def ours() -> None:
        found = holdout.ask_many(statistics())
        assert len(found) == QUESTIONS

    def unprotected() -> None:
        for one in statistics():
            one(train).mean(axis=0)
            one(held).mean(axis=0)

    compare(
        "10,000 questions on 100,000 rows",
        {"quiltwork": ours, "numpy means, unprotected": unprotected},
        repeats=3,
        memory=False,
    )
    votes = np.asfortranarray(held[:, :101])  # the label, then what a hundred models say
    right = [partial(_right, model=1 + number % 100) for number in range(QUESTIONS)]

    def submitted() -> None:
        board = Ladder(votes, submissions=QUESTIONS)
        for one in right:
            board.submit("team", one)

    def scored() -> None:
        for one in right:
            one(votes).mean()

    compare(
        "10,000 submissions to a Ladder on 100,000 rows",
        {"quiltwork": submitted, "numpy means, unprotected": scored},
        repeats=3,
        memory=False,
    )
    compare(
        "One question on 100,000 rows",
        {
            "quiltwork": lambda: holdout.ask(lambda rows: rows[:, 0] == rows[:, 1]),
            "numpy means, unprotected": lambda: [
                (rows[:, 0] == rows[:, 1]).mean() for rows in (train, held)
            ],
        },
        repeats=9,
        memory=False,
    )


if __name__ == "__main__":
    main()
