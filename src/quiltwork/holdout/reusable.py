"""`ReusableHoldout`: adaptive questions about hidden data, answered while a budget lasts.

It guards against mistakes, not against malicious code: an analyst who runs Python in the same
process can read its memory. Let strangers ask through the command line or a service. A question
costs one pass over the rows.

Theorem: docs/theory/reusable-holdout.md
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import instance
from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import as_beliefs, beliefs_from_json, beliefs_to_json
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    QuiltworkWarning,
    UnsupportedError,
)
from quiltwork.exact import Number, float_up, positive_fraction, shortened
from quiltwork.holdout import payments
from quiltwork.holdout.algorithm import (
    AlgorithmSettings,
    QueryValues,
    answer,
    parse_count,
    parse_sigma,
)
from quiltwork.holdout.arrays import (
    Data,
    check_length,
    commitment,
    count_rows,
    freeze_rows,
    freeze_train_and_holdout,
    without_names,
)
from quiltwork.holdout.evaluation import Statistic, TrainingQuery, evaluate, prepare
from quiltwork.holdout.guarantee import Guarantee, parse_share
from quiltwork.holdout.sealed_log import SealedLog, Secret, check_text, new_secret, open_log
from quiltwork.holdout.single_process import SingleProcess
from quiltwork.holdout.transcript import (
    HOLDOUT,
    INTERRUPTED,
    TRAINING,
    Answer,
    BoardEntry,
    BoardSetup,
    Rounds,
    SubmissionNote,
    Transcript,
    read_transcript,
)

if TYPE_CHECKING:
    from quiltwork.holdout.holdout_plan import HoldoutPlan


class ReusableHoldout(SingleProcess):
    """Algorithm 1: answers come from the training set while it agrees with the holdout.

    A question's value on the holdout is compared with its value on the training set. If they differ
    by less than a noisy threshold, the training value is the answer. Otherwise the answer is the
    holdout's value, with noise or rounded to few values, and one of `budget` rounds is spent.

    Args:
        train: an array with one row per sample, or a tuple such as (X, y).
        holdout: the same kind of rows, independent of the training rows.
        beliefs: how the holdout's rows depend on each other; None for independent rows.
        threshold: T, in units of a mean of values in [0, 1].
        noise: σ, in the same units. The noise of an answer from the holdout has standard deviation
            5.66·σ (√2·4σ). It may be 0 with `values`, where only accuracy is needed.
        answer_sd: instead of `noise`, the standard deviation of an answer's noise.
        budget: B, the number of answers that may come from the holdout.
        values: g; round answers from the holdout to 0, 1/g, …, 1. None for no rounding.
        queries: refuse after this many questions; None for no limit. `from_plan` sets it.
        path: store the transcript in this file, so that the holdout can be resumed.
        ledger: debited one round at a time, before the round's first question.
        dataset: the ledger's name for the holdout, which must exist.
        about: columns, metrics and rows kept apart, if the rows come from a table.
        secret: a secret whose key was used already; None draws a new one.

    Raises:
        InvalidInputError: for arguments out of range.

    >>> import numpy as np
    >>> data = np.random.default_rng(0).normal(size=(2000, 3))
    >>> h = ReusableHoldout(data[:1000], data[1000:], threshold=0.1, noise=0.01, budget=2)
    >>> h
    ReusableHoldout(1000 rows, 2 of 2 rounds left)
    >>> round(h.ask(lambda rows: rows[:, 0] > 0).value, 1)
    0.5

    Theorem: docs/theory/reusable-holdout.md
    """

    def __init__(
        self,
        train: Any,
        holdout: Any,
        beliefs: Belief | Sequence[Belief] | None = None,
        *,
        threshold: Number,
        noise: Number | None = None,
        answer_sd: Number | None = None,
        budget: int,
        values: int | None = None,
        queries: int | None = None,
        path: str | Path | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        about: BoardSetup | None = None,
        secret: Secret | None = None,
    ) -> None:
        public, private = freeze_train_and_holdout(train, holdout)
        count = count_rows(private)
        members = None if beliefs is None else as_beliefs(beliefs)
        check_length(members, count)
        sigma = parse_sigma(noise, answer_sd)
        settings = AlgorithmSettings.choose(count, threshold, sigma, budget, values)
        payments.check_ledger(ledger, dataset)
        if ledger is not None:
            _ = settings.round_epsilon  # refuses what no ledger can price
        about = BoardSetup() if about is None else instance(about, BoardSetup, "about")
        secret = new_secret() if secret is None else instance(secret, Secret, "secret")
        rule = Rounds(
            settings,
            None if queries is None else parse_count(queries, "queries"),
            count_rows(public),
            dataset,
            payments.identity_of(ledger, dataset, count),
        )
        transcript = Transcript(
            rule,
            secrets.token_hex(16),
            commitment(secret.key, public, private),
            None if members is None else beliefs_to_json(without_names(members)),
            about,
        )
        log = None
        if path is not None:
            log, secret = SealedLog.create(path, transcript.header(), secret)
        self._begin(public, private, transcript, secret, log, ledger)

    @classmethod
    def from_plan(cls, plan: HoldoutPlan, train: Any, holdout: Any, **options: Any) -> Any:
        """Create the holdout that `plan_holdout` describes; options as in the constructor.

        A plan too coarse to choose models by gives a warning, with the alternatives for the same
        rows.

        Raises:
            InvalidInputError: if the holdout has fewer rows than the plan needs.
        """
        from quiltwork.holdout.holdout_plan import HoldoutPlan, coarse_warning

        instance(plan, HoldoutPlan, "plan")
        count = count_rows(freeze_rows(holdout, "holdout"))
        if count < plan.samples:
            raise InvalidInputError(
                f"The plan needs {plan.samples:,} rows, but the holdout has {count:,}, so its "
                "promise would not hold. Plan with samples= to see what this holdout can promise."
            )
        if plan.vacuous:
            raise InvalidInputError(
                f"The plan is vacuous: it promises answers within {plan.tolerance:.3g}, and always "
                "answering 1/2 does as well. Ask for fewer queries or overfits."
            )
        if plan.mechanism == "ladder":
            raise InvalidInputError(
                "The plan is for a Ladder, which needs no training rows. Create it with "
                f"Ladder(holdout, beliefs, submissions={plan.queries}, steps={plan.values})."
            )
        if plan.mechanism == "fresh parts":
            raise InvalidInputError(
                f"The plan gives each of {plan.queries:,} questions a fresh part of the rows, "
                "which needs no reusable holdout: split the rows, keeping clusters whole, and use "
                "each part once. Or plan with mechanism='counting'."
            )
        for sentence in coarse_warning(plan):
            warnings.warn(sentence, QuiltworkWarning, stacklevel=2)
        settings = {"threshold": plan.threshold, "noise": plan.noise, "budget": plan.overfits}
        arguments = {"queries": plan.queries, "values": plan.values, **settings, **options}
        return cls(train, holdout, plan.beliefs, **arguments)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        train: Any,
        holdout: Any,
        ledger: Any = None,
        dataset: str | None = None,
        wait: float = 0,
    ) -> ReusableHoldout:
        """Reopen a holdout from its transcript file.

        Waits up to `wait` seconds for another process that holds it.

        Interrupting regains nothing, nor does cutting, editing or replacing the transcript: its
        secret file seals it. Older copies of both files are refused if the ledger has a later
        round; without a ledger they are not recognised. Any ledger but the original is refused,
        whatever its URL.

        Raises:
            StorageError: if the files are damaged, cut, in use, or belong to other data or another
                ledger.
            InvalidInputError: if there is no such file.
        """
        public, private = freeze_train_and_holdout(train, holdout)
        payments.check_ledger(ledger, dataset)
        log, transcript, secret, torn = open_log(
            path, read_transcript, lambda key: commitment(key, public, private), wait
        )
        try:
            payments.check_same_ledger(ledger, dataset, transcript, secret)
            reopened = cls.__new__(cls)
            reopened._begin(public, private, transcript, secret, log, ledger)
            reopened._settle_interrupted_round(torn)
        except BaseException:
            log.close()
            raise
        return reopened

    def _begin(
        self,
        public: Data,
        private: Data,
        transcript: Transcript,
        secret: Secret,
        log: SealedLog | None,
        ledger: Any,
    ) -> None:
        super().__init__(secret, log)
        settings, train_rows = transcript.rounds.settings, count_rows(public)
        self._transcript = transcript
        self._entries = list(transcript.entries)
        self._ledger = ledger

        def prepare_query(statistic: Statistic, sensitivity: Fraction | None) -> TrainingQuery:
            return prepare(settings, public, statistic, sensitivity)

        # The holdout lives in this closure only, so that no attribute exposes it.
        def evaluate_on_holdout(query: TrainingQuery) -> list[QueryValues]:
            return evaluate(settings, private, query, train_rows)

        self._prepare, self._evaluate_on_holdout = prepare_query, evaluate_on_holdout

    @property
    def remaining(self) -> int:
        """The number of answers that may still come from the holdout."""
        return self._entries[-1].remaining if self._entries else self.budget

    @property
    def budget(self) -> int:
        """B, the number of answers that may come from the holdout in all."""
        return self._transcript.rounds.settings.budget

    @property
    def rows(self) -> int:
        """The number of rows of the holdout, which is public."""
        return self._transcript.rounds.settings.rows

    @property
    def queries(self) -> int | None:
        """The number of questions that may be asked; None for no limit."""
        return self._transcript.rounds.queries

    @property
    def asked(self) -> int:
        """The number of questions answered so far."""
        return len(self._entries)

    @property
    def beliefs(self) -> tuple[Belief, ...] | None:
        """How the holdout's rows depend on each other; None for independent rows."""
        text = self._transcript.beliefs
        return None if text is None else beliefs_from_json(text)

    @property
    def epsilon(self) -> float:
        """The privacy loss of the whole budget for replacing one row: 9B/(4σn), rounded up."""
        settings = self._transcript.rounds.settings
        return float_up(settings.epsilon) if settings.noise else math.inf

    @property
    def transcript(self) -> Transcript:
        """All questions and answers so far."""
        return replace(self._transcript, entries=tuple(self._entries))

    def ask(
        self,
        statistic: Statistic,
        sensitivity: Number | None = None,
        label: str = "",
        note: SubmissionNote | None = None,
    ) -> Answer:
        """Ask one question.

        Args:
            statistic: from rows to one value in [0, 1] per row, each computed from its own row
                only; the question is for their mean. With `sensitivity`, from rows to one number.
            sensitivity: an upper bound, proven by you, on how far replacing one row can move that
                number. Threshold and noise are then in units of rows·sensitivity.
            label: a label for the transcript.
            note: what a `Board` stores beside the answer.

        Raises:
            BudgetExceeded: once the budget, or the ledger's, is spent.
            InvalidInputError: if the statistic fails on the training rows; this costs nothing.
            StorageError: if the answer could not be recorded; it is then withheld.

        Theorem: docs/theory/reusable-holdout.md
        """
        bound = None if sensitivity is None else positive_fraction(sensitivity, "sensitivity")
        check_text(label, "label")
        submission = SubmissionNote() if note is None else instance(note, SubmissionNote, "note")
        with self._evaluating():
            self._check_open()
            if bound is not None and self._transcript.rounds.settings.values is not None:
                raise UnsupportedError(
                    "This holdout rounds its answers to values between 0 and 1, so it can only "
                    "answer means over rows, not a number with a declared sensitivity."
                )
            query = self._prepare(statistic, bound)
            if query.columns is not None and query.columns != 1:
                raise InvalidInputError(
                    f"The statistic returned {query.columns} columns; use ask_many for several "
                    "questions at once."
                )
            return self._ask([query], label, submission)[0]

    def ask_many(
        self, statistics: Statistic | Iterable[Statistic], label: str = ""
    ) -> list[Answer]:
        """Ask many questions in order; a statistic may return one column per question.

        All statistics are tried on the training rows before the first is answered. The list is
        shorter than the questions if the budget ends among them. About 1 s for 10⁴ questions on 10⁴
        rows of booleans.

        Raises:
            BudgetExceeded: if nothing is left for the first question.
            InvalidInputError: if a statistic fails on the training rows; this costs nothing.
            StorageError: if an answer could not be recorded, or a round not be debited. Earlier
                answers are in `transcript`.
        """
        check_text(label, "label")
        with self._evaluating():
            self._check_open()
            statistic_list = [statistics] if callable(statistics) else statistics
            if not isinstance(statistic_list, Iterable):
                raise InvalidInputError(
                    "ask_many takes a statistic or a list of statistics, not "
                    f"{shortened(statistic_list)}."
                )
            queries = [self._prepare(statistic, None) for statistic in statistic_list]
            return self._ask(queries, label, SubmissionNote()) if queries else []

    def explain(self) -> str:
        """Return the guarantee, the noise of an answer included, and what is left."""
        left = f"{self.remaining:,} of {self.budget:,} rounds left."
        return f"{self.guarantee().explain()}\n{left}"

    def guarantee(
        self, queries: int | None = None, confidence: Number = 0.95, means_only: bool = True
    ) -> Guarantee:
        """Return the guarantee for `queries` questions in all.

        Theorem: docs/theory/reusable-holdout.md
        """
        questions = None if queries is None else parse_count(queries, "queries")
        share = parse_share(confidence, "confidence")
        return self.transcript.promise(questions, share, means_only)

    def _is_open(self) -> bool:
        limit = self._transcript.rounds.queries
        return self.remaining > 0 and (limit is None or self.asked < limit)

    def _check_open(self) -> None:
        super()._check_open()
        if self._transcript.ended:
            raise BudgetExceeded("This board has ended and accepts no more submissions.")
        if self.remaining == 0:
            raise BudgetExceeded(
                f"All {self.budget} rounds of this holdout are spent, so it gives no more answers. "
                "Collect new data."
            )
        if not self._is_open():
            raise BudgetExceeded(
                f"All {self.asked} questions of the plan are used; its promise covers no more."
            )

    def _ask(
        self, queries: Sequence[TrainingQuery], label: str, note: SubmissionNote
    ) -> list[Answer]:
        """Pay for the round, evaluate on the holdout, and answer."""
        with self._alone():
            self._check_open()
            self._start_round()
        # Without the lock: a statistic may wait for threads that ask.
        questions = [question for query in queries for question in self._evaluate_on_holdout(query)]
        with self._alone():
            self._check_open()
            return self._answer(questions, label, note)

    def _answer(
        self, questions: Sequence[QueryValues], label: str, note: SubmissionNote
    ) -> list[Answer]:
        """Run Algorithm 1 over the questions; record all answers, then return them."""
        self._start_round()
        first_new = len(self._entries)
        try:
            self._run(questions, label, note)
        finally:  # if the ledger fails in between, the answers before that are kept
            try:
                code = self._append([entry.body() for entry in self._entries[first_new:]])
                if code:
                    self._entries[-1] = replace(self._entries[-1], code=code)
            except BaseException:
                del self._entries[first_new:]  # withheld
                raise
        return [
            entry.answer(self._transcript.rounds.settings, question.sensitivity)
            for question, entry in zip(questions, self._entries[first_new:], strict=False)
        ]

    def _run(self, questions: Sequence[QueryValues], label: str, note: SubmissionNote) -> None:
        """Answer in order until the budget or the ledger's ends; the first round has begun."""
        settings = self._transcript.rounds.settings
        law, alone = settings.comparison_law, len(questions) == 1
        noises = [law.draw_one()] if alone else law.draw(len(questions)).tolist()
        for question, noise in zip(questions, noises, strict=True):
            if not self._is_open():
                break
            try:
                self._start_round()
            except BudgetExceeded:
                break
            value, overfit = answer(settings, question, noise, self._secret.threshold)
            left = self.remaining - overfit
            outcome = HOLDOUT if overfit else TRAINING
            self._entries.append(BoardEntry(self.asked + 1, label, value, outcome, left, note))
            if overfit:
                over = self.budget - self.remaining
                payments.close_round(self._ledger, self._transcript, self._secret, over)

    def _start_round(self) -> None:
        """Lines 2 and 9: draw a threshold; it is durable and paid for before its first use."""
        number = self.budget - self.remaining
        if self._secret.round == number:
            return
        draw = self._transcript.rounds.settings.threshold_law.draw_one
        payments.begin_round(self._ledger, self._transcript, self._secret, number, draw, self._keep)

    def _settle_interrupted_round(self, torn: bool) -> None:
        """After a crash, give up a round that may be over, or whose threshold is lost."""
        drawn = -1 if self._secret.round is None else self._secret.round
        used = max(self.budget - self.remaining, drawn + 1)
        debited = payments.lost_rounds(self._ledger, self._transcript, used)
        if torn and self.remaining:
            self._give_up_round()  # the cut-off line may have ended the round
        while self.remaining and self.budget - self.remaining < max(drawn, debited):
            self._give_up_round()  # rounds of a batch whose answers were never shown to anybody
        number = self.budget - self.remaining
        answers = [entry for entry in self._entries if entry.outcome == TRAINING]
        in_round = bool(answers) and self._entries[-1] is answers[-1]
        lost = self._secret.round != number and in_round
        over = self._secret.round == number and payments.is_over(
            self._ledger, self._transcript, self._secret
        )
        if (lost or over) and self.remaining:
            self._give_up_round()

    def _give_up_round(self) -> None:
        """Charge a round whose end is unknown, so that interrupting regains nothing."""
        entry = BoardEntry(self.asked + 1, INTERRUPTED, None, INTERRUPTED, self.remaining - 1)
        self._entries.append(replace(entry, code=self._append([entry.body()])))

    def __repr__(self) -> str:
        return f"ReusableHoldout({self.rows} rows, {self.remaining} of {self.budget} rounds left)"
