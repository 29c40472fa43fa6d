"""`Ladder`: a leaderboard whose best score stays true, whatever the contestants try.

A submission moves the board only if it beats the best score by more than one step, and the board
shows scores rounded to steps: that is all anybody learns. There is no noise and no privacy in it.

Theorem: docs/theory/ladder.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from quiltwork import files
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import Number, integer
from quiltwork.holdout import rows as _rows
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.guarantee import VACUOUS, read_count, read_share
from quiltwork.holdout.ladder_bound import best_steps, width_at
from quiltwork.holdout.owner import OneOwner
from quiltwork.holdout.preparation import check_length, check_text

_BITS = 20
SCHEMA = "ladder"


@dataclass(frozen=True)
class Standing:
    """A submission that moved the board.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        score: the board's best from then on, a multiple of the step.
    """

    number: int
    team: str
    score: float


class Ladder(OneOwner):
    """A leaderboard for means over rows of values in [0, 1]; larger is better.

    Args:
        holdout: the rows that are scored, an array or a tuple such as (X, y).
        beliefs: how its rows depend on each other; None for independent rows.
        submissions: k, how many are accepted in all, of all teams together.
        confidence: 1 − β, of the bound.
        steps: g, the number of steps of the score; None for the best one.

    Raises:
        InvalidInputError: for arguments that make no sense.
        UnsupportedError: if no concentration inequality is proven for the belief.

    >>> import numpy as np
    >>> board = Ladder(np.arange(2000) % 2, submissions=100, steps=20)
    >>> board.submit("ada", lambda rows: rows == 1)
    Standing(number=1, team='ada', score=0.5)
    >>> board.submit("bob", lambda rows: rows == 0) is None
    True

    Theorem: docs/theory/ladder.md
    """

    def __init__(
        self,
        holdout: Any,
        beliefs: Belief | Sequence[Belief] | None = None,
        *,
        submissions: int,
        confidence: Number = 0.95,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        data = _rows.read_rows(holdout, "holdout")
        self.rows = _rows.count_rows(data)
        self.submissions = read_count(submissions, "submissions")
        self.confidence = read_share(confidence, "confidence")
        self._beliefs = None if beliefs is None else as_beliefs(beliefs)
        check_length(self._beliefs, self.rows)
        beta = 1 - self.confidence
        found = best_steps(self._beliefs, self.rows, self.submissions, beta)
        self.steps = found if steps is None else read_count(steps, "steps")
        self.submitted = 0
        self._board: list[Standing] = []
        self._best: Fraction | None = None

        def score(statistic: _rows.Statistic) -> Fraction:
            total = _rows.sums_in_private(statistic, data, _BITS, None)[0]
            return Fraction(total, self.rows << _BITS)

        self._score = score

    @property
    def best(self) -> float | None:
        """The best score so far, on the grid; None before the first submission."""
        return None if self._best is None else float(self._best)

    @property
    def remaining(self) -> int:
        """How many more submissions are accepted."""
        return self.submissions - self.submitted

    @property
    def width(self) -> float:
        """With the stated confidence, `best` is always within this of the best true score so far.

        Theorem: docs/theory/ladder.md
        """
        beta = 1 - self.confidence
        return width_at(self._beliefs, self.rows, self.submissions, beta, self.steps)

    def submit(self, team: str, statistic: _rows.Statistic) -> Standing | None:
        """Score a submission: its place on the board, or None if it does not beat the best.

        A row without a value in [0, 1] counts as 0, so a submission that fails scores 0.

        Raises:
            BudgetExceeded: after the last submission.
            InvalidInputError: for a team without a name, or what is no function; it costs nothing.
        """
        check_text(team, "team")
        if not team.strip():
            raise InvalidInputError("The team has no name; give one.")
        if not callable(statistic):
            raise InvalidInputError(
                f"A submission is a function from rows to values in [0, 1], not {statistic!r}."
            )
        with self._alone():
            if self.remaining == 0:
                raise BudgetExceeded(
                    f"All {self.submissions} submissions are used; the bound covers no more."
                )
            self.submitted += 1
            found = self._score(statistic)
            if self._best is not None and found <= self._best + Fraction(1, self.steps):
                return None
            self._best = Fraction(round(found * self.steps), self.steps)
            self._board.append(Standing(self.submitted, team, float(self._best)))
            return self._board[-1]

    def standings(self) -> tuple[Standing, ...]:
        """Return the submissions that moved the board, best first."""
        return tuple(reversed(self._board))

    def explain(self) -> str:
        """Name the theorem and print its bound at this number of rows."""
        text = (
            f"Ladder with {self.steps} steps on {self.rows:,} rows, {self.submissions:,} "
            f"submissions in all, {self.remaining:,} left. With probability {self.confidence:g} "
            f"the best score is at every moment within {self.width:.4g} of the best true score "
            f"submitted so far (the Ladder theorem of Blum and Hardt, counted exactly, by "
            f"{concentration(self._beliefs).theorem})."
        )
        vacuous = " This is vacuous: a board that always shows 1/2 errs by at most 0.5."
        return text + (vacuous if self.width >= VACUOUS else "")

    def to_json(self) -> str:
        """Write the board, which is public, as a document of schema `quiltwork/ladder`."""
        body = {
            "rows": self.rows,
            "submissions": self.submissions,
            "submitted": self.submitted,
            "confidence": self.confidence,
            "steps": self.steps,
            "width": self.width,
            "standings": [asdict(one) for one in self.standings()],
        }
        return files.dump(SCHEMA, 1, body)

    @classmethod
    def resume(
        cls, text: str, holdout: Any, beliefs: Belief | Sequence[Belief] | None = None
    ) -> Ladder:
        """Go on with a board that `to_json` wrote, with the same holdout.

        Raises:
            InvalidInputError: if it is no board, or one for another number of rows.
        """
        document = files.load(text, SCHEMA, (1,))
        made = cls(
            holdout,
            beliefs,
            submissions=document["submissions"],
            confidence=document["confidence"],
            steps=document["steps"],
        )
        if made.rows != document["rows"]:
            raise InvalidInputError(
                f"The board is for {document['rows']} rows, the holdout has {made.rows}."
            )
        made.submitted = integer(document["submitted"], "submitted", 0)
        made._board = [Standing(**one) for one in reversed(document["standings"])]
        if made._board:
            made._best = Fraction(round(made._board[-1].score * made.steps), made.steps)
        return made

    def __repr__(self) -> str:
        """Give the numbers only."""
        return f"Ladder({self.rows} rows, {self.remaining} of {self.submissions} submissions left)"
