"""`Board`: a leaderboard over predictions by row id, with a rule, standings and a final ranking.

The command line, the MCP server and the curator all call this object; they differ only in where its
files are (`BoardFiles`). The rule decides what is published: a *Ladder* publishes the best score,
rounded, after a clear improvement; *one bit* publishes only whether a submission is better than the
best; *rounds* (the reusable holdout) scores every submission while training rows and holdout agree.

Everything public (ids, classes) is validated before a submission is counted. Submissions are
idempotent: an exact repetition, or a repeated idempotency key, returns the stored answer from the
log. Rows kept apart for the final ranking are scored once, after every team has named a submission.

One process at a time writes; others wait for the lock. Standings are read without a lock, from the
lines that the secret seals. A submission costs one pass over the rows and one over the log.

Theorem: docs/theory/ladder.md, docs/theory/counting.md, docs/theory/final-ranking.md
"""

from __future__ import annotations

import hmac
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice, instance
from quiltwork.beliefs import Belief, beliefs_from_json
from quiltwork.beliefs.sets import beliefs_to_json
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from quiltwork.exact import Number, counted, integer, shortened, to_fraction
from quiltwork.holdout.arrays import commitment, without_names
from quiltwork.holdout.final_ranking import FinalRanking, rank_teams, ranking_from_body
from quiltwork.holdout.guarantee import VACUOUS, parse_share
from quiltwork.holdout.label_table import Labels, Mask, ScoredRows, check_targets, need_classes
from quiltwork.holdout.ladder import Ladder, interval_of
from quiltwork.holdout.metrics import Metric, Scoring
from quiltwork.holdout.one_bit import OneBit
from quiltwork.holdout.prediction_tables import (
    TrainHoldoutTables,
    check_ids,
    check_predictions,
    with_classes,
)
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.sealed_log import (
    check_team,
    check_text,
    new_secret,
    read_secret,
    sealed_lines,
)
from quiltwork.holdout.transcript import (
    INTERRUPTED,
    KEPT,
    RULES,
    WAITING,
    AnnouncementRule,
    BoardEntry,
    BoardSetup,
    Columns,
    FinalPart,
    SubmissionNote,
    Transcript,
    read_transcript,
)
from quiltwork.results import ResultBase

if TYPE_CHECKING:
    from quiltwork.budget import Ledger

Table = tuple[list[str], NDArray[Any]]
Engine = Ladder | ReusableHoldout
_ANNOUNCING: dict[str, type[Ladder]] = {"ladder": Ladder, "one bit": OneBit}
_LARGEST = 1 << 30
"""Maximum size of one submission's stored predictions, in bytes, after decompression."""


class BoardFiles(Protocol):
    """Storage of one board: its log, its tables and the submitted predictions."""

    @property
    def log(self) -> Path:
        """Path of the log; its secret lies beside it."""

    @property
    def wait(self) -> float:
        """Seconds to wait for another process that holds the lock."""

    def table(self, side: str) -> Table:
        """Return the header and the rows of table `train` or `holdout`, as text."""

    def named(self, side: str) -> str:
        """Return the name of a table for messages."""

    def keep(self, number: int, content: bytes) -> None:
        """Store one submission's predictions durably, before it is counted."""

    def kept(self, number: int) -> bytes:
        """Return the stored predictions of a submission."""

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Open the ledger that is debited for rounds, if there is one."""


@dataclass(frozen=True)
class SubmissionVerdict(ResultBase):
    """The answer to one submission.

    Attributes:
        number: the submission's number, from 1.
        team: who submitted.
        metric: the metric it was scored by.
        better: whether it changed the standings; under `rounds`, whether the holdout answered.
        value: the metric's value as the board shows it; None where it is not published.
        left: submissions, or rounds, that remain.
        outcome: its outcome in the log, see `BoardEntry`.
        noise_sd: the standard deviation of the noise in `value`.
        repeated: whether this is a stored answer, returned for a repeated submission.
        at: when it was submitted, in UTC.
    """

    schema = ("leaderboard-verdict", 2)

    number: int
    team: str
    metric: str
    better: bool
    value: float | None
    left: int
    outcome: str
    noise_sd: float = 0.0
    repeated: bool = False
    at: str = ""

    def explain(self) -> str:
        """Return the verdict as a sentence."""
        if self.outcome in ("training", "holdout"):
            noise = f", noise of standard deviation {self.noise_sd:.3g}" if self.noise_sd else ""
            source = "from the holdout" if self.outcome == "holdout" else "as on the training set"
            outcome = f"has {self.metric} {self.value:.6g}, {source}{noise}"
        elif self.outcome == KEPT:
            outcome = "is kept for the final ranking, without a score: no announcements are left"
        else:
            outcome = "is the best" if self.better else "does not beat the best"
            outcome += "" if self.value is None else f", at {self.value:.6g}"
        note = " (stored answer: not counted again)" if self.repeated else ""
        return f"Submission {self.number} of {self.team} {outcome}; {self.left:,} left{note}."


@dataclass(frozen=True)
class StandingRow:
    """A row of the standings.

    `value` is the score as the board shows it, None where only one bit was published; `low` and
    `high` bound the true score with the board's confidence.
    """

    rank: int
    team: str
    number: int
    value: float | None
    low: float | None
    high: float | None
    metric: str


@dataclass(frozen=True)
class BoardPromise(ResultBase):
    """The accuracy guarantee of a board.

    Attributes:
        width: the largest error of a published score or verdict, as a share of the metric's range.
        confidence: the probability with which the guarantee holds.
        questions: the number of questions or submissions it covers.
        words: the guarantee as a sentence.
        epsilon: under `rounds` with noise, the privacy level for replacing one row; otherwise None.
    """

    width: float
    confidence: float
    questions: int
    words: str
    epsilon: float | None = None

    def explain(self) -> str:
        """Return the guarantee as a sentence."""
        return self.words


@dataclass(frozen=True)
class BoardStatus(ResultBase):
    """The public state of a board: its task, its guarantee, what is left, and the standings.

    Attributes:
        name: of the board.
        mode: "ladder", "one bit" or "rounds".
        metric: the name of the metric.
        identity: the name of the id column in predictions.
        rows: the number of rows to predict.
        asked_rows: the rows that the standings rest on; a pair counts as two.
        final_rows: the rows kept apart for the final ranking; a pair counts as two.
        submissions: the number of submissions accepted in all; under `rounds`, of rounds.
        submitted: the number of submissions so far.
        left: submissions, or rounds, that remain.
        announcements_left: scores that can still be announced; None without a limit.
        confidence: of the guarantee.
        width: the largest error of a score or verdict, as a share of the metric's range.
        worst: the metric's value at score 0.
        best: the metric's value at score 1.
        promise: the guarantee in words.
        ended: whether the board accepts no more submissions.
        named: the submission that each team has named for the final ranking.
        places: the standings, best first.
        ranking: the final ranking; None before the end, and where no rows were kept apart.
    """

    schema = ("leaderboard", 2)

    name: str
    mode: str
    metric: str
    identity: str
    rows: int
    asked_rows: int
    final_rows: int
    submissions: int
    submitted: int
    left: int
    announcements_left: int | None
    confidence: float
    width: float
    worst: float
    best: float
    promise: str
    ended: bool
    named: Mapping[str, int]
    places: tuple[StandingRow, ...]
    ranking: FinalRanking | None

    def explain(self) -> str:
        """Return the state in sentences."""
        unit = "submission" if self.mode != "rounds" else "round"
        if self.ranking is not None:
            return f"{self.name} has ended. {self.ranking.explain()}"
        if self.ended:
            return f"{self.name} has ended.\n{self.promise}"
        lines = [
            f"Predict {self.rows:,} rows: a file with {self.identity!r} and 'prediction', scored "
            f"by {self.metric}. {self.left:,} of {counted(self.submissions, unit)} left.",
            self.promise,
        ]
        if self.final_rows:
            lines.append(
                f"{self.final_rows:,} of the rows are secretly kept apart for the final ranking: "
                "each team names one submission, which is scored on them once, at the end."
            )
        if self.announcements_left is not None:
            left = counted(self.announcements_left, "announcement")
            lines.append(
                f"{left} left for all teams together; later submissions are stored, not scored."
            )
        return "\n".join(lines)

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return the header and rows of the standings, or of the final ranking once it exists."""
        if self.ranking is not None:
            return self.ranking.table()

        def cell(value: float | None) -> str:
            return "" if value is None else f"{value:.6g}"

        rows: list[list[object]] = [
            [place.rank, place.team, place.number, *map(cell, (place.value, place.low, place.high))]
            for place in self.places
        ]
        return ["rank", "team", "submission", "value", "low", "high"], rows


def status_of(transcript: Transcript, rows: int = 0) -> BoardStatus:
    """Return the public state of a board, from its transcript alone."""
    metric, rule, setup = transcript.metric, transcript.rule, transcript.about
    promise, announces = promise_of(transcript), isinstance(rule, AnnouncementRule)
    announced = len(transcript.standings)
    limit = rule.announcements if isinstance(rule, AnnouncementRule) else None
    per_row = 2 if metric.pairs else 1
    final_rows = 0 if setup.final is None else setup.final.rows * per_row
    return BoardStatus(
        name=setup.name,
        mode=rule.kind,
        metric=metric.name,
        identity="" if setup.columns is None else setup.columns.identity,
        rows=rows or transcript.rows * per_row + final_rows,
        asked_rows=transcript.rows * per_row,
        final_rows=final_rows,
        submissions=rule.submissions
        if isinstance(rule, AnnouncementRule)
        else rule.settings.budget,
        submitted=len(transcript.entries),
        left=transcript.remaining,
        announcements_left=None if limit is None else max(0, limit - announced),
        confidence=promise.confidence,
        width=promise.width,
        worst=metric.worst,
        best=metric.best,
        promise=promise.words,
        ended=transcript.ended,
        named=dict(transcript.named if transcript.chosen is None else transcript.chosen),
        places=_announced_places(transcript, metric) if announces else _best_answers(transcript),
        ranking=None if transcript.ranking is None else ranking_from_body(transcript.ranking),
    )


def verdict_for(transcript: Transcript, entry: BoardEntry) -> SubmissionVerdict:
    """Return the verdict on a counted submission, as its team sees it."""
    scorings = [
        scoring for scoring in transcript.about.scorings if scoring.metric == entry.note.metric
    ]
    metric = scorings[0].read() if scorings else transcript.metric
    value, noise_sd = None, 0.0
    if entry.value is not None and isinstance(transcript.rule, AnnouncementRule):
        value = metric.shown(float(entry.value))
    elif entry.value is not None:
        answer = entry.answer(transcript.rounds.settings)
        value = metric.value([answer.value])
        ends = metric.interval([answer.value], answer.noise_sd)
        noise_sd = (ends.high - ends.low) / 2
    return SubmissionVerdict(
        number=entry.number,
        team=entry.label,
        metric=metric.name,
        better=entry.announced or entry.overfit,
        value=value,
        left=entry.remaining,
        outcome=entry.outcome,
        noise_sd=noise_sd,
        at=entry.note.at,
    )


def _announced_places(transcript: Transcript, metric: Metric) -> tuple[StandingRow, ...]:
    rows, standings = [], transcript.standings
    for rank, standing in enumerate(reversed(standings), start=1):
        score = transcript.best if standing.score is None and rank == 1 else standing.score
        value = low = high = None
        if score is not None:
            ends = interval_of(transcript, len(standings) - rank)
            value, low, high = map(metric.shown, (score, ends.low, ends.high))
        rows.append(
            StandingRow(rank, standing.team, standing.number, value, low, high, metric.name)
        )
    return tuple(rows)


def _best_answers(transcript: Transcript) -> tuple[StandingRow, ...]:
    """Return every team's best answer by each metric, with the guarantee as its interval."""
    tolerance, rows = transcript.promise().tolerance, []
    for scoring in sorted(transcript.about.scorings, key=lambda answer: answer.metric):
        metric, best = scoring.read(), dict[str, SubmissionVerdict]()
        for entry in transcript.entries:
            if entry.value is None or entry.note.metric != metric.name:
                continue
            verdict = verdict_for(transcript, entry)
            leader = best.get(verdict.team)
            if leader is None or (verdict.value or 0.0) > (leader.value or 0.0):
                best[verdict.team] = verdict
        ranked = sorted(best.values(), key=lambda answer: (-(answer.value or 0.0), answer.number))
        for rank, answer in enumerate(ranked, start=1):
            mean = float(transcript.entries[answer.number - 1].value or 0)
            low, high = metric.interval([mean], tolerance)
            row = StandingRow(
                rank, answer.team, answer.number, answer.value, low, high, metric.name
            )
            rows.append(row)
    return tuple(rows)


def promise_of(transcript: Transcript) -> BoardPromise:
    """Return the guarantee of a board, from its transcript alone."""
    if isinstance(transcript.rule, AnnouncementRule):
        rule, metric = transcript.rule, transcript.metric
        beliefs = None if transcript.beliefs is None else beliefs_from_json(transcript.beliefs)
        terms = (beliefs, rule.rows, rule.submissions, 1 - rule.confidence, rule.steps, metric)
        width = _ANNOUNCING[rule.kind]._width_at(*terms, rule.announcements)
        claim = f"the best score is within {width:.4g} of its true value"
        if rule.kind == "one bit":
            claim = f"every verdict is right if the true scores differ by more than {width:.4g}"
        words = (
            f"With probability {rule.confidence:g} {claim}, as a share of the metric's range, "
            "whatever anybody submits."
        )
        if width >= VACUOUS:
            words += " This guarantee is vacuous: there are too few rows for so many submissions."
        return BoardPromise(width, rule.confidence, rule.submissions, words)
    promise = transcript.promise()
    scorings = transcript.about.scorings or (Scoring(),)
    width = max(scoring.read().spread(promise.tolerance) for scoring in scorings)
    words = (
        f"With probability {promise.confidence:g} every answer to {promise.questions:,} questions "
        f"is within {width:.4g} of the true value, as a share of the metric's range."
    )
    if promise.vacuous:
        words += " This guarantee is vacuous: too few rows for so many answers from the holdout."
    level = promise.epsilon if transcript.rounds.settings.noise else None
    return BoardPromise(width, promise.confidence, promise.questions, words, level)


@dataclass(frozen=True)
class Board:
    """A leaderboard over secret labels: submissions are predictions by row id.

    `files` locates its log, tables and stored predictions: a folder (`folders.FolderFiles`) or a
    curator's data directory. Make one in a folder with `create_board`, reopen it with `board_of`.

    Theorem: docs/theory/ladder.md, docs/theory/counting.md, docs/theory/final-ranking.md
    """

    files: BoardFiles

    @classmethod
    def create(
        cls,
        files: BoardFiles,
        columns: Columns,
        scorings: Scoring | Sequence[Scoring],
        rule: str = "ladder",
        *,
        name: str = "",
        final: Number = 0,
        series: Belief | None = None,
        pay: Callable[[TrainHoldoutTables], None] | None = None,
        **options: Any,
    ) -> Board:
        """Create a board and its files.

        Args:
            files: where its tables are, and its log will be.
            columns: the roles of the columns; rows with the same group depend on each other.
            scorings: the metric; several under `rounds`.
            rule: "ladder", "one bit" or "rounds".
            name: of the board.
            final: the share of rows kept apart for the final ranking, such as 1/2; 0 for none.
            series: the belief about rows that are a series in time; a chain or a box.
            pay: under `rounds`, creates the ledger's dataset, given the tables as they will be
                asked.
            options: of `Ladder`: submissions, confidence, steps, announcements; of
                `ReusableHoldout`: threshold, noise, budget, values, queries, dataset.

        Raises:
            InvalidInputError: if a table is invalid, or the guarantee would be empty.
            StorageError: if a board exists already, or its files cannot be written.
        """
        instance(columns, Columns, "columns")
        scoring_list = (scorings,) if isinstance(scorings, Scoring) else tuple(scorings)
        metrics = [instance(scoring, Scoring, "scoring").read() for scoring in scoring_list]
        rule = choice(rule.replace("-", " ") if isinstance(rule, str) else rule, [*RULES], "rule")
        share = _read_share(final)
        secret, table = new_secret(), files.table("holdout")
        labels = Labels.of_table(*table, columns, files.named("holdout"), series)
        if rule != "rounds":
            if len(scoring_list) != 1:
                raise InvalidInputError(
                    f"A board of this rule has one metric, not {len(scoring_list)}."
                )
            need_classes(scoring_list[0])
            check_targets(labels.targets, metrics[0], files.named("holdout"))
        confidence = parse_share(options.get("confidence", 0.95), "confidence")
        gap, mixing = labels.gap_for(share, 1 - confidence)
        asked_mask, final_mask = labels.split(share, gap, secret.key)
        final_part = None
        if share:
            if not asked_mask.any() or not final_mask.any():
                raise InvalidInputError(
                    "There are too few rows or groups to keep some apart for the final ranking; "
                    "give more rows, or final=0."
                )
            rows = labels.scored(final_mask, metrics[0], secret.key)
            beliefs = None if rows.belief is None else (rows.belief,)
            final_part = FinalPart(
                share,
                len(rows.cells),
                commitment(secret.key, rows.cells),
                None if beliefs is None else beliefs_to_json(without_names(beliefs)),
                gap,
                mixing,
            )
        setup = BoardSetup(name, columns, scoring_list, final_part)
        shared = {"path": files.log, "about": setup, "secret": secret, **options}
        if rule == "rounds":
            study = _study(files, columns, table, asked_mask)
            if pay is not None:
                pay(study)
            with files.payer() as payer:
                tables = (study.train, study.holdout)
                ReusableHoldout(*tables, study.belief(), ledger=payer, **shared).close()
        else:
            rows = labels.scored(asked_mask, metrics[0], secret.key)
            _ANNOUNCING[rule](rows.cells, rows.belief, **shared).close()
        return cls(files)

    @property
    def transcript(self) -> Transcript:
        """The log so far: all lines that the secret seals."""
        return read_transcript(sealed_lines(self.files.log))

    @cached_property
    def begun(self) -> Transcript:
        """The board's settings: the first line of its log, which never changes."""
        return read_transcript(sealed_lines(self.files.log).partition("\n")[0])

    @property
    def request_key(self) -> str:
        """The key of request digests, derived from the secret's key without revealing it."""
        return _keyed(read_secret(self.files.log).key, "requests", [])

    @cached_property
    def ids(self) -> list[str]:
        """All row ids to predict, sorted, because the order of the file may reveal labels."""
        return sorted(self._labels.ids + self._training_ids)

    def metric(self, name: str | None = None) -> Metric:
        """Return the metric of this name; the first if no name is given."""
        scorings = {scoring.metric: scoring for scoring in self.begun.about.scorings}
        if not scorings:
            raise InvalidInputError("This is not a leaderboard: it was created without a metric.")
        metric = scorings[choice(name or next(iter(scorings)), [*scorings], "metric")].read()
        if self.begun.rule.kind == "rounds":
            study = self._study
            # Training rows are public, so their labels may define the classes.
            at = study.position(str(study.columns.target))
            return with_classes(metric, study.train[:, at])
        return metric

    def promise(self) -> BoardPromise:
        """Return the accuracy guarantee of the board."""
        return promise_of(self.begun)

    def standings(self) -> BoardStatus:
        """Return the public state: the task, the guarantee, what is left, and the standings.

        Raises:
            StorageError: if the files of the board are damaged, cut or changed.
        """
        return status_of(self.transcript)

    def check(self, predictions: Mapping[str, str], metric: str | None = None) -> None:
        """Raise InvalidInputError for predictions with wrong ids or unknown classes."""
        if not isinstance(predictions, Mapping):
            raise InvalidInputError(
                f"predictions must map ids to labels, not {shortened(predictions)}."
            )
        try:
            # One pass over all text; only if it fails is the bad cell looked for.
            "".join([*predictions.keys(), *predictions.values()]).encode()
        except (TypeError, UnicodeEncodeError):
            for cell in (cell for pair in predictions.items() for cell in pair):
                check_text(cell, "an id or a prediction")
        rounds = self.begun.rule.kind == "rounds"
        hint = " The rows of the training table need predictions too." if rounds else ""
        check_ids(self.ids, predictions, hint)
        check_predictions(predictions, self.metric(metric))

    def submit(
        self,
        team: str,
        predictions: Mapping[str, str],
        key: str | None = None,
        metric: str | None = None,
        attempts: int | None = None,
    ) -> SubmissionVerdict:
        """Score predictions by row id; ids and labels are written as `plain_label` does.

        Idempotent: retrying the same request, with or without its key, returns the stored answer.

        Args:
            team: who submits.
            predictions: one per row id, rows kept apart included.
            key: an idempotency key of the team; using it for other predictions is an error.
            metric: under `rounds` with several metrics, the one to score by.
            attempts: the limit for each team; None for no limit.

        Raises:
            InvalidInputError: for ids that do not match, with how many; for unreadable labels, or a
                key used for other predictions. The submission is not counted.
            BudgetExceeded: after the last submission, or attempt.
            StorageError: if the answer could not be recorded; it is then withheld.
        """
        check_team(team)
        if key is not None:
            check_text(key, "key")
        self.check(predictions, metric)
        metric_used = self.metric(metric)
        note = submission_note(self.request_key, team, key, metric_used.name, predictions)
        with self._opened() as engine:
            transcript = engine.transcript
            stored = stored_verdict(transcript, team, note)
            if stored is not None:
                return stored
            if transcript.ended:
                raise BudgetExceeded("This board has ended and accepts no more submissions.")
            if transcript.remaining <= 0:
                raise BudgetExceeded(_used_up(transcript))
            if attempts is not None and attempts_used(transcript, team) >= attempts:
                raise BudgetExceeded(f"You have used all of your {attempts:,} attempts.")
            if transcript.about.final is not None:
                # Before it is counted, so that every counted submission can be ranked at the end.
                content = json.dumps(dict(predictions), sort_keys=True).encode()
                self.files.keep(len(transcript.entries) + 1, zlib.compress(content))
            if isinstance(engine, ReusableHoldout):
                statistic = self._study.statistic(predictions, metric_used)
                engine.ask(statistic, label=team, note=note)
            else:
                engine.submit(team, self._rows(False).question(predictions, metric_used), note)
            transcript = engine.transcript
            return verdict_for(transcript, transcript.entries[-1])

    def choose(self, team: str, number: int) -> BoardStatus:
        """Name the submission that will be scored for a team in the final ranking; it may change.

        A team that names none gets its last submission that changed the standings, or else its
        latest.
        """
        check_team(team)
        with self._opened() as engine:
            transcript = engine.transcript
            if transcript.about.final is None:
                raise InvalidInputError(
                    "This board has no final ranking, so there is nothing to name a submission for."
                )
            if transcript.ended:
                raise BudgetExceeded("This board has ended: submissions can no longer be named.")
            own = [
                entry.number
                for entry in transcript.entries
                if entry.label == team and _is_kept(entry)
            ]
            if integer(number, "number", 0) not in own:
                numbers = ", ".join(map(str, own[-10:])) or "none"
                raise InvalidInputError(
                    f"{team} has no submission {shortened(number)}; its submissions are {numbers}."
                )
            engine.record({"named": {team: number}})
        return self.standings()

    def finish(self) -> BoardStatus:
        """End the competition and score each team's named submission once, on the rows kept apart.

        A board of one bit also publishes its best score. The named submissions are recorded before
        any of them is scored. Idempotent: an interrupted call continues, a repeated one returns the
        same ranking.

        Raises:
            InvalidInputError: if the board has neither rows kept apart nor a hidden best score.
            StorageError: if the kept rows or predictions were changed, or nothing could be
                recorded.
        """
        with self._opened() as engine:
            transcript = engine.transcript
            if transcript.about.final is None and not isinstance(engine, OneBit):
                raise InvalidInputError(
                    "This board has no final ranking: no rows were kept apart for it. Give their "
                    "share when you create a board (--final 1/2). A Ladder already shows its best "
                    "score."
                )
            if (
                transcript.about.final is not None
                and transcript.chosen is None
                and not final_choices(transcript)
            ):
                raise InvalidInputError(
                    "There are no submissions yet, so there is nothing to score."
                )
            if isinstance(engine, OneBit) and transcript.best is None and transcript.chosen is None:
                engine.final()
            if transcript.about.final is not None and transcript.ranking is None:
                chosen = transcript.chosen
                if chosen is None:
                    chosen = final_choices(transcript)
                    # Recorded first: an interrupted finish must go on with the same submissions.
                    engine.record({"chosen": chosen})
                ranking = self._ranked(transcript, chosen)
                engine.record({"ranking": ranking.body()})
        return self.standings()

    def _ranked(self, transcript: Transcript, chosen: Mapping[str, int]) -> FinalRanking:
        """Score the named submissions on the rows kept apart, which only this method reads."""
        metric, rows, final_part = transcript.metric, self._rows(True), transcript.about.final
        secret = read_secret(self.files.log)
        if final_part is None or commitment(secret.key, rows.cells) != final_part.commitment:
            raise StorageError(
                "The table of labels was changed: the rows kept apart are not those of the board's "
                "creation. Restore the table. Nothing was scored."
            )
        values = {}
        for team, number in chosen.items():
            predictions = self._kept(transcript.entries[number - 1])
            scores = np.asarray(rows.question(predictions, metric)(rows.cells), float)
            values[team] = (number, np.clip(np.nan_to_num(scores), 0.0, 1.0))
        rule = transcript.rule
        confidence = rule.confidence if isinstance(rule, AnnouncementRule) else 0.95
        return rank_teams(metric, rows.belief, values, confidence, final_part.mixing)

    def _kept(self, entry: BoardEntry) -> dict[str, str]:
        """Return the stored predictions of a submission, verified by the digest in the log."""
        try:
            # With a limit: a file that was replaced could expand without end.
            text = zlib.decompressobj().decompress(self.files.kept(entry.number), _LARGEST)
            predictions = json.loads(text)
            digest = submission_note(
                self.request_key, "", None, entry.note.metric, predictions
            ).digest
        except (zlib.error, ValueError, AttributeError, InvalidInputError):
            predictions, digest = {}, ""
        if not hmac.compare_digest(digest, entry.note.digest):
            raise StorageError(
                f"The stored predictions of submission {entry.number} were changed after it was "
                "counted. Restore the board's files. Nothing was scored."
            )
        return dict(predictions)

    @contextmanager
    def _opened(self) -> Iterator[Engine]:
        """Lock the board for writing."""
        kind, path, wait = self.begun.rule.kind, self.files.log, self.files.wait
        if kind == "rounds":
            study = self._study
            with self.files.payer() as payer:
                dataset = self.begun.rounds.dataset
                tables = (study.train, study.holdout)
                with closing(ReusableHoldout.resume(path, *tables, payer, dataset, wait)) as engine:
                    yield engine
            return
        with closing(_ANNOUNCING[kind].resume(path, self._rows(False).cells, wait)) as board:
            yield board

    @cached_property
    def _labels(self) -> Labels:
        series = None
        if self.begun.beliefs is not None and self.begun.columns.group is None:
            series = beliefs_from_json(self.begun.beliefs)[0]
        table = self.files.table("holdout")
        return Labels.of_table(*table, self.begun.columns, self.files.named("holdout"), series)

    @cached_property
    def _parts(self) -> tuple[Mask, Mask]:
        """The rows that are asked, and the rows kept apart for the final ranking."""
        part, key = self.begun.about.final, read_secret(self.files.log).key
        return self._labels.split(part.share if part else 0.0, part.gap if part else 0, key)

    def _rows(self, final: bool) -> ScoredRows:
        key = read_secret(self.files.log).key
        return self._labels.scored(self._parts[int(final)], self.begun.metric, key)

    @cached_property
    def _study(self) -> TrainHoldoutTables:
        columns, table = self.begun.columns, self.files.table("holdout")
        return _study(self.files, columns, table, self._parts[0])

    @cached_property
    def _training_ids(self) -> list[str]:
        if self.begun.rule.kind != "rounds":
            return []
        study = self._study
        ids: list[str] = study.train[:, study.position(study.columns.identity)].tolist()
        return ids


def _study(files: BoardFiles, columns: Columns, table: Table, asked: Mask) -> TrainHoldoutTables:
    """Validate both tables of rounds, then drop the rows kept apart from the holdout."""
    names = (files.named("train"), files.named("holdout"))
    whole = TrainHoldoutTables.of_tables(columns, files.table("train"), table, names)
    return replace(whole, holdout=whole.holdout[asked])


def _used_up(transcript: Transcript) -> str:
    if isinstance(transcript.rule, AnnouncementRule):
        return (
            f"All {transcript.rule.submissions:,} submissions are used; the guarantee covers no "
            "more."
        )
    return (
        f"All {transcript.rule.settings.budget:,} rounds are spent; the holdout gives no more "
        "answers."
    )


def attempts_used(transcript: Transcript, team: str) -> int:
    """Return the number of a team's counted submissions, interrupted ones included."""
    return sum(entry.label == team for entry in transcript.entries)


def _read_share(final: Number) -> float:
    share = to_fraction(final, "final")
    if not 0 <= share < 1:
        raise InvalidInputError(
            f"final is {shortened(final)}; give the share of rows to keep apart for the final "
            "ranking, such as 1/2, or 0 for none."
        )
    return float(share)


def _keyed(key: str, purpose: str, content: Any) -> str:
    """Return a keyed digest, which nobody without the key can compute or test guesses against."""
    text = json.dumps([purpose, content], ensure_ascii=True)
    return hmac.new(bytes.fromhex(key), text.encode(), "sha256").hexdigest()


def submission_note(
    request_key: str, team: str, key: str | None, metric: str, predictions: Mapping[str, str]
) -> SubmissionNote:
    """Return the note stored beside a submission, by which a repetition is recognised."""
    return SubmissionNote(
        "" if key is None else _keyed(request_key, "key", [team, key]),
        # Sorted: another order of rows is the same submission.
        _keyed(request_key, "predictions", [metric, sorted(predictions.items())]),
        metric,
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def stored_verdict(
    transcript: Transcript, team: str, note: SubmissionNote
) -> SubmissionVerdict | None:
    """Return the stored verdict on the same request, by its key or by equal predictions; else None.

    Raises:
        InvalidInputError: for a key that was used for other predictions.
    """
    entries = [entry for entry in transcript.entries if entry.label == team]
    if any(
        entry.note.key == note.key != "" and entry.note.digest != note.digest for entry in entries
    ):
        raise InvalidInputError(
            "This idempotency key was used for another request; give a new one."
        )
    # An interrupted submission has no answer to return: it is scored and counted again.
    answered = (entry for entry in entries if entry.outcome not in (WAITING, INTERRUPTED))
    match = next((entry for entry in answered if entry.note.digest == note.digest), None)
    return None if match is None else replace(verdict_for(transcript, match), repeated=True)


def _is_kept(entry: BoardEntry) -> bool:
    return entry.outcome != INTERRUPTED and bool(entry.note.digest)


def final_choices(transcript: Transcript) -> dict[str, int]:
    """Return each team's submission for the final ranking: named, else best, else latest."""
    latest: dict[str, int] = {}
    improved: dict[str, int] = {}
    for entry in filter(_is_kept, transcript.entries):
        latest[entry.label] = entry.number
        if entry.announced:
            improved[entry.label] = entry.number
    return {**latest, **improved, **transcript.named}


def guard(
    evaluate: Callable[[Any, Any], Any], *, holdout: ReusableHoldout | Ladder
) -> Callable[[Any], float]:
    """Wrap an evaluation function so that every score comes from a holdout or a board.

    For searches that call a function with a candidate and read a number: grid searches, Optuna,
    agents in a loop. The guarantee of the holdout or the board covers all of these scores.

    Args:
        evaluate: called as evaluate(candidate, rows); returns one value in [0, 1] per row, larger
            being better.
        holdout: a `ReusableHoldout`, which returns the candidate's score, or a `Ladder`, which
            returns the best score so far, this candidate included.

    Returns:
        A function of the candidate alone. It raises `BudgetExceeded` when the budget is spent and
        never returns a placeholder, so a search cannot mistake it for a score.

    Raises:
        InvalidInputError: if `evaluate` is no function, or `holdout` neither of the two.

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
