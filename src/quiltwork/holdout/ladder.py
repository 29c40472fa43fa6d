"""`Ladder`: a leaderboard whose best score stays accurate under adaptive submissions.

A submission changes the standings only if it beats the best score by more than one step, and scores
are rounded to steps; nothing else is published. After b announcements there are at most C(k, b+1)
times C(g+1, b) possible submissions, so one union bound covers them all; a board that may announce
only a few scores has fewer. There is no noise, and no row is protected.

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
from quiltwork.holdout.algorithm import parse_count
from quiltwork.holdout.arrays import (
    Data,
    check_length,
    commitment,
    count_rows,
    freeze_rows,
    without_names,
)
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import exponents, ladder_levels, one_bit_levels
from quiltwork.holdout.evaluation import Statistic, check_statistic, sums_in_private
from quiltwork.holdout.guarantee import VACUOUS, parse_share
from quiltwork.holdout.metrics import MEAN, Metric, true_score_interval
from quiltwork.holdout.sealed_log import SealedLog, Secret, check_team, new_secret, open_log
from quiltwork.holdout.single_process import SingleProcess
from quiltwork.holdout.transcript import (
    ANNOUNCED,
    FINAL_GRID_FACTOR,
    KEPT,
    UNMOVED,
    WAITING,
    AnnouncementRule,
    BoardEntry,
    BoardSetup,
    Standing,
    SubmissionNote,
    Transcript,
    parse_steps,
    read_transcript,
)
from quiltwork.results import Interval, ResultBase
from quiltwork.wording import argument

_BITS = 20
_UP = 1 + 2.0**-40
_COARSER = 1.03
_GRIDS = sorted({round(2 ** (k / 8)) for k in range(97)})
"""Candidate numbers of steps, up to 4096; the optimum is at most 0.5 % better."""


def width_at(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    submissions: int,
    beta: float,
    steps: int,
    metric: Metric = MEAN,
    announcements: int | None = None,
) -> float:
    """Return the error width of a board with a given grid, at any score: s(w) + 1/g.

    w is the width at the exponent of the last announcement, s the metric's spread.

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
    """Return the least error width of a board, and its number of steps; about 80 are tried.

    With limited announcements it takes the coarsest grid within 3 % of the least width: finer steps
    would announce improvements that hardly matter.
    """
    terms = (beliefs, rows, submissions, beta)
    widths = [(width(*terms, steps, metric, announcements), steps) for steps in _GRIDS]
    # Ties go to fewer steps, because pairs compare by width first.
    least = min(widths)
    if announcements is None:
        return least
    return next(candidate for candidate in widths if candidate[0] <= _COARSER * least[0])


def interval_of(transcript: Transcript, announced: int) -> Interval:
    """Return the confidence interval of announcement number `announced`, from 0."""
    rule, metric = transcript.announcing, transcript.metric
    standing, score = transcript.standings[announced], transcript.best
    one_bit = rule.kind == "one bit"
    levels_of = one_bit_levels if one_bit else ladder_levels
    levels = levels_of(rule.submissions, rule.steps, rule.announcements)
    exponent = exponents(levels, 1 - rule.confidence, len(metric.signs))[announced]
    half = 1 / (2 * rule.steps)
    ends = (-1 / (FINAL_GRID_FACTOR * rule.steps), 0.0) if one_bit else (-half, half)
    if not one_bit:
        score = standing.score
    if score is None:
        raise InvalidInputError("The score of this submission was not published.")
    low, high = (score + end for end in ends)
    beliefs = None if transcript.beliefs is None else beliefs_from_json(transcript.beliefs)
    return true_score_interval(metric, concentration(beliefs), rule.rows, exponent, low, high)


class Ladder(ResultBase, SingleProcess):
    """A leaderboard for means over rows of values in [0, 1]; larger is better.

    Args:
        holdout: the rows to score on, an array or a tuple such as (X, y).
        beliefs: how its rows depend on each other; None for independent rows.
        submissions: k, the number accepted in all, from all teams together.
        confidence: 1 − β, of the guarantee.
        steps: g, the number of steps of the score; None chooses the best.
        announcements: a, the largest number of scores announced, for all teams together; later
            submissions are stored without a comparison. None for no limit.
        path: store the board in this file, so that it can be resumed.
        about: metric, columns and rows kept apart, where submissions are predictions (`Board`).
        secret: a secret whose key was used already, to draw pairs of rows; None draws a new one.

    Raises:
        InvalidInputError: for arguments out of range.
        UnsupportedError: if no concentration inequality is proven for the belief.
        StorageError: if the file exists already, or cannot be written.

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
        about: BoardSetup | None = None,
        secret: Secret | None = None,
    ) -> None:
        data = freeze_rows(holdout, "holdout")
        count, accepted = count_rows(data), parse_count(submissions, "submissions")
        share = parse_share(confidence, "confidence")
        members = None if beliefs is None else as_beliefs(beliefs)
        check_length(members, count)
        limit = None if announcements is None else parse_count(announcements, "announcements")
        terms = (members, count, accepted, 1 - share)
        about = BoardSetup() if about is None else instance(about, BoardSetup, "about")
        secret = new_secret() if secret is None else instance(secret, Secret, "secret")
        metric = about.scorings[0].read() if about.scorings else MEAN
        if steps is None:
            steps = least_width(*terms, metric, self._width_at, limit)[1]
        rule = AnnouncementRule(self.kind, count, accepted, share, parse_steps(steps), limit)
        if not math.isfinite(self._width_at(*terms, rule.steps, metric, limit)):
            raise InvalidInputError(
                f"{metric.name} divides by the share of a class, which the board keeps secret: "
                f"give a public lower bound on it, such as {argument('floor', 0.2)}."
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
        """Reopen a board from its file, with its beliefs and the same rows.

        Waits up to `wait` seconds for another process that holds it. The secret file seals the
        board, so a cut or edited file is refused; an older copy of both files is not recognised.

        Raises:
            StorageError: if the files are damaged, cut, in use, or belong to other data.
            InvalidInputError: if there is no such file.
        """
        data = freeze_rows(holdout, "holdout")
        log, transcript, secret, _ = open_log(
            path, read_transcript, lambda key: commitment(key, data), wait, at_once=1
        )
        board = cls.__new__(cls)
        try:
            if transcript.rule.kind != cls.kind:
                raise InvalidInputError(
                    f"This board has the rule {transcript.rule.kind!r}, not {cls.kind!r}."
                )
            board._begin(data, transcript, secret, log)
        except BaseException:
            log.close()
            raise
        return board

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
            averages = [Fraction(total, rows << _BITS) for total in sums]
            return (
                averages[0] if plain else Fraction(metric.score([float(mean) for mean in averages]))
            )

        self._score = score

    @property
    def transcript(self) -> Transcript:
        """Everything published so far."""
        return replace(self._transcript, entries=tuple(self._entries))

    @property
    def rule(self) -> AnnouncementRule:
        """The rule, fixed when the board was created."""
        return self._transcript.announcing

    @property
    def rows(self) -> int:
        """The number of rows of the holdout, which is public."""
        return self.rule.rows

    @property
    def submissions(self) -> int:
        """The number of submissions accepted in all."""
        return self.rule.submissions

    @property
    def confidence(self) -> float:
        """The probability with which the guarantee holds."""
        return self.rule.confidence

    @property
    def steps(self) -> int:
        """The number of steps of the score."""
        return self.rule.steps

    @property
    def submitted(self) -> int:
        """The number of submissions counted so far."""
        return len(self._entries)

    @property
    def best(self) -> float | None:
        """The best score so far, on the grid; None before the first announcement."""
        return self._announced[-1].score if self._announced else None

    @property
    def remaining(self) -> int:
        """The number of submissions left."""
        return self.submissions - self.submitted

    @property
    def width(self) -> float:
        """The error bound of `best` against the best true score, with the stated confidence.

        Theorem: docs/theory/ladder.md
        """
        terms = (self._beliefs, self.rows, self.submissions, 1 - self.confidence)
        return self._width_at(*terms, self.steps, self._metric, self.announcements)

    @property
    def announcements(self) -> int | None:
        """The largest number of scores announced; None for no limit."""
        return self.rule.announcements

    @property
    def announces(self) -> bool:
        """Whether another score may be announced; if not, submissions are only stored."""
        return self.announcements is None or len(self._announced) < self.announcements

    def interval(self, standing: Standing) -> Interval:
        """Return the confidence interval of an announced score, simultaneous for the board.

        Half its length is the width at this score: binomial tails, plus half a step for rounding.

        Theorem: docs/theory/ladder.md
        """
        if standing not in self._announced or standing.score is None:
            raise InvalidInputError("This submission was not announced by this board.")
        return interval_of(self.transcript, self._announced.index(standing))

    def submit(
        self, team: str, statistic: Statistic, note: SubmissionNote | None = None
    ) -> Standing | None:
        """Score a submission; return its standing, or None if it does not beat the best.

        A row without a value in [0, 1] counts as 0, so a submission that fails scores 0. It is
        counted, durably, before it is scored, and its score is recorded before it is returned.

        Raises:
            BudgetExceeded: after the last submission.
            InvalidInputError: for an empty team name, or a statistic that is no function; not
                counted.
            StorageError: if it could not be recorded; its score is then withheld.
        """
        check_team(team)
        check_statistic(statistic, "A submission")
        with self._evaluating():
            # Counted under the lock, scored without it: a statistic may wait for other threads.
            with self._alone():
                number = self._count(team, note or SubmissionNote())
            score = self._score(statistic) if self.announces else Fraction(0)
            with self._alone():
                return self._place(number, score)

    def _check_open(self) -> None:
        super()._check_open()
        if self._transcript.ended:
            raise BudgetExceeded("This board has ended and accepts no more submissions.")

    def _count(self, team: str, note: SubmissionNote) -> int:
        self._check_open()
        if self.remaining <= 0:
            raise BudgetExceeded(
                f"All {self.submissions:,} submissions are used; the guarantee covers no more."
            )
        entry = BoardEntry(self.submitted + 1, team, None, WAITING, self.remaining - 1, note)
        self._append([entry.counted()])
        self._entries.append(entry)
        return self.submitted

    def _place(self, number: int, score: Fraction) -> Standing | None:
        self._check_open()
        if not self.announces:
            return self._record(number, KEPT)  # after the last announcement
        # Compared in whole steps, so that a float on the grid cannot round across the limit.
        if self.best is not None and score * self.steps <= round(self.best * self.steps) + 1:
            return self._record(number, UNMOVED)
        return self._record(number, ANNOUNCED, Fraction(round(score * self.steps), self.steps))

    def _record(self, number: int, outcome: str, value: Fraction | None = None) -> Standing | None:
        """Record a submission's outcome durably, then return its standing."""
        entry = replace(self._entries[number - 1], outcome=outcome, value=value)
        self._append([entry.result()])
        self._entries[number - 1] = entry
        if not entry.announced:
            return None
        score = None if value is None else float(value)
        self._announced.append(Standing(number, entry.label, score))
        return self._announced[-1]

    def standings(self) -> tuple[Standing, ...]:
        """Return the submissions that changed the standings, best first."""
        return tuple(reversed(self._announced))

    def explain(self) -> str:
        """Return the theorem and its bound for this board."""
        limit = f", {self.announcements:,} announcements" if self.announcements else ""
        text = (
            f"Ladder with {self.steps} steps on {self.rows:,} rows, {self.submissions:,} "
            f"submissions in all{limit}, {self.remaining:,} left. "
            f"With probability {self.confidence:g} the best score is at every moment within "
            f"{self.width:.4g} of the best true score submitted so far (the Ladder theorem of Blum "
            f"and Hardt, counted exactly, by "
            f"{concentration(self._beliefs).theorem})."
        )
        vacuous = " This guarantee is vacuous: a board that always shows 1/2 errs by at most 0.5."
        return text + (vacuous if self.width >= VACUOUS else "")

    def body(self) -> dict[str, Any]:
        """Return the public state as JSON values."""
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
        """Return the standings as rows, best first."""
        return [asdict(standing) for standing in self.standings()]

    def __repr__(self) -> str:
        left = f"{self.remaining} of {self.submissions} submissions left"
        return f"{type(self).__name__}({self.rows} rows, {left})"
