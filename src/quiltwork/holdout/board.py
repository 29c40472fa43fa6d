"""`Board`: predictions by row id, a rule that keeps what it shows true, and an end.

The command line, agents and a curator call this one object; they differ in where its files are.
A board has a rule: a *Ladder* tells the best score, rounded, and moves for a clear improvement;
*one bit* tells whether a submission is better than the best; *rounds* are the reusable holdout's,
which scores every submission while its training rows and the holdout agree. Whatever is public is
checked before a submission is counted. An exact repetition, or a key that was used, is answered
from the log. Rows kept apart are scored once, at the end, when every team has named a submission.
One process at a time scores, and others wait; what a board shows is read from the lines that its
secret seals, without a lock. A submission costs one pass over the rows and one over the log.

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
from quiltwork.holdout.final_ranking import FinalRanking, rank_teams, read_ranking
from quiltwork.holdout.guarantee import VACUOUS, read_share
from quiltwork.holdout.label_table import Labels, Mask, ScoredRows, check_targets, need_classes
from quiltwork.holdout.ladder import Ladder, interval_of
from quiltwork.holdout.metrics import Metric, Scoring
from quiltwork.holdout.one_bit import OneBit
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.sealed_log import (
    check_team,
    check_text,
    new_secret,
    read_secret,
    sealed_lines,
)
from quiltwork.holdout.studies import Study, check_ids, check_predictions, with_classes
from quiltwork.holdout.transcript import (
    INTERRUPTED,
    KEPT,
    RULES,
    WAITING,
    About,
    Announcing,
    BoardEntry,
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
"""Bytes of the predictions of one submission."""


class BoardFiles(Protocol):
    """Where the things of a board are."""

    @property
    def log(self) -> Path:
        """Of its lines; their secret is beside it."""

    @property
    def wait(self) -> float:
        """Seconds for which another process that scores is waited for."""

    def table(self, side: str) -> Table:
        """Return the header and the rows of `train` or `holdout`, as text."""

    def named(self, side: str) -> str:
        """Return how messages call a table."""

    def keep(self, number: int, content: bytes) -> None:
        """Keep what was predicted by a submission, durably; one that was not counted is lost."""

    def kept(self, number: int) -> bytes:
        """Return what was predicted."""

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Open the ledger that pays for rounds, if there is one."""


@dataclass(frozen=True)
class SubmissionVerdict(ResultBase):
    """What a submission is told.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        metric: by which it was scored.
        better: whether it moved the board; of rounds, whether it came from the holdout.
        value: the metric's value as the board shows it; None where nothing more is told.
        left: how many more submissions, or rounds, there are.
        outcome: what came of it, as in the log.
        noise_sd: the standard deviation of the noise in `value`.
        repeated: whether it was answered from the log.
        at: when it came.
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
        """Say it in a sentence."""
        if self.outcome in ("training", "holdout"):
            noise = f", noise of standard deviation {self.noise_sd:.3g}" if self.noise_sd else ""
            where = "from the holdout" if self.outcome == "holdout" else "as on the training set"
            told = f"has {self.metric} {self.value:.6g}, {where}{noise}"
        elif self.outcome == KEPT:
            told = "is kept for the end: every announcement is used, and nothing is compared"
        else:
            told = "is the best" if self.better else "does not beat the best"
            told += "" if self.value is None else f", at {self.value:.6g}"
        again = " (answered from the log, not counted again)" if self.repeated else ""
        return f"Submission {self.number} of {self.team} {told}; {self.left:,} left{again}."


@dataclass(frozen=True)
class StandingRow:
    """A line of the standings: `value` as the board shows it, None where only one bit was told, and
    where the truth may be, with the board's confidence.
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
    """What a board promises.

    Attributes:
        width: of a score, or of a verdict, a share of the way from the worst to the best value.
        confidence: with which probability it holds.
        questions: or submissions that it covers.
        words: the promise as a sentence.
        epsilon: the level of rounds for replacing a row; None where no row is protected.
    """

    width: float
    confidence: float
    questions: int
    words: str
    epsilon: float | None = None

    def explain(self) -> str:
        """Say it."""
        return self.words


@dataclass(frozen=True)
class BoardStatus(ResultBase):
    """What a board asks for, what it promises, what is left, and how teams stand.

    Attributes:
        name: of the board.
        mode: "ladder", "one bit" or "rounds".
        metric: the name of the metric.
        identity: the name of the id column of predictions.
        rows: that are predicted, all of them.
        asked_rows: that the standings rest on; pairs count as two.
        final_rows: that are kept for the end, likewise.
        submissions: accepted in all; of rounds, how many there are.
        submitted: so far.
        left: how many more.
        announcements_left: how many more scores are announced; None for no limit.
        confidence: of the promise.
        width: of a score, or of a verdict, a share of the way from the worst to the best value.
        worst: the metric's value at the one end.
        best: at the other.
        promise: the theorem and its bound, in words.
        ended: whether nothing more is accepted.
        named: the submission that each team has named for the end.
        places: the standings, best first.
        ranking: how it ended; None before, and where no rows were kept apart.
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
        """Say it in sentences."""
        what = "submission" if self.mode != "rounds" else "round"
        if self.ranking is not None:
            return f"{self.name} has ended. {self.ranking.explain()}"
        if self.ended:
            return f"{self.name} has ended.\n{self.promise}"
        lines = [
            f"Predict {self.rows:,} rows: a file with {self.identity!r} and 'prediction', scored "
            f"by {self.metric}. {self.left:,} of {counted(self.submissions, what)} left.",
            self.promise,
        ]
        if self.final_rows:
            lines.append(
                f"{self.final_rows:,} of the rows are kept apart, nobody is told which, and scored "
                "once, at the end: name one submission for it."
            )
        if self.announcements_left is not None:
            left = counted(self.announcements_left, "announcement")
            lines.append(f"{left} left, of all teams together; after them submissions are kept.")
        return "\n".join(lines)

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return header and rows as tables and files show them; of the end, once it is there."""
        if self.ranking is not None:
            return self.ranking.table()

        def cell(value: float | None) -> str:
            return "" if value is None else f"{value:.6g}"

        rows: list[list[object]] = [
            [one.rank, one.team, one.number, *map(cell, (one.value, one.low, one.high))]
            for one in self.places
        ]
        return ["rank", "team", "submission", "value", "low", "high"], rows


def status_of(found: Transcript, rows: int = 0) -> BoardStatus:
    """Return what a board asks for, promises and shows, from its transcript alone."""
    metric, rule, about = found.metric, found.rule, found.about
    promise, ladder = promise_of(found), isinstance(rule, Announcing)
    announced = len(found.standings)
    limit = rule.announcements if isinstance(rule, Announcing) else None
    per_row = 2 if metric.pairs else 1
    final_rows = 0 if about.final is None else about.final.rows * per_row
    return BoardStatus(
        name=about.name,
        mode=rule.kind,
        metric=metric.name,
        identity="" if about.columns is None else about.columns.identity,
        rows=rows or found.rows * per_row + final_rows,
        asked_rows=found.rows * per_row,
        final_rows=final_rows,
        submissions=rule.submissions if isinstance(rule, Announcing) else rule.settings.budget,
        submitted=len(found.entries),
        left=found.remaining,
        announcements_left=None if limit is None else max(0, limit - announced),
        confidence=promise.confidence,
        width=promise.width,
        worst=metric.worst,
        best=metric.best,
        promise=promise.words,
        ended=found.ended,
        named=dict(found.named if found.chosen is None else found.chosen),
        places=_announced(found, metric) if ladder else _best_answers(found),
        ranking=None if found.ranking is None else read_ranking(found.ranking),
    )


def verdict_of(told: Transcript, entry: BoardEntry) -> SubmissionVerdict:
    """Return what a submission was told."""
    scorings = [one for one in told.about.scorings if one.metric == entry.note.metric]
    metric = scorings[0].read() if scorings else told.metric
    value, noise = None, 0.0
    if entry.value is not None and isinstance(told.rule, Announcing):
        value = metric.shown(float(entry.value))
    elif entry.value is not None:
        answer = entry.answer(told.rounds.settings)
        value = metric.value([answer.value])
        spread = metric.interval([answer.value], answer.noise_sd)
        noise = (spread.high - spread.low) / 2
    return SubmissionVerdict(
        number=entry.number,
        team=entry.label,
        metric=metric.name,
        better=entry.announced or entry.overfit,
        value=value,
        left=entry.remaining,
        outcome=entry.outcome,
        noise_sd=noise,
        at=entry.note.at,
    )


def _announced(found: Transcript, metric: Metric) -> tuple[StandingRow, ...]:
    rows, standings = [], found.standings
    for rank, one in enumerate(reversed(standings), start=1):
        score = found.best if one.score is None and rank == 1 else one.score
        value = low = high = None
        if score is not None:
            ends = interval_of(found, len(standings) - rank)
            value, low, high = map(metric.shown, (score, ends.low, ends.high))
        rows.append(StandingRow(rank, one.team, one.number, value, low, high, metric.name))
    return tuple(rows)


def _best_answers(found: Transcript) -> tuple[StandingRow, ...]:
    """Return every team's best answer by each metric, with the promise of all of them."""
    tolerance, rows = found.promise().tolerance, []
    for scoring in sorted(found.about.scorings, key=lambda one: one.metric):
        metric, best = scoring.read(), dict[str, SubmissionVerdict]()
        for entry in found.entries:
            if entry.value is None or entry.note.metric != metric.name:
                continue
            told = verdict_of(found, entry)
            known = best.get(told.team)
            if known is None or (told.value or 0.0) > (known.value or 0.0):
                best[told.team] = told
        ranked = sorted(best.values(), key=lambda one: (-(one.value or 0.0), one.number))
        for rank, one in enumerate(ranked, start=1):
            mean = float(found.entries[one.number - 1].value or 0)
            low, high = metric.interval([mean], tolerance)
            row = StandingRow(rank, one.team, one.number, one.value, low, high, metric.name)
            rows.append(row)
    return tuple(rows)


def promise_of(found: Transcript) -> BoardPromise:
    """Return what a board promises, from its transcript alone."""
    if isinstance(found.rule, Announcing):
        rule, metric = found.rule, found.metric
        beliefs = None if found.beliefs is None else beliefs_from_json(found.beliefs)
        given = (beliefs, rule.rows, rule.submissions, 1 - rule.confidence, rule.steps, metric)
        width = _ANNOUNCING[rule.kind]._width_at(*given, rule.announcements)
        told = f"the best score is within {width:.4g} of the truth"
        if rule.kind == "one bit":
            told = f"every verdict is right where scores in truth differ by more than {width:.4g}"
        words = (
            f"With probability {rule.confidence:g} {told}, as a share of the metric's range, "
            "whatever anybody submits."
        )
        if width >= VACUOUS:
            words += " This is vacuous: too few rows for so many submissions."
        return BoardPromise(width, rule.confidence, rule.submissions, words)
    promise = found.promise()
    scorings = found.about.scorings or (Scoring(),)
    width = max(one.read().spread(promise.tolerance) for one in scorings)
    words = (
        f"With probability {promise.confidence:g} every answer to {promise.questions:,} questions "
        f"is within {width:.4g} of the truth, as a share of the metric's range."
    )
    if promise.vacuous:
        words += " This is vacuous: too few rows for so many answers from the holdout."
    level = promise.epsilon if found.rounds.settings.noise else None
    return BoardPromise(width, promise.confidence, promise.questions, words, level)


@dataclass(frozen=True)
class Board:
    """Labels that nobody sees, and predictions of them by row id.

    `files` says where its log, its tables and what was predicted are: a folder
    (`folders.FolderFiles`), or a curator's data directory.
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
        pay: Callable[[Study], None] | None = None,
        **options: Any,
    ) -> Board:
        """Begin a board.

        Args:
            files: where its tables are, and its log will be.
            columns: which column is what; rows that are alike in the group depend on each other.
            scorings: the metric; of rounds, several.
            rule: "ladder", "one bit" or "rounds".
            name: of the board.
            final: the share of the rows that is kept apart for the end, such as 1/2; 0 for none.
            series: how rows depend on each other that are a series in time; a chain or a box.
            pay: of rounds, begins the dataset that the ledger is to debit, from the tables as they
                are asked.
            options: of `Ladder`: submissions, confidence, steps, announcements; of
                `ReusableHoldout`: threshold, noise, budget, values, queries, dataset.

        Raises:
            InvalidInputError: if something is wrong with a table, or it promises nothing.
            StorageError: if there is a board already, or nothing can be written.
        """
        instance(columns, Columns, "columns")
        many = (scorings,) if isinstance(scorings, Scoring) else tuple(scorings)
        metrics = [instance(one, Scoring, "scoring").read() for one in many]
        rule = choice(rule.replace("-", " ") if isinstance(rule, str) else rule, [*RULES], "rule")
        share = _read_share(final)
        secret, table = new_secret(), files.table("holdout")
        labels = Labels.of_table(*table, columns, files.named("holdout"), series)
        if rule != "rounds":
            if len(many) != 1:
                raise InvalidInputError(f"A board of this rule has one metric, not {len(many)}.")
            need_classes(many[0])
            check_targets(labels.targets, metrics[0], files.named("holdout"))
        confidence = read_share(options.get("confidence", 0.95), "confidence")
        gap, mixing = labels.gap_for(share, 1 - confidence)
        asked, kept = labels.split(share, gap, secret.key)
        part = None
        if share:
            if not asked.any() or not kept.any():
                raise InvalidInputError(
                    "Too few rows or groups to keep some apart and ask the others."
                )
            rows = labels.scored(kept, metrics[0], secret.key)
            beliefs = None if rows.belief is None else (rows.belief,)
            part = FinalPart(
                share,
                len(rows.cells),
                commitment(secret.key, rows.cells),
                None if beliefs is None else beliefs_to_json(without_names(beliefs)),
                gap,
                mixing,
            )
        about = About(name, columns, many, part)
        shared = {"path": files.log, "about": about, "secret": secret, **options}
        if rule == "rounds":
            study = _study(files, columns, table, asked)
            if pay is not None:
                pay(study)
            with files.payer() as payer:
                tables = (study.train, study.holdout)
                ReusableHoldout(*tables, study.belief(), ledger=payer, **shared).close()
        else:
            rows = labels.scored(asked, metrics[0], secret.key)
            _ANNOUNCING[rule](rows.cells, rows.belief, **shared).close()
        return cls(files)

    @property
    def transcript(self) -> Transcript:
        """Everything that was said so far, as far as the secret seals it."""
        return read_transcript(sealed_lines(self.files.log))

    @cached_property
    def begun(self) -> Transcript:
        """What the board was begun with: its first line, which never changes."""
        return read_transcript(sealed_lines(self.files.log).partition("\n")[0])

    @property
    def request_key(self) -> str:
        """By which a repeated request is known; it tells nothing about the secret's own key."""
        return _keyed(read_secret(self.files.log).key, "requests", [])

    @cached_property
    def ids(self) -> list[str]:
        """Every row id that is predicted, sorted: the order of a file may tell its labels."""
        return sorted(self._labels.ids + self._training_ids)

    def metric(self, name: str | None = None) -> Metric:
        """Return a metric that predictions may be scored by; the first if none is named."""
        scorings = {one.metric: one for one in self.begun.about.scorings}
        if not scorings:
            raise InvalidInputError("This is no leaderboard: no metric was fixed at its start.")
        metric = scorings[choice(name or next(iter(scorings)), [*scorings], "metric")].read()
        if self.begun.rule.kind == "rounds":
            study = self._study
            at = study.position(str(study.columns.target))
            return with_classes(metric, study.train[:, at])
        return metric

    def promise(self) -> BoardPromise:
        """Return what the board promises."""
        return promise_of(self.begun)

    def standings(self) -> BoardStatus:
        """Return what is asked for, promised and left, and how teams stand.

        Raises:
            StorageError: if the files of the board are damaged, cut or changed.
        """
        return status_of(self.transcript)

    def check(self, predictions: Mapping[str, str], metric: str | None = None) -> None:
        """Refuse predictions by what is public: which rows there are, which classes."""
        if not isinstance(predictions, Mapping):
            raise InvalidInputError(
                f"predictions must map ids to labels, not {shortened(predictions)}."
            )
        try:
            "".join([*predictions.keys(), *predictions.values()]).encode()
        except (TypeError, UnicodeEncodeError):
            for cell in (cell for pair in predictions.items() for cell in pair):
                check_text(cell, "an id or a prediction")
        rounds = self.begun.rule.kind == "rounds"
        hint = " Rows of the training table need predictions too." if rounds else ""
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
        """Score predictions by id, as `plain_label` has them.

        Args:
            team: who submits.
            predictions: one for every row, also for those that are kept apart.
            key: an idempotency key of the team: the same request under it is answered once. An
                exact repetition of a team's predictions is answered from the log in any case.
            metric: of rounds with several.
            attempts: of each team; None for no limit.

        Raises:
            InvalidInputError: for ids that do not match, with how many, what cannot be read, or a
                key of other predictions. Nothing was spent.
            BudgetExceeded: after the last submission, or attempt.
            StorageError: if it could not be recorded; its score is then withheld.
        """
        check_team(team)
        if key is not None:
            check_text(key, "key")
        self.check(predictions, metric)
        measure = self.metric(metric)
        note = note_of(self.request_key, team, key, measure.name, predictions)
        with self._opened() as engine:
            told = engine.transcript
            known = repeated(told, team, note)
            if known is not None:
                return known
            if told.ended:
                raise BudgetExceeded("This board has ended and accepts no more.")
            if told.remaining <= 0:
                raise BudgetExceeded(_used_up(told))
            if attempts is not None and attempts_of(told, team) >= attempts:
                raise BudgetExceeded(f"All {attempts:,} attempts of yours are used.")
            if told.about.final is not None:
                content = json.dumps(dict(predictions), sort_keys=True).encode()
                self.files.keep(len(told.entries) + 1, zlib.compress(content))
            if isinstance(engine, ReusableHoldout):
                statistic = self._study.statistic(predictions, measure)
                engine.ask(statistic, label=team, note=note)
            else:
                engine.submit(team, self._rows(False).question(predictions, measure), note)
            told = engine.transcript
            return verdict_of(told, told.entries[-1])

    def choose(self, team: str, number: int) -> BoardStatus:
        """Let a team name the submission that is scored for it at the end; it may change.

        Without a word of hers it is the last that moved the board, or else the latest.
        """
        check_team(team)
        with self._opened() as engine:
            told = engine.transcript
            if told.about.final is None:
                raise InvalidInputError("This board keeps no rows apart, so nothing is named.")
            if told.ended:
                raise BudgetExceeded("This board has ended: no submission can be named any more.")
            own = [one.number for one in told.entries if one.label == team and _is_kept(one)]
            if integer(number, "number", 0) not in own:
                listed = ", ".join(map(str, own[-10:])) or "none"
                raise InvalidInputError(
                    f"Submission {shortened(number)} is none of {team}'s, which are {listed}."
                )
            engine.record({"named": {team: number}})
        return self.standings()

    def finish(self) -> BoardStatus:
        """End the competition: score the named submissions once on the rows kept apart.

        A board of one bit tells its best score, too. What is named is written down before anything
        is scored; a finish that was interrupted goes on, and one that is done is told again.

        Raises:
            InvalidInputError: if there is nothing to end by.
            StorageError: if the kept rows or predictions are not as they were, or it could not be
                recorded.
        """
        with self._opened() as engine:
            told = engine.transcript
            if told.about.final is None and not isinstance(engine, OneBit):
                raise InvalidInputError(
                    "This board keeps no rows apart for the end. Give the share that it is to keep "
                    "when it is made (--final 1/2); a Ladder tells its best score as it goes."
                )
            if told.about.final is not None and told.chosen is None and not _choices(told):
                raise InvalidInputError("Nothing was submitted yet, so there is nothing to score.")
            if isinstance(engine, OneBit) and told.best is None and told.chosen is None:
                engine.final()
            if told.about.final is not None and told.ranking is None:
                chosen = told.chosen
                if chosen is None:
                    chosen = _choices(told)
                    engine.record({"chosen": chosen})
                ranking = self._ranked(told, chosen)
                engine.record({"ranking": ranking.body()})
        return self.standings()

    def _ranked(self, told: Transcript, chosen: Mapping[str, int]) -> FinalRanking:
        """Score what was chosen on the rows kept apart: the only place that looks at them."""
        metric, rows, part = told.metric, self._rows(True), told.about.final
        secret = read_secret(self.files.log)
        if part is None or commitment(secret.key, rows.cells) != part.commitment:
            raise StorageError(
                "The rows that were kept apart are not those of the start: put back the table of "
                "labels as it was. Nothing was scored."
            )
        values = {}
        for team, number in chosen.items():
            said = self._kept(told.entries[number - 1])
            found = np.asarray(rows.question(said, metric)(rows.cells), float)
            values[team] = (number, np.clip(np.nan_to_num(found), 0.0, 1.0))
        rule = told.rule
        confidence = rule.confidence if isinstance(rule, Announcing) else 0.95
        return rank_teams(metric, rows.belief, values, confidence, part.mixing)

    def _kept(self, entry: BoardEntry) -> dict[str, str]:
        """Return what a submission predicted, if it is what was counted."""
        try:
            kept = zlib.decompressobj().decompress(self.files.kept(entry.number), _LARGEST)
            said = json.loads(kept)
            digest = note_of(self.request_key, "", None, entry.note.metric, said).digest
        except (zlib.error, ValueError, AttributeError, InvalidInputError):
            said, digest = {}, ""
        if not hmac.compare_digest(digest, entry.note.digest):
            raise StorageError(
                f"The predictions of submission {entry.number} were changed since it was counted: "
                "put back what the board kept. Nothing was scored."
            )
        return dict(said)

    @contextmanager
    def _opened(self) -> Iterator[Engine]:
        """Hold the board while something is written."""
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
        """Return which rows are asked, and which are kept apart."""
        part, key = self.begun.about.final, read_secret(self.files.log).key
        return self._labels.split(part.share if part else 0.0, part.gap if part else 0, key)

    def _rows(self, final: bool) -> ScoredRows:
        key = read_secret(self.files.log).key
        return self._labels.scored(self._parts[int(final)], self.begun.metric, key)

    @cached_property
    def _study(self) -> Study:
        columns, table = self.begun.columns, self.files.table("holdout")
        return _study(self.files, columns, table, self._parts[0])

    @cached_property
    def _training_ids(self) -> list[str]:
        if self.begun.rule.kind != "rounds":
            return []
        study = self._study
        ids: list[str] = study.train[:, study.position(study.columns.identity)].tolist()
        return ids


def _study(files: BoardFiles, columns: Columns, table: Table, asked: Mask) -> Study:
    """Return both tables of rounds, checked together, and then without the rows kept apart."""
    names = (files.named("train"), files.named("holdout"))
    whole = Study.of_tables(columns, files.table("train"), table, names)
    return replace(whole, holdout=whole.holdout[asked])


def _used_up(told: Transcript) -> str:
    if isinstance(told.rule, Announcing):
        return f"All {told.rule.submissions:,} submissions are used; the bound covers no more."
    return f"All {told.rule.settings.budget:,} rounds are spent; it answers no more."


def attempts_of(told: Transcript, team: str) -> int:
    """Return how many answers a team got, or has begun to get."""
    return sum(one.label == team for one in told.entries)


def _read_share(final: Number) -> float:
    share = to_fraction(final, "final")
    if not 0 <= share < 1:
        raise InvalidInputError(
            f"final is {shortened(final)}; give the share of the rows that is kept apart, such as "
            "1/2, or 0 for none."
        )
    return float(share)


def _keyed(key: str, about: str, content: Any) -> str:
    """Return a digest that only the key's holder can compute, or compare with a guess."""
    text = json.dumps([about, content], ensure_ascii=True)
    return hmac.new(bytes.fromhex(key), text.encode(), "sha256").hexdigest()


def note_of(
    request_key: str, team: str, key: str | None, metric: str, predictions: Mapping[str, str]
) -> SubmissionNote:
    """Return what is written beside a submission: by it a repetition is known."""
    return SubmissionNote(
        "" if key is None else _keyed(request_key, "key", [team, key]),
        _keyed(request_key, "predictions", [metric, sorted(predictions.items())]),
        metric,
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def repeated(told: Transcript, team: str, note: SubmissionNote) -> SubmissionVerdict | None:
    """Return the answer to the same request, under its key or word for word.

    Raises:
        InvalidInputError: for a key of another request.
    """
    own = [one for one in told.entries if one.label == team]
    if any(one.note.key == note.key != "" and one.note.digest != note.digest for one in own):
        raise InvalidInputError("This Idempotency-Key asked another question; use a new one.")
    answered = (one for one in own if one.outcome not in (WAITING, INTERRUPTED))
    known = next((one for one in answered if one.note.digest == note.digest), None)
    return None if known is None else replace(verdict_of(told, known), repeated=True)


def _is_kept(entry: BoardEntry) -> bool:
    return entry.outcome != INTERRUPTED and bool(entry.note.digest)


def _choices(told: Transcript) -> dict[str, int]:
    """Return what is scored for each team: what it named, what moved the board, or the latest."""
    chosen: dict[str, int] = {}
    moved: dict[str, int] = {}
    for one in filter(_is_kept, told.entries):
        chosen[one.label] = one.number
        if one.announced:
            moved[one.label] = one.number
    return {**chosen, **moved, **told.named}


def guard(
    evaluate: Callable[[Any, Any], Any], *, holdout: ReusableHoldout | Ladder
) -> Callable[[Any], float]:
    """Wrap an evaluation so that every score comes from a holdout or a board.

    For searches that call a function with a candidate and read a number: grid searches, Optuna, an
    agent in a loop. Whatever the holdout or the board promises holds.

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
