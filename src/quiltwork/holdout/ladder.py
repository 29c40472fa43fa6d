"""`Ladder`: a leaderboard whose best score stays true, whatever the contestants try.

A submission moves the board only if it beats the best score by more than one step, and the board
shows scores rounded to steps: that is all anybody learns. After b announcements there are C(k, b+1)
times C(g+1, b) submissions that could ever be made, so one union bound covers them all; a board
that may announce few scores only is held to fewer. There is no noise and no privacy in it.

Theorem: docs/theory/ladder.md
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from quiltwork.arguments import instance
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs, beliefs_from_json, beliefs_to_json
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import Number
from quiltwork.holdout.algorithm import read_count
from quiltwork.holdout.arrays import (
    Data,
    check_length,
    commitment,
    count_rows,
    read_rows,
    without_names,
)
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import exponents, ladder_levels, one_bit_levels
from quiltwork.holdout.evaluation import Statistic, check_statistic, sums_in_private
from quiltwork.holdout.guarantee import VACUOUS, read_share
from quiltwork.holdout.metrics import MEAN, Metric, truth_of_score
from quiltwork.holdout.owner import OneOwner
from quiltwork.holdout.sealed_log import SealedLog, Secret, check_team, new_secret, open_log
from quiltwork.holdout.transcript import (
    ANNOUNCED,
    FINER,
    KEPT,
    UNMOVED,
    WAITING,
    About,
    Announcing,
    BoardEntry,
    Standing,
    SubmissionNote,
    Transcript,
    read_steps,
    read_transcript,
)
from quiltwork.results import Interval, ResultBase
from quiltwork.wording import argument

_BITS = 20
_UP = 1 + 2.0**-40
_COARSER = 1.03
_GRIDS = sorted({round(2 ** (k / 8)) for k in range(97)})
"""Numbers of steps that are tried, up to 4096; the best between two is at most 0.5 % better."""


def width_at(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    submissions: int,
    beta: float,
    steps: int,
    metric: Metric = MEAN,
    announcements: int | None = None,
) -> float:
    """Return the width of a board with a given grid, whatever its scores: s(w) + 1/g.

    w is the width at the exponent of its last announcement, s the metric's spread.

    Theorem: docs/theory/ladder.md
    """
    levels = ladder_levels(submissions, steps, announcements)
    exponent = exponents(levels, beta, len(metric.signs))[-1]
    return (metric.spread(concentration(beliefs).width_at(rows, exponent)) + 1 / steps) * _UP


def least_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    submissions: int,
    beta: float,
    metric: Metric = MEAN,
    width: Callable[..., float] = width_at,
    announcements: int | None = None,
) -> tuple[float, int]:
    """Return the least width of a board, and with how many steps; about 80 are tried.

    Where announcements are counted it takes the coarsest grid that is within 3 % of the least: a
    coarse step is not spent on what hardly matters.
    """
    given = (beliefs, rows, submissions, beta)
    found = [(width(*given, steps, metric, announcements), steps) for steps in _GRIDS]
    least = min(found)
    if announcements is None:
        return least
    return next(one for one in found if one[0] <= _COARSER * least[0])


def interval_of(transcript: Transcript, announced: int) -> Interval:
    """Return where the true score of announcement number `announced`, from 0, is."""
    rule, metric = transcript.announcing, transcript.metric
    standing, score = transcript.standings[announced], transcript.best
    one_bit = rule.kind == "one bit"
    levels_of = one_bit_levels if one_bit else ladder_levels
    levels = levels_of(rule.submissions, rule.steps, rule.announcements)
    exponent = exponents(levels, 1 - rule.confidence, len(metric.signs))[announced]
    half = 1 / (2 * rule.steps)
    ends = (-1 / (FINER * rule.steps), 0.0) if one_bit else (-half, half)
    if not one_bit:
        score = standing.score
    if score is None:
        raise InvalidInputError("This submission has no score that was told.")
    low, high = (score + end for end in ends)
    beliefs = None if transcript.beliefs is None else beliefs_from_json(transcript.beliefs)
    return truth_of_score(metric, concentration(beliefs), rule.rows, exponent, low, high)


class Ladder(ResultBase, OneOwner):
    """A leaderboard for means over rows of values in [0, 1]; larger is better.

    Args:
        holdout: the rows that are scored, an array or a tuple such as (X, y).
        beliefs: how its rows depend on each other; None for independent rows.
        submissions: k, how many are accepted in all, of all teams together.
        confidence: 1 − β, of the bound.
        steps: g, the number of steps of the score; None for the best one.
        announcements: a, how many scores are announced at most, of all teams together; what comes
            after the last is kept and compared with nothing. None for no limit.
        path: keep the board in this file, so that it can be resumed.
        about: metric, columns and rows kept apart, where submissions are data (`Board`).
        secret: what its key was drawn for before, such as pairs of rows; None for a new one.

    Raises:
        InvalidInputError: for arguments that make no sense.
        UnsupportedError: if no concentration inequality is proven for the belief.
        StorageError: if the file is there already, or cannot be written.

    >>> import numpy as np
    >>> board = Ladder(np.arange(2000) % 2, submissions=100, steps=20)
    >>> board.submit("ada", lambda rows: rows == 1)
    Standing(number=1, team='ada', score=0.5)
    >>> board.submit("bob", lambda rows: rows == 0) is None
    True

    Theorem: docs/theory/ladder.md
    """

    schema = ("ladder", 1)
    kind = "ladder"
    _width_at: Callable[..., float] = staticmethod(width_at)

    def __init__(
        self,
        holdout: Any,
        beliefs: Belief | Sequence[Belief] | None = None,
        *,
        submissions: int,
        confidence: Number = 0.95,
        steps: int | None = None,
        announcements: int | None = None,
        path: str | Path | None = None,
        about: About | None = None,
        secret: Secret | None = None,
    ) -> None:
        data = read_rows(holdout, "holdout")
        count, accepted = count_rows(data), read_count(submissions, "submissions")
        share = read_share(confidence, "confidence")
        members = None if beliefs is None else as_beliefs(beliefs)
        check_length(members, count)
        limit = None if announcements is None else read_count(announcements, "announcements")
        given = (members, count, accepted, 1 - share)
        about = About() if about is None else instance(about, About, "about")
        secret = new_secret() if secret is None else instance(secret, Secret, "secret")
        metric = about.scorings[0].read() if about.scorings else MEAN
        if steps is None:
            steps = least_width(*given, metric, self._width_at, limit)[1]
        rule = Announcing(self.kind, count, accepted, share, read_steps(steps), limit)
        if not math.isfinite(self._width_at(*given, rule.steps, metric, limit)):
            raise InvalidInputError(
                f"{metric.name} divides by how many rows are of a class, and a board tells no "
                f"such number: give the share of rows that it is at least, {argument('floor')}."
            )
        transcript = Transcript(
            rule,
            secrets.token_hex(16),
            commitment(secret.key, data),
            None if members is None else beliefs_to_json(without_names(members)),
            about,
        )
        log = None
        if path is not None:
            log, secret = SealedLog.create(path, transcript.header(), secret)
        self._begin(data, transcript, secret, log)

    @classmethod
    def resume(cls, path: str | Path, holdout: Any, wait: float = 0) -> Self:
        """Go on with a board that is in a file, with the beliefs and the rows it was begun with.

        If another process holds it, this waits for up to `wait` seconds. A cut or edited file is
        refused: its secret seals it. Older copies of both files are not recognised.

        Raises:
            StorageError: if the files are damaged, cut, in use, or were written for other data.
            InvalidInputError: if there is no such file.
        """
        data = read_rows(holdout, "holdout")
        log, transcript, secret, _ = open_log(
            path, read_transcript, lambda key: commitment(key, data), wait, at_once=1
        )
        made = cls.__new__(cls)
        try:
            if transcript.rule.kind != cls.kind:
                raise InvalidInputError(f"This is a board of another kind: {transcript.rule.kind}.")
            made._begin(data, transcript, secret, log)
        except BaseException:
            log.close()
            raise
        return made

    def _begin(
        self, data: Data, transcript: Transcript, secret: Secret, log: SealedLog | None
    ) -> None:
        super().__init__(secret, log)
        self._transcript, self._entries = transcript, list(transcript.entries)
        self._announced = list(transcript.standings)
        self._beliefs = (
            None if transcript.beliefs is None else beliefs_from_json(transcript.beliefs)
        )
        self._metric = metric = transcript.metric
        means, rows, plain = len(metric.signs), transcript.rows, not transcript.about.scorings

        def score(statistic: Statistic) -> Fraction:
            sums = sums_in_private(statistic, data, _BITS, None if means == 1 else means)
            found = [Fraction(total, rows << _BITS) for total in sums]
            return found[0] if plain else Fraction(metric.score([float(mean) for mean in found]))

        self._score = score

    @property
    def transcript(self) -> Transcript:
        """Everything that was said so far."""
        return replace(self._transcript, entries=tuple(self._entries))

    @property
    def rule(self) -> Announcing:
        """What the board was begun with and never changes."""
        return self._transcript.announcing

    @property
    def rows(self) -> int:
        """The number of rows of the holdout, which is public."""
        return self.rule.rows

    @property
    def submissions(self) -> int:
        """How many submissions are accepted in all."""
        return self.rule.submissions

    @property
    def confidence(self) -> float:
        """With which probability the bound holds."""
        return self.rule.confidence

    @property
    def steps(self) -> int:
        """The number of steps of the score."""
        return self.rule.steps

    @property
    def submitted(self) -> int:
        """How many submissions were counted."""
        return len(self._entries)

    @property
    def best(self) -> float | None:
        """The best score so far, on the grid; None before the first submission."""
        return self._announced[-1].score if self._announced else None

    @property
    def remaining(self) -> int:
        """How many more submissions are accepted."""
        return self.submissions - self.submitted

    @property
    def width(self) -> float:
        """With the stated confidence, `best` is always within this of the best true score so far.

        Theorem: docs/theory/ladder.md
        """
        given = (self._beliefs, self.rows, self.submissions, 1 - self.confidence)
        return self._width_at(*given, self.steps, self._metric, self.announcements)

    @property
    def announcements(self) -> int | None:
        """How many scores are announced at most; None for no limit."""
        return self.rule.announcements

    @property
    def announces(self) -> bool:
        """Whether another score may be announced; after the last nothing is compared."""
        return self.announcements is None or len(self._announced) < self.announcements

    def interval(self, standing: Standing) -> Interval:
        """Return where the true score of an announced submission is, of all of them together.

        Half of it is the width at this score: binomial tails, and half a step for rounding.

        Theorem: docs/theory/ladder.md
        """
        if standing not in self._announced or standing.score is None:
            raise InvalidInputError("This submission was not announced by this board.")
        return interval_of(self.transcript, self._announced.index(standing))

    def submit(
        self, team: str, statistic: Statistic, note: SubmissionNote | None = None
    ) -> Standing | None:
        """Score a submission: its place on the board, or None if it does not beat the best.

        A row without a value in [0, 1] counts as 0, so a submission that fails scores 0. It is
        counted before it is scored, for ever, and its score recorded before it is shown.

        Raises:
            BudgetExceeded: after the last submission.
            InvalidInputError: for a team without a name, or what is no function; it costs nothing.
            StorageError: if it could not be recorded; its score is then withheld.
        """
        check_team(team)
        check_statistic(statistic, "A submission")
        with self._evaluating():
            with self._alone():
                number = self._count(team, note or SubmissionNote())
            found = self._score(statistic) if self.announces else Fraction(0)
            with self._alone():
                return self._place(number, found)

    def _check_open(self) -> None:
        super()._check_open()
        if self._transcript.ended:
            raise BudgetExceeded("This board has ended and accepts no more.")

    def _count(self, team: str, note: SubmissionNote) -> int:
        self._check_open()
        if self.remaining <= 0:
            raise BudgetExceeded(
                f"All {self.submissions} submissions are used; the bound covers no more."
            )
        entry = BoardEntry(self.submitted + 1, team, None, WAITING, self.remaining - 1, note)
        self._append([entry.counted()])
        self._entries.append(entry)
        return self.submitted

    def _place(self, number: int, found: Fraction) -> Standing | None:
        self._check_open()
        if not self.announces:
            return self._record(number, KEPT)  # after the last announcement
        if self.best is not None and found * self.steps <= round(self.best * self.steps) + 1:
            return self._record(number, UNMOVED)
        return self._record(number, ANNOUNCED, Fraction(round(found * self.steps), self.steps))

    def _record(self, number: int, outcome: str, value: Fraction | None = None) -> Standing | None:
        """Keep what came of a submission for good, then show it."""
        entry = replace(self._entries[number - 1], outcome=outcome, value=value)
        self._append([entry.result()])
        self._entries[number - 1] = entry
        if not entry.announced:
            return None
        score = None if value is None else float(value)
        self._announced.append(Standing(number, entry.label, score))
        return self._announced[-1]

    def standings(self) -> tuple[Standing, ...]:
        """Return the submissions that moved the board, best first."""
        return tuple(reversed(self._announced))

    def explain(self) -> str:
        """Name the theorem and print its bound at this number of rows."""
        limit = f", {self.announcements:,} announcements" if self.announcements else ""
        text = (
            f"Ladder with {self.steps} steps on {self.rows:,} rows, {self.submissions:,} "
            f"submissions in all{limit}, {self.remaining:,} left. "
            f"With probability {self.confidence:g} the best score is at every moment within "
            f"{self.width:.4g} of the best true score submitted so far (the Ladder theorem of Blum "
            f"and Hardt, counted exactly, by "
            f"{concentration(self._beliefs).theorem})."
        )
        vacuous = " This is vacuous: a board that always shows 1/2 errs by at most 0.5."
        return text + (vacuous if self.width >= VACUOUS else "")

    def body(self) -> dict[str, Any]:
        """Return the board, which is public, as JSON values."""
        shown = (
            "rows",
            "submissions",
            "submitted",
            "confidence",
            "steps",
            "width",
            "announcements",
        )
        return {**{name: getattr(self, name) for name in shown}, "standings": self.records()}

    def records(self) -> list[dict[str, Any]]:
        """Return the standings, best first."""
        return [asdict(one) for one in self.standings()]

    def __repr__(self) -> str:
        left = f"{self.remaining} of {self.submissions} submissions left"
        return f"{type(self).__name__}({self.rows} rows, {left})"
