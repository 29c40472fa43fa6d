"""The transcript of a board: what it was begun with, and every event since, without a row.

One line of JSON per event, each with the hash of the one before; the first line has the rule, the
beliefs, how predictions are scored and keyed digests of the rows. `Rounds` is the rule of the
reusable holdout: one line for each answer. Under `Announcing`, the rule of a Ladder and of a board
of one bit, a submission is counted by a line before it is scored, and what came of it is in a
second line before anybody sees it: one that was interrupted in between stays counted. Reading
replays every rule. O(events).
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
from quiltwork.holdout.algorithm import AlgorithmSettings, read_count
from quiltwork.holdout.guarantee import read_share
from quiltwork.holdout.metrics import MEAN, Metric, Scoring, read_scoring
from quiltwork.holdout.sealed_log import (
    chained,
    line_hash,
    read_chained,
    reading,
    split_lines,
    text_of,
)
from quiltwork.results import ResultBase

if TYPE_CHECKING:
    from quiltwork.holdout.guarantee import Guarantee

SCHEMA, _VERSION = "board", 1
_MOST_BITS = 64
_MOST_STEPS = 1 << 20
FINER = 8
"""Parts of a step to which the last score of a board of one bit is rounded."""

TRAINING, HOLDOUT, INTERRUPTED = "training", "holdout", "interrupted"
ANNOUNCED, BETTER, UNMOVED, KEPT, WAITING = "announced", "better", "unmoved", "kept", "waiting"
"""What came of an event; `kept` was compared with nothing, `waiting` is not scored yet."""


@dataclass(frozen=True)
class Answer(ResultBase):
    """What the holdout says about one question.

    Attributes:
        value: the answer.
        overfit: whether training set and holdout differ, so that `value` comes from the holdout
            with noise or rounded; otherwise it is the training set's own.
        remaining: how many more such answers there are.
        exact: the value as a fraction.
        noise_sd: the standard deviation of the noise in `value`; 0 where there is none.
        step: to multiples of which `value` is rounded; 0 where it is not.
    """

    value: float
    overfit: bool
    remaining: int
    exact: Fraction
    noise_sd: float = 0.0
    step: float = 0.0

    @property
    def source(self) -> str:
        """Where the value comes from and how exact it is, in words."""
        if not self.overfit:
            return "as on the training set"
        noise = f", noise of standard deviation {self.noise_sd:.3g}" if self.noise_sd else ""
        return f"from the holdout{noise}" + (f", rounded to {self.step:.3g}" if self.step else "")

    def explain(self) -> str:
        """Say where the answer comes from and what is left."""
        left = f"{self.remaining:,} more answers may come from the holdout"
        return f"{self.value:.6g}, {self.source}; {left}."


@dataclass(frozen=True)
class Standing:
    """A submission that moved the board.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        score: the board's best from then on, a multiple of the step; None where only one bit is
            announced.
    """

    number: int
    team: str
    score: float | None


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what.

    Attributes:
        identity: names a row.
        target: is predicted, or None.
        group: rows that are alike in it depend on each other, or None.
    """

    identity: str
    target: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Rounds:
    """The rule of the reusable holdout, Algorithm 1.

    Attributes:
        settings: of Algorithm 1.
        queries: how many questions may be asked, or None.
        train_rows: of the training set.
        dataset: the name under which a ledger is debited, or None.
        ledger: the identity of that ledger, which no other has; None without a ledger.
    """

    kind: ClassVar[str] = "rounds"

    settings: AlgorithmSettings
    queries: int | None
    train_rows: int
    dataset: str | None = None
    ledger: str | None = None

    @property
    def rows(self) -> int:
        """Rows of the holdout."""
        return self.settings.rows

    def body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        exact = {name: str(getattr(self.settings, name)) for name in ("threshold", "noise")}
        whole = {name: getattr(self.settings, name) for name in ("budget", "bits", "values")}
        return {**vars(self), "settings": {**whole, **exact}, "rows": self.rows}

    @classmethod
    def read(cls, kind: str, document: Mapping[str, Any]) -> Rounds:
        """Read what `body` wrote."""
        written = document["settings"]
        if not isinstance(written, dict):
            raise InvalidInputError("settings must be an object.")
        bits = integer(written["bits"], "bits", 0, _MOST_BITS)
        settings = AlgorithmSettings.choose(
            read_count(document["rows"], "rows"),
            parse_stored_fraction(written["threshold"], "threshold"),
            parse_stored_fraction(written["noise"], "noise"),
            written["budget"],
            written["values"],
        )
        queries = document["queries"]
        return cls(
            replace(settings, bits=bits),
            None if queries is None else read_count(queries, "queries"),
            read_count(document["train_rows"], "train_rows"),
            _text_or_none(document, "dataset"),
            _text_or_none(document, "ledger"),
        )

    def left(self, entries: Iterable[BoardEntry]) -> int:
        """How many more answers may come from the holdout."""
        spent = sum(one.outcome in (HOLDOUT, INTERRUPTED) for one in entries)
        return self.settings.budget - spent


@dataclass(frozen=True)
class Announcing:
    """The rule of a Ladder and of a board of one bit: what beats the best by a step is announced.

    Attributes:
        kind: "ladder", where the score is told, or "one bit", where it is not.
        rows: of the holdout, or pairs of them.
        submissions: accepted in all, of all teams together.
        confidence: 1 − β.
        steps: g.
        announcements: how many scores are announced at most; None for no limit.
    """

    kind: str
    rows: int
    submissions: int
    confidence: float
    steps: int
    announcements: int | None = None

    def body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {name: value for name, value in vars(self).items() if name != "kind"}

    @classmethod
    def read(cls, kind: str, document: Mapping[str, Any]) -> Announcing:
        """Read what `body` wrote."""
        limit = document["announcements"]
        return cls(
            kind,
            read_count(document["rows"], "rows"),
            read_count(document["submissions"], "submissions"),
            read_share(document["confidence"], "confidence"),
            read_steps(document["steps"]),
            None if limit is None else read_count(limit, "announcements"),
        )

    def left(self, entries: Iterable[BoardEntry]) -> int:
        """How many more submissions are accepted."""
        return self.submissions - sum(1 for _ in entries)


RULES: dict[str, type[Rounds] | type[Announcing]] = {
    "rounds": Rounds,
    "ladder": Announcing,
    "one bit": Announcing,
}


@dataclass(frozen=True)
class FinalPart:
    """Rows that are kept apart until a competition ends.

    Attributes:
        share: of the rows, as it was asked for.
        rows: how many there are, or pairs of them.
        commitment: a keyed digest of them.
        beliefs: their document, or None for independent rows.
        gap: rows on each side that nobody is scored on, where rows are a series.
        mixing: how likely it is at most that the two parts tell about each other, across the gap.
    """

    share: float
    rows: int
    commitment: str
    beliefs: str | None = None
    gap: int = 0
    mixing: float = 0.0


@dataclass(frozen=True)
class About:
    """What a board writes into its first line besides its rule and its rows.

    Attributes:
        name: of the board.
        columns: which column of a table is what.
        scorings: by which metrics predictions are scored.
        final: the rows that are kept apart.
    """

    name: str = ""
    columns: Columns | None = None
    scorings: tuple[Scoring, ...] = ()
    final: FinalPart | None = None


@dataclass(frozen=True)
class SubmissionNote:
    """What a board writes beside a submission.

    Attributes:
        key: a keyed digest of its idempotency key, empty where there is none.
        digest: a keyed digest of what was predicted.
        metric: by which metric, where a board has several.
        at: when it came, in UTC.
    """

    key: str = ""
    digest: str = ""
    metric: str = ""
    at: str = ""


@dataclass(frozen=True)
class BoardEntry:
    """A question or a submission, and what came of it.

    Attributes:
        number: from 1.
        label: whose it is, or what was asked.
        value: what was said; None where nothing was.
        outcome: of a question "training", "holdout" or "interrupted"; of a submission "announced",
            "better", "unmoved", "kept", or "waiting" where it was interrupted.
        remaining: how many rounds or submissions are left after it.
        note: what a board wrote beside it.
        code: of the last line that was written at once; the holder of the secret knows it again.
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
        """Whether it moved the board."""
        return self.outcome in (ANNOUNCED, BETTER)

    def counted(self) -> dict[str, Any]:
        """Write the line by which a submission is counted, before it is scored."""
        note = {name: text for name, text in vars(self.note).items() if text}
        return {"number": self.number, "label": self.label, **({"note": note} if note else {})}

    def result(self) -> dict[str, Any]:
        """Write what came of it."""
        value = None if self.value is None else str(self.value)
        return {"number": self.number, "outcome": self.outcome, "value": value}

    def body(self) -> dict[str, Any]:
        """Write both in one line."""
        code = {"code": self.code} if self.code else {}
        return {**self.counted(), **self.result(), **code}

    def answer(self, settings: AlgorithmSettings, sensitivity: Fraction | None = None) -> Answer:
        """Return what it shows to whoever asked; `sensitivity` is of a number, not a mean."""
        value = self.value or Fraction()
        noise, step = 0.0, 0.0
        if self.overfit:
            unit = 1.0 if sensitivity is None else float_nearest(sensitivity * settings.rows)
            noise, step = settings.answer_sd * unit, 1 / settings.values if settings.values else 0.0
        return Answer(float_nearest(value), self.overfit, self.remaining, value, noise, step)


@dataclass(frozen=True)
class Transcript:
    """Everything a board has said.

    Attributes:
        rule: by which it answers, with its settings.
        identity: a random name of the board.
        commitment: a keyed digest of the rows, which reveals nothing without the key.
        beliefs: the beliefs' document, or None for independent rows.
        about: the columns, metrics and rows kept apart of a board where questions are data.
        entries: in order.
        best: the score with which a board of one bit ended.
        named: which submission each team has named for the end, the latest word of each.
        chosen: those that are scored at the end; None before it.
        ranking: how it ended, as JSON values; None before it.
    """

    rule: Rounds | Announcing
    identity: str
    commitment: str
    beliefs: str | None
    about: About = About()
    entries: tuple[BoardEntry, ...] = ()
    best: float | None = None
    named: Mapping[str, int] = field(default_factory=dict)
    chosen: Mapping[str, int] | None = None
    ranking: Mapping[str, Any] | None = None

    @property
    def rows(self) -> int:
        """Rows of the holdout."""
        return self.rule.rows

    @property
    def rounds(self) -> Rounds:
        """The rule of a reusable holdout."""
        if not isinstance(self.rule, Rounds):
            raise InvalidInputError(f"This is a board of another kind: {self.rule.kind}.")
        return self.rule

    @property
    def announcing(self) -> Announcing:
        """The rule of a Ladder, or of a board of one bit."""
        if not isinstance(self.rule, Announcing):
            raise InvalidInputError("This is a board of another kind: rounds.")
        return self.rule

    @property
    def remaining(self) -> int:
        """Rounds or submissions left; none after the end."""
        return 0 if self.ended else self.rule.left(self.entries)

    @property
    def ended(self) -> bool:
        """Whether nothing more is accepted."""
        return self.best is not None or self.chosen is not None

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The submissions that moved the board, in order."""
        return tuple(
            Standing(one.number, one.label, None if one.value is None else float(one.value))
            for one in self.entries
            if one.announced
        )

    @property
    def columns(self) -> Columns:
        """Which column is what.

        Raises:
            InvalidInputError: for a board whose questions are functions.
        """
        if self.about.columns is None:
            raise InvalidInputError("This board was begun in Python: its questions are functions.")
        return self.about.columns

    @property
    def metric(self) -> Metric:
        """The metric of a Ladder, and of the end of every board; the mean of values if none."""
        return self.about.scorings[0].read() if self.about.scorings else MEAN

    def promise(
        self, questions: int | None = None, confidence: float = 0.95, means_only: bool = True
    ) -> Guarantee:
        """Return what rounds promise for so many questions in all; as many as planned if None.

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
        """Write the first line."""
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
            "scorings": [one.body() for one in about.scorings],
            "final": final,
            **self.rule.body(),
        }
        return files.dump(SCHEMA, _VERSION, body)

    def lines(self) -> list[str]:
        """Write every line of a reusable holdout, each with the hash of the one before."""
        written = [self.header()]
        for entry in self.entries:
            written.append(chained(entry.body(), written[-1]))
        return written

    def to_jsonl(self) -> str:
        """Write the transcript of a reusable holdout as text that `read_transcript` verifies."""
        return "".join(line + "\n" for line in self.lines())

    @property
    def checkpoint(self) -> str:
        """The hash of the last line; kept elsewhere, it reveals later edits and cuts."""
        return line_hash(self.lines()[-1])


def read_transcript(text: str, checkpoint: str | None = None) -> Transcript:
    """Read a transcript back and verify it: schema, hash chain, numbering, the rule.

    Args:
        text: the lines of a board's file.
        checkpoint: a hash noted earlier; one of the lines must have it.
    """
    lines = split_lines(text)
    begun = _read_header(lines[0] if lines else "")
    replay = _Replay(begun)
    for at, body in enumerate(read_chained(lines), start=2):
        with reading(at):
            replay.add(at, body)
    if checkpoint is not None and checkpoint not in map(line_hash, lines):
        raise StorageError(
            "No line of the transcript has the hash noted earlier: it was edited or cut since."
        )
    return replay.transcript()


def load_transcript(path: str | Path, checkpoint: str | None = None) -> Transcript:
    """Read and verify a transcript file."""
    try:
        text = files.read_bytes(path).decode()
    except UnicodeDecodeError:
        raise StorageError(f"{str(path)!r} is no transcript: it is no text.") from None
    return read_transcript(text, checkpoint)


class _Replay:
    """Reads line after line, and refuses what the rule could not have written."""

    def __init__(self, begun: Transcript) -> None:
        self._begun, self._entries = begun, list(begun.entries)
        self._announced = 0
        self._end: dict[str, Any] = {}
        self._named: dict[str, int] = {}

    def transcript(self) -> Transcript:
        """Return what was read."""
        return replace(
            self._begun, entries=tuple(self._entries), named=dict(self._named), **self._end
        )

    def add(self, at: int, body: Mapping[str, Any]) -> None:
        """Read one line."""
        rule = self._begun.rule
        if "ranking" in body or "chosen" in body or "best" in body or "named" in body:
            self._read_end(body)
        elif self._end:
            raise InvalidInputError("the board had ended.")
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
            raise StorageError(f"Line {at} of the transcript does not follow from the one before.")
        self._entries.append(entry)

    def _read_counted(self, rule: Announcing, body: Mapping[str, Any]) -> None:
        number = integer(body["number"], "number", 1)
        if number != len(self._entries) + 1 or number > rule.submissions:
            raise InvalidInputError(f"submission {number} is out of order.")
        left, label = rule.submissions - number, text_of(body, "label")
        self._entries.append(BoardEntry(number, label, None, WAITING, left, _read_note(body)))

    def _read_result(self, rule: Announcing, body: Mapping[str, Any]) -> None:
        number = integer(body["number"], "number", 1)
        if number > len(self._entries) or self._entries[number - 1].outcome != WAITING:
            raise InvalidInputError(f"submission {number} was not waiting for a score.")
        over = rule.announcements is not None and self._announced >= rule.announcements
        moved = ANNOUNCED if rule.kind == "ladder" else BETTER
        outcome = choice(body["outcome"], (KEPT,) if over else (moved, UNMOVED), "outcome")
        value = None
        if outcome == ANNOUNCED:
            value = _read_grid(body["value"], "value", rule.steps)
            before = [one.value for one in self._entries if one.value is not None]
            if before and value <= max(before):
                raise InvalidInputError("the score is no better than the one before.")
        elif body["value"] is not None:
            raise InvalidInputError("a value stands where none was told.")
        self._announced += outcome == moved
        self._entries[number - 1] = replace(self._entries[number - 1], value=value, outcome=outcome)

    def _read_end(self, body: Mapping[str, Any]) -> None:
        rule = self._begun.rule
        if "best" in body and isinstance(rule, Announcing) and not self._end:
            self._end["best"] = float(_read_grid(body["best"], "best", FINER * rule.steps))
        elif "named" in body and not self._end:
            self._named.update(self._read_choice(body["named"]))
        elif "chosen" in body and "chosen" not in self._end:
            self._end["chosen"] = self._read_choice(body["chosen"])
        elif "ranking" in body and "chosen" in self._end and "ranking" not in self._end:
            if not isinstance(body["ranking"], dict):
                raise InvalidInputError("ranking must be an object.")
            self._end["ranking"] = body["ranking"]
        else:
            raise InvalidInputError("the board had ended, or had not yet.")

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
            About(
                text_of(document, "name"),
                read_columns(document["columns"]),
                tuple(map(read_scoring, scorings)),
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
        read_count(body["rows"], "rows"),
        text_of(body, "commitment"),
        beliefs_of(body),
        integer(body["gap"], "gap", 0),
        mixing,
    )


def _parsed(beliefs: str | None) -> Any:
    return None if beliefs is None else json.loads(beliefs)


def beliefs_of(document: Mapping[str, Any]) -> str | None:
    """Return the beliefs of a first line as a document of their own, None for independent rows."""
    found = document["beliefs"]
    return None if found is None else json.dumps(found, sort_keys=True, ensure_ascii=False)


def read_steps(steps: object) -> int:
    """Read the number of steps of the score; floats tell these apart."""
    return integer(steps, "steps", 1, _MOST_STEPS)


def _text_or_none(body: Mapping[str, Any], name: str) -> str | None:
    return None if body[name] is None else text_of(body, name)


def read_columns(body: Any) -> Columns | None:
    """Read which column is what."""
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
        raise InvalidInputError(f"the {name} is off the grid.")
    return score
