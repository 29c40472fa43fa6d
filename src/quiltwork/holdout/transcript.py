"""The transcript of a board: its settings, then every event since, without any data row.

One line of JSON per event, each with the hash of the line before. The first line holds the rule,
the beliefs, how predictions are scored, and keyed digests of the rows. `Rounds` is the rule of the
reusable holdout: one line per answer. `AnnouncementRule` is the rule of a Ladder and of a board of
one bit: a submission is counted by one line before it is scored, and its outcome is in a second
line before anybody sees it, so an interrupted submission stays counted. Reading a transcript
replays the rule and rejects lines that it could not have produced. O(events).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from quiltwork import files
from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import float_nearest, integer, parse_stored_fraction
from quiltwork.holdout.algorithm import AlgorithmSettings, parse_count
from quiltwork.holdout.guarantee import parse_share
from quiltwork.holdout.metrics import MEAN, Metric, Scoring, scoring_from_body
from quiltwork.holdout.sealed_log import (
    chain_line,
    line_hash,
    reading,
    split_lines,
    text_of,
    verify_chain,
)
from quiltwork.results import ResultBase

if TYPE_CHECKING:
    from quiltwork.holdout.guarantee import Guarantee

SCHEMA, _VERSION = "board", 1
_MOST_BITS = 64
_MOST_STEPS = 1 << 20
FINAL_GRID_FACTOR = 8
"""The final score of a board of one bit is rounded to a step divided by this."""

TRAINING, HOLDOUT, INTERRUPTED = "training", "holdout", "interrupted"
ANNOUNCED, BETTER, UNMOVED, KEPT, WAITING = "announced", "better", "unmoved", "kept", "waiting"
"""Outcomes of events; `kept` was stored without a comparison, `waiting` is not scored yet."""


@dataclass(frozen=True)
class Answer(ResultBase):
    """The holdout's answer to one question.

    Attributes:
        value: the answer.
        overfit: whether training set and holdout differ, so that `value` comes from the holdout
            with noise or rounding; otherwise it is the training set's value.
        remaining: how many more answers may come from the holdout.
        exact: the value as a fraction.
        noise_sd: the standard deviation of the noise in `value`; 0 without noise.
        step: `value` is rounded to multiples of this; 0 without rounding.
    """

    value: float
    overfit: bool
    remaining: int
    exact: Fraction
    noise_sd: float = 0.0
    step: float = 0.0

    @property
    def source(self) -> str:
        """Where the value comes from and how precise it is, in words."""
        if not self.overfit:
            return "as on the training set"
        noise = f", noise of standard deviation {self.noise_sd:.3g}" if self.noise_sd else ""
        return f"from the holdout{noise}" + (f", rounded to {self.step:.3g}" if self.step else "")

    def explain(self) -> str:
        """Return the answer, its source and what is left, in a sentence."""
        left = f"{self.remaining:,} more answers may come from the holdout"
        return f"{self.value:.6g}, {self.source}; {left}."


@dataclass(frozen=True)
class Standing:
    """A submission that changed the standings.

    Attributes:
        number: the submission's number, from 1.
        team: who submitted.
        score: the board's best score from then on, a multiple of the step; None where only one bit
            is announced.
    """

    number: int
    team: str
    score: float | None


@dataclass(frozen=True)
class Columns:
    """The roles of a table's columns.

    Attributes:
        identity: the column of row ids.
        target: the column that is predicted, or None.
        group: rows with the same value here depend on each other; None for independent rows.

    >>> Columns("id", "label").target
    'label'
    """

    identity: str
    target: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Rounds:
    """The rule of the reusable holdout, Algorithm 1.

    Attributes:
        settings: the constants of Algorithm 1.
        queries: how many questions may be asked, or None.
        train_rows: the number of training rows.
        dataset: the ledger's name of the dataset that is debited, or None.
        ledger: the unique identity of that ledger; None without one.
    """

    kind: ClassVar[str] = "rounds"

    settings: AlgorithmSettings
    queries: int | None
    train_rows: int
    dataset: str | None = None
    ledger: str | None = None

    @property
    def rows(self) -> int:
        """The number of rows of the holdout."""
        return self.settings.rows

    def body(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        fractions = {name: str(getattr(self.settings, name)) for name in ("threshold", "noise")}
        integers = {name: getattr(self.settings, name) for name in ("budget", "bits", "values")}
        return {**vars(self), "settings": {**integers, **fractions}, "rows": self.rows}

    @classmethod
    def read(cls, kind: str, document: Mapping[str, Any]) -> Rounds:
        """Parse what `body` wrote."""
        constants = document["settings"]
        if not isinstance(constants, dict):
            raise InvalidInputError("settings must be an object.")
        bits = integer(constants["bits"], "bits", 0, _MOST_BITS)
        settings = AlgorithmSettings.choose(
            parse_count(document["rows"], "rows"),
            parse_stored_fraction(constants["threshold"], "threshold"),
            parse_stored_fraction(constants["noise"], "noise"),
            constants["budget"],
            constants["values"],
        )
        queries = document["queries"]
        return cls(
            replace(settings, bits=bits),
            None if queries is None else parse_count(queries, "queries"),
            parse_count(document["train_rows"], "train_rows"),
            _text_or_none(document, "dataset"),
            _text_or_none(document, "ledger"),
        )

    def left(self, entries: Iterable[BoardEntry]) -> int:
        """Return how many more answers may come from the holdout."""
        spent = sum(entry.outcome in (HOLDOUT, INTERRUPTED) for entry in entries)
        return self.settings.budget - spent


@dataclass(frozen=True)
class AnnouncementRule:
    """The rule of a Ladder and of a board of one bit: beating the best by a step is announced.

    Attributes:
        kind: "ladder", which announces the score, or "one bit", which does not.
        rows: the number of rows of the holdout, or of pairs.
        submissions: the number accepted in all, from all teams together.
        confidence: 1 − β.
        steps: g, the number of steps of the score.
        announcements: the largest number of scores announced; None for no limit.
    """

    kind: str
    rows: int
    submissions: int
    confidence: float
    steps: int
    announcements: int | None = None

    def body(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        return {name: value for name, value in vars(self).items() if name != "kind"}

    @classmethod
    def read(cls, kind: str, document: Mapping[str, Any]) -> AnnouncementRule:
        """Parse what `body` wrote."""
        limit = document["announcements"]
        return cls(
            kind,
            parse_count(document["rows"], "rows"),
            parse_count(document["submissions"], "submissions"),
            parse_share(document["confidence"], "confidence"),
            parse_steps(document["steps"]),
            None if limit is None else parse_count(limit, "announcements"),
        )

    def left(self, entries: Iterable[BoardEntry]) -> int:
        """Return how many more submissions are accepted."""
        return self.submissions - sum(1 for _ in entries)


RULES: dict[str, type[Rounds] | type[AnnouncementRule]] = {
    "rounds": Rounds,
    "ladder": AnnouncementRule,
    "one bit": AnnouncementRule,
}


@dataclass(frozen=True)
class FinalPart:
    """The rows kept apart for the final ranking.

    Attributes:
        share: the share of rows, as requested.
        rows: the number of rows, or of pairs.
        commitment: a keyed digest of the rows.
        beliefs: the beliefs about them as a document, or None for independent rows.
        gap: rows on each side that are never scored, where rows are a series.
        mixing: a bound on the total variation distance to independence of the two parts.
    """

    share: float
    rows: int
    commitment: str
    beliefs: str | None = None
    gap: int = 0
    mixing: float = 0.0


@dataclass(frozen=True)
class BoardSetup:
    """The settings of a board besides its rule and its rows.

    Attributes:
        name: of the board.
        columns: the roles of the table's columns.
        scorings: the metrics by which predictions are scored.
        final: the rows kept apart for the final ranking.
    """

    name: str = ""
    columns: Columns | None = None
    scorings: tuple[Scoring, ...] = ()
    final: FinalPart | None = None


@dataclass(frozen=True)
class SubmissionNote:
    """What the log stores beside a submission, so that a repetition is recognised.

    Attributes:
        key: a keyed digest of its idempotency key; empty without one.
        digest: a keyed digest of the predictions.
        metric: the metric, where a board has several.
        at: when it was submitted, in UTC.
    """

    key: str = ""
    digest: str = ""
    metric: str = ""
    at: str = ""


@dataclass(frozen=True)
class BoardEntry:
    """A question or a submission, and its outcome.

    Attributes:
        number: from 1.
        label: the team, or the question's label.
        value: the published value; None if nothing was published.
        outcome: of a question "training", "holdout" or "interrupted"; of a submission "announced",
            "better", "unmoved", "kept", or "waiting" if it was interrupted before it was scored.
        remaining: how many rounds or submissions are left after it.
        note: what the board stored beside it.
        code: the authentication code on the last line of a batch, which only the secret's holder
            can compute.
    """

    number: int
    label: str
    value: Fraction | None
    outcome: str
    remaining: int
    note: SubmissionNote = SubmissionNote()
    code: str = ""

    @property
    def overfit(self) -> bool:
        """Whether the holdout answered, which ended a round."""
        return self.outcome == HOLDOUT

    @property
    def announced(self) -> bool:
        """Whether it changed the standings."""
        return self.outcome in (ANNOUNCED, BETTER)

    def counted(self) -> dict[str, Any]:
        """Return the line that counts a submission, before it is scored."""
        note = {name: text for name, text in vars(self.note).items() if text}
        return {"number": self.number, "label": self.label, **({"note": note} if note else {})}

    def result(self) -> dict[str, Any]:
        """Return the line that holds its outcome."""
        value = None if self.value is None else str(self.value)
        return {"number": self.number, "outcome": self.outcome, "value": value}

    def body(self) -> dict[str, Any]:
        """Return both as one line."""
        code = {"code": self.code} if self.code else {}
        return {**self.counted(), **self.result(), **code}

    def answer(self, settings: AlgorithmSettings, sensitivity: Fraction | None = None) -> Answer:
        """Return the answer as the analyst sees it.

        `sensitivity` is given for a number with a declared sensitivity, None for a mean.
        """
        value = self.value or Fraction()
        noise, step = 0.0, 0.0
        if self.overfit:
            unit = 1.0 if sensitivity is None else float_nearest(sensitivity * settings.rows)
            noise, step = settings.answer_sd * unit, 1 / settings.values if settings.values else 0.0
        return Answer(float_nearest(value), self.overfit, self.remaining, value, noise, step)


@dataclass(frozen=True)
class Transcript:
    """Everything a board has published, in order.

    Attributes:
        rule: the rule, with its settings.
        identity: a random name of the board.
        commitment: a keyed digest of the rows, which reveals nothing without the key.
        beliefs: the beliefs as a document, or None for independent rows.
        about: columns, metrics and rows kept apart, where questions are predictions.
        entries: the questions or submissions, in order.
        best: the final score of a board of one bit.
        named: the submission that each team has named for the final ranking, its latest choice.
        chosen: the submissions scored in the final ranking; None before it.
        ranking: the final ranking as JSON values; None before it.
    """

    rule: Rounds | AnnouncementRule
    identity: str
    commitment: str
    beliefs: str | None
    about: BoardSetup = BoardSetup()
    entries: tuple[BoardEntry, ...] = ()
    best: float | None = None
    named: Mapping[str, int] = field(default_factory=dict)
    chosen: Mapping[str, int] | None = None
    ranking: Mapping[str, Any] | None = None

    @property
    def rows(self) -> int:
        """The number of rows of the holdout."""
        return self.rule.rows

    @property
    def rounds(self) -> Rounds:
        """The rule, if it is the reusable holdout's."""
        if not isinstance(self.rule, Rounds):
            raise InvalidInputError(
                f"This is not a reusable holdout: its rule is {self.rule.kind!r}."
            )
        return self.rule

    @property
    def announcing(self) -> AnnouncementRule:
        """The rule, if it is a Ladder's or that of a board of one bit."""
        if not isinstance(self.rule, AnnouncementRule):
            raise InvalidInputError(
                "This is a reusable holdout, not a Ladder or a board of one bit."
            )
        return self.rule

    @property
    def remaining(self) -> int:
        """The number of rounds or submissions left; 0 after the end."""
        return 0 if self.ended else self.rule.left(self.entries)

    @property
    def ended(self) -> bool:
        """Whether nothing more is accepted."""
        return self.best is not None or self.chosen is not None

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The submissions that changed the standings, in order."""
        return tuple(
            Standing(entry.number, entry.label, None if entry.value is None else float(entry.value))
            for entry in self.entries
            if entry.announced
        )

    @property
    def columns(self) -> Columns:
        """The roles of the table's columns.

        Raises:
            InvalidInputError: for a board created in Python, whose questions are functions.
        """
        if self.about.columns is None:
            raise InvalidInputError(
                "This board was created in Python, without a table: its questions are functions."
            )
        return self.about.columns

    @property
    def metric(self) -> Metric:
        """The metric of a Ladder and of any final ranking; the mean if none was fixed."""
        return self.about.scorings[0].read() if self.about.scorings else MEAN

    def promise(
        self, questions: int | None = None, confidence: float = 0.95, means_only: bool = True
    ) -> Guarantee:
        """Return the accuracy guarantee of rounds for `questions` in all, by default as planned.

        Theorem: docs/theory/reusable-holdout.md, docs/theory/counting.md
        """
        from quiltwork.beliefs import beliefs_from_json
        from quiltwork.holdout.guarantee import guarantee

        settings = self.rounds.settings
        return guarantee(
            None if self.beliefs is None else beliefs_from_json(self.beliefs),
            settings.rows,
            float(settings.threshold),
            float(settings.noise),
            settings.budget,
            questions or self.rounds.queries or max(settings.budget, len(self.entries), 1),
            confidence,
            means_only,
            settings.values,
        )

    def header(self) -> str:
        """Return the first line."""
        about, final = self.about, None
        if about.final is not None:
            final = {**vars(about.final), "beliefs": _parsed(about.final.beliefs)}
        body = {
            "rule": self.rule.kind,
            "name": about.name,
            "identity": self.identity,
            "commitment": self.commitment,
            "beliefs": _parsed(self.beliefs),
            "columns": None if about.columns is None else asdict(about.columns),
            "scorings": [scoring.body() for scoring in about.scorings],
            "final": final,
            **self.rule.body(),
        }
        return files.dump(SCHEMA, _VERSION, body)

    def lines(self) -> list[str]:
        """Return every line of a reusable holdout, each with the hash of the line before."""
        lines = [self.header()]
        for entry in self.entries:
            lines.append(chain_line(entry.body(), lines[-1]))
        return lines

    @property
    def checkpoint(self) -> str:
        """The hash of the last line; noted elsewhere, it reveals later edits and cuts."""
        return line_hash(self.lines()[-1])


def read_transcript(text: str, checkpoint: str | None = None) -> Transcript:
    """Parse a transcript and verify it: schema, hash chain, numbering, and the rule.

    Args:
        text: the lines of a board's file.
        checkpoint: a hash noted earlier; one of the lines must have it.

    Raises:
        StorageError: for a transcript that was edited or cut.
    """
    lines = split_lines(text)
    header = _read_header(lines[0] if lines else "")
    replay = _Replay(header)
    for number, body in enumerate(verify_chain(lines), start=2):
        with reading(number):
            replay.add(number, body)
    if checkpoint is not None and checkpoint not in map(line_hash, lines):
        raise StorageError(
            "No line of the transcript has the hash of the checkpoint: the transcript was edited "
            "or cut after it was noted."
        )
    return replay.transcript()


def load_transcript(path: str | Path, checkpoint: str | None = None) -> Transcript:
    """Read and verify a transcript file."""
    try:
        text = files.read_bytes(path).decode()
    except UnicodeDecodeError:
        raise StorageError(f"{str(path)!r} is not a transcript: it is not text.") from None
    return read_transcript(text, checkpoint)


class _Replay:
    """A reader that replays the rule line by line and rejects what it could not have produced."""

    def __init__(self, header: Transcript) -> None:
        self._header, self._entries = header, list(header.entries)
        self._announced = 0
        self._end: dict[str, Any] = {}
        self._named: dict[str, int] = {}

    def transcript(self) -> Transcript:
        """Return the transcript read so far."""
        return replace(
            self._header, entries=tuple(self._entries), named=dict(self._named), **self._end
        )

    def add(self, at: int, body: Mapping[str, Any]) -> None:
        """Read one line."""
        rule = self._header.rule
        if "ranking" in body or "chosen" in body or "best" in body or "named" in body:
            self._read_end(body)
        elif self._end:
            raise InvalidInputError("the board had ended before it.")
        elif isinstance(rule, Rounds):
            self._read_answer(at, rule, body)
        elif "label" in body:
            self._read_counted(rule, body)
        else:
            self._read_result(rule, body)

    def _read_answer(self, at: int, rule: Rounds, body: Mapping[str, Any]) -> None:
        outcome = choice(body["outcome"], (TRAINING, HOLDOUT, INTERRUPTED), "outcome")
        value = body["value"]
        before = self._entries[-1].remaining if self._entries else rule.settings.budget
        entry = BoardEntry(
            integer(body["number"], "number", 1),
            text_of(body, "label"),
            None if value is None else parse_stored_fraction(value, "value"),
            outcome,
            before - (outcome != TRAINING),
            _read_note(body),
            text_of({"code": "", **body}, "code"),
        )
        if (
            entry.number != len(self._entries) + 1
            or before < 1
            or (entry.value is None) != (outcome == INTERRUPTED)
        ):
            raise StorageError(f"Line {at} of the transcript does not follow from the line before.")
        self._entries.append(entry)

    def _read_counted(self, rule: AnnouncementRule, body: Mapping[str, Any]) -> None:
        number = integer(body["number"], "number", 1)
        if number != len(self._entries) + 1 or number > rule.submissions:
            raise InvalidInputError(f"submission {number} is out of order.")
        left, label = rule.submissions - number, text_of(body, "label")
        self._entries.append(BoardEntry(number, label, None, WAITING, left, _read_note(body)))

    def _read_result(self, rule: AnnouncementRule, body: Mapping[str, Any]) -> None:
        number = integer(body["number"], "number", 1)
        if number > len(self._entries) or self._entries[number - 1].outcome != WAITING:
            raise InvalidInputError(f"submission {number} was not waiting for a score.")
        # After the last announcement no other outcome than `kept` is possible.
        limit_reached = rule.announcements is not None and self._announced >= rule.announcements
        improved = ANNOUNCED if rule.kind == "ladder" else BETTER
        outcome = choice(
            body["outcome"], (KEPT,) if limit_reached else (improved, UNMOVED), "outcome"
        )
        value = None
        if outcome == ANNOUNCED:
            value = _read_grid(body["value"], "value", rule.steps)
            scores = [entry.value for entry in self._entries if entry.value is not None]
            if scores and value <= max(scores):
                raise InvalidInputError("the score is not better than the one before.")
        elif body["value"] is not None:
            raise InvalidInputError("it holds a value where none was published.")
        self._announced += outcome == improved
        self._entries[number - 1] = replace(self._entries[number - 1], value=value, outcome=outcome)

    def _read_end(self, body: Mapping[str, Any]) -> None:
        rule = self._header.rule
        if "best" in body and isinstance(rule, AnnouncementRule) and not self._end:
            self._end["best"] = float(
                _read_grid(body["best"], "best", FINAL_GRID_FACTOR * rule.steps)
            )
        elif "named" in body and not self._end:
            self._named.update(self._read_choice(body["named"]))
        elif "chosen" in body and "chosen" not in self._end:
            self._end["chosen"] = self._read_choice(body["chosen"])
        elif "ranking" in body and "chosen" in self._end and "ranking" not in self._end:
            if not isinstance(body["ranking"], dict):
                raise InvalidInputError("ranking must be an object.")
            self._end["ranking"] = body["ranking"]
        else:
            raise InvalidInputError("it ends a board that had ended, or ranks one that had not.")

    def _read_choice(self, body: Any) -> dict[str, int]:
        if not isinstance(body, dict):
            raise InvalidInputError("teams and their submissions must be an object.")
        for team, number in body.items():
            at = integer(number, "number", 1, max(len(self._entries), 1))
            if not self._entries or self._entries[at - 1].label != team:
                raise InvalidInputError(f"submission {at} is another team's.")
        return body


def _read_header(line: str) -> Transcript:
    document = files.load(line, SCHEMA, (_VERSION,))
    with reading(1):
        kind = choice(document["rule"], tuple(RULES), "rule")
        scorings = document["scorings"]
        if not isinstance(scorings, list):
            raise InvalidInputError("scorings must be a list.")
        return Transcript(
            RULES[kind].read(kind, document),
            text_of(document, "identity"),
            text_of(document, "commitment"),
            beliefs_of(document),
            BoardSetup(
                text_of(document, "name"),
                columns_from_body(document["columns"]),
                tuple(map(scoring_from_body, scorings)),
                _read_final(document["final"]),
            ),
        )


def _read_final(body: Any) -> FinalPart | None:
    if body is None:
        return None
    if not isinstance(body, dict):
        raise InvalidInputError("final must be an object.")
    share, mixing = body["share"], body["mixing"]
    if not isinstance(share, float) or not isinstance(mixing, float) or not 0 < share < 1:
        raise InvalidInputError("share and mixing must be numbers between 0 and 1.")
    return FinalPart(
        share,
        parse_count(body["rows"], "rows"),
        text_of(body, "commitment"),
        beliefs_of(body),
        integer(body["gap"], "gap", 0),
        mixing,
    )


def _parsed(beliefs: str | None) -> Any:
    return None if beliefs is None else json.loads(beliefs)


def beliefs_of(document: Mapping[str, Any]) -> str | None:
    """Return the beliefs in a first line as a document of their own; None for independent rows."""
    beliefs = document["beliefs"]
    return None if beliefs is None else json.dumps(beliefs, sort_keys=True, ensure_ascii=False)


def parse_steps(steps: object) -> int:
    """Validate a number of score steps; up to 2^20 floats can tell them apart."""
    return integer(steps, "steps", 1, _MOST_STEPS)


def _text_or_none(body: Mapping[str, Any], name: str) -> str | None:
    return None if body[name] is None else text_of(body, name)


def columns_from_body(body: Any) -> Columns | None:
    """Parse the roles of columns."""
    if body is None:
        return None
    if not isinstance(body, dict):
        raise InvalidInputError("columns must be an object.")
    optional = (_text_or_none(body, name) for name in ("target", "group"))
    return Columns(text_of(body, "identity"), *optional)


def _read_note(body: Mapping[str, Any]) -> SubmissionNote:
    note = body.get("note", {})
    if not isinstance(note, dict) or not set(note) <= set(vars(SubmissionNote())):
        raise InvalidInputError("a note must be an object of texts.")
    return SubmissionNote(**{name: text_of(note, name) for name in note})


def _read_grid(text: object, name: str, steps: int) -> Fraction:
    score = parse_stored_fraction(text, name)
    if not 0 <= score <= 1 or (score * steps).denominator != 1:
        raise InvalidInputError(f"the {name} is not a multiple of 1/{steps}.")
    return score
