"""`OneBit`: a leaderboard that tells only whether a submission is better than the best, or not.

The best score on the holdout is a secret; a submission that beats it by more than one step of 1/g
lifts it, and everybody learns that it did. Each lift is more than a step, so there are at most g of
them among k verdicts, and N = Σ_{b ≤ g} C(k, b+1) submissions that could ever be made. The last
score of all is told once, rounded up to an eighth of a step, and ends the board.

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
    FINER,
    KEPT,
    UNMOVED,
    Standing,
    Transcript,
)

_FINE = 1 << 50
"""The secret best is kept in steps of one over this."""


def verdict_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    submissions: int,
    beta: float,
    steps: int,
    metric: Metric = MEAN,
    announcements: int | None = None,
) -> float:
    """Return how far a verdict may be off: a step, and twice how far any score may be.

    Theorem: docs/theory/counting.md
    """
    levels = one_bit_levels(submissions, steps, announcements)
    exponent = exponents(levels, beta, len(metric.signs))[-1]
    return 1 / steps + 2 * metric.spread(concentration(beliefs).width_at(rows, exponent))


def last_width(verdict: float, steps: int) -> float:
    """Return how far the score told at the end may be off: its width, and an eighth of a step."""
    return (verdict - 1 / steps) / 2 + 1 / (FINER * steps)


class OneBit(Ladder):
    """A leaderboard of verdicts; its arguments are those of a `Ladder`.

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
        """Write the yes that was not written after its lift, so that the best is its team's.

        A secret of before a lift that is written is refused.
        """
        lifted, told = self._secret.round, [one.number for one in self._announced]
        if lifted == (told[-1] if told else None):
            return
        if lifted is None or lifted in told or lifted > self.submitted:
            raise StorageError(
                "The secret of this board is older than its lines: put back the latest one; "
                "without it the best score is not known, and the board is over."
            )
        self._record(lifted, BETTER)

    @property
    def best(self) -> float | None:
        """The best score of all, which is told at the end; None before."""
        return self._transcript.best

    def _place(self, number: int, found: Fraction) -> Standing | None:
        self._check_open()
        if not self.announces:
            return self._record(number, KEPT)
        value = int(found * _FINE)
        if self._announced and (value - self._secret.threshold) * self.steps <= _FINE:
            return self._record(number, UNMOVED)
        # First the secret: interrupted in between, `resume` writes whose lift it was.
        self._keep(replace(self._secret, round=number, threshold=value))
        return self._record(number, BETTER)

    @property
    def remaining(self) -> int:
        """How many more submissions are accepted; none after the last score was told."""
        return 0 if self._transcript.ended else super().remaining

    def final(self) -> float:
        """Tell the best score, rounded up to an eighth of a step, and end the board.

        Raises:
            InvalidInputError: if nothing was submitted yet.
            StorageError: if it could not be recorded; it is then withheld.
        """
        with self._alone():
            if self._transcript.best is None:
                self._check_open()
                if not self._announced:
                    raise InvalidInputError("Nothing was submitted yet, so there is no score.")
                # On a grid: an exact score of chosen predictions would spell out labels. Up, so
                # that nobody who was told "no" is more than a step above it.
                grid = FINER * self.steps
                score = Fraction(math.ceil(Fraction(self._secret.threshold, _FINE) * grid), grid)
                self._append([{"best": str(score)}])
                self._transcript = replace(self._transcript, best=float(score))
            return float(self._transcript.best or 0.0)

    def explain(self) -> str:
        """Name the theorem and print its bound at this number of rows."""
        text = (
            f"One bit for each of {self.submissions:,} submissions on {self.rows:,} rows, "
            f"{self.remaining:,} left: better than the best by more than 1/{self.steps}, or not. "
            f"With probability {self.confidence:g} every verdict is right up to {self.width:.4g}, "
            f"and the score told at the end within {last_width(self.width, self.steps):.4g} of "
            f"the truth (by counting, {concentration(self._beliefs).theorem})."
        )
        vacuous = " This is vacuous: always answering 1/2 errs by at most 0.5."
        return text + (vacuous if self.width >= VACUOUS else "")
