"""`OneBit`: a leaderboard that publishes only whether a submission is better than the best.

The best score on the holdout is secret. A submission that beats it by more than a step of 1/g
replaces it, and that fact is published. There are at most g such improvements among k verdicts, so
N = Σ_{b ≤ g} C(k, b+1) submissions are possible. The final score is published once, rounded up to
an eighth of a step, and ends the board.

Theorem: docs/theory/counting.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from quiltwork.beliefs import Belief
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import exponents, one_bit_levels
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.metrics import MEAN, Metric
from quiltwork.holdout.sealed_log import SealedLog, Secret
from quiltwork.holdout.transcript import (
    BETTER,
    FINAL_GRID_FACTOR,
    KEPT,
    UNMOVED,
    Standing,
    Transcript,
)

_FINE = 1 << 50
"""The secret best score is stored as a multiple of one over this."""


def verdict_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    submissions: int,
    beta: float,
    steps: int,
    metric: Metric = MEAN,
    announcements: int | None = None,
) -> float:
    """Return the error width of a verdict: a step, plus twice the error width of a score.

    Theorem: docs/theory/counting.md
    """
    levels = one_bit_levels(submissions, steps, announcements)
    exponent = exponents(levels, beta, len(metric.signs))[-1]
    return 1 / steps + 2 * metric.spread(concentration(beliefs).width_at(rows, exponent))


def final_score_width(verdict: float, steps: int) -> float:
    """Return the error width of the final score, rounding to an eighth of a step included."""
    return (verdict - 1 / steps) / 2 + 1 / (FINAL_GRID_FACTOR * steps)


class OneBit(Ladder):
    """A leaderboard of yes-or-no verdicts; its arguments are those of a `Ladder`.

    >>> import numpy as np
    >>> board = OneBit(np.arange(20_000) % 2, submissions=100, steps=8)
    >>> board.submit("ada", lambda rows: rows == 1)
    Standing(number=1, team='ada', score=None)
    >>> board.submit("bob", lambda rows: rows == 0) is None
    True
    >>> board.final()
    0.5

    Theorem: docs/theory/counting.md
    """

    schema = ("one-bit", 1)
    kind = "one bit"
    _width_at = staticmethod(verdict_width)

    def _begin(
        self, data: object, transcript: Transcript, secret: Secret, log: SealedLog | None
    ) -> None:
        super()._begin(data, transcript, secret, log)
        self._announce_interrupted()

    def _announce_interrupted(self) -> None:
        """Record the verdict of an interrupted improvement, which keeps the best score.

        A secret older than a recorded improvement is refused.
        """
        best_submission, announced = (
            self._secret.round,
            [standing.number for standing in self._announced],
        )
        if best_submission == (announced[-1] if announced else None):
            return
        if (
            best_submission is None
            or best_submission in announced
            or best_submission > self.submitted
        ):
            raise StorageError(
                "The secret file of this board is older than its transcript. Restore the latest "
                "one; without it the best score is unknown, and the board cannot continue."
            )
        self._record(best_submission, BETTER)

    @property
    def best(self) -> float | None:
        """The best score, published at the end; None before."""
        return self._transcript.best

    def _place(self, number: int, score: Fraction) -> Standing | None:
        self._check_open()
        if not self.announces:
            return self._record(number, KEPT)
        value = int(score * _FINE)
        if self._announced and (value - self._secret.threshold) * self.steps <= _FINE:
            return self._record(number, UNMOVED)
        # The secret first: if interrupted in between, `resume` records whose improvement it was.
        self._keep(replace(self._secret, round=number, threshold=value))
        return self._record(number, BETTER)

    @property
    def remaining(self) -> int:
        """The number of submissions left; 0 after the end."""
        return 0 if self._transcript.ended else super().remaining

    def final(self) -> float:
        """Publish the best score, rounded up to an eighth of a step, and end the board.

        Raises:
            InvalidInputError: if nothing was submitted yet.
            StorageError: if it could not be recorded; it is then withheld.
        """
        with self._alone():
            if self._transcript.best is None:
                self._check_open()
                if not self._announced:
                    raise InvalidInputError("There are no submissions yet, so there is no score.")
                # Rounded, because an exact score of crafted predictions would spell out labels. Up,
                # so that no rejected submission is more than a step above it.
                grid = FINAL_GRID_FACTOR * self.steps
                score = Fraction(math.ceil(Fraction(self._secret.threshold, _FINE) * grid), grid)
                self._append([{"best": str(score)}])
                self._transcript = replace(self._transcript, best=float(score))
            return float(self._transcript.best or 0.0)

    def explain(self) -> str:
        """Return the theorem and its bound for this board."""
        text = (
            f"One bit for each of {self.submissions:,} submissions on {self.rows:,} rows, "
            f"{self.remaining:,} left: better than the best by more than 1/{self.steps}, or not. "
            f"With probability {self.confidence:g} every verdict is right up to {self.width:.4g}, "
            "and the score published at the end is within "
            f"{final_score_width(self.width, self.steps):.4g} of "
            f"the truth (by counting, {concentration(self._beliefs).theorem})."
        )
        vacuous = " This guarantee is vacuous: always answering 1/2 errs by at most 0.5."
        return text + (vacuous if self.width >= VACUOUS else "")
