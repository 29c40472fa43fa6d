"""The transcript of a holdout: every question and answer, chained by hashes, without the holdout.

One line of JSON per entry. The first line has the settings, the beliefs, the identity of the ledger
that pays and which column is what; each later line holds the hash of the one before. Verifying
replays the budget. O(entries).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import integer, nearest_float, written_fraction
from quiltwork.holdout.algorithm import AlgorithmSettings, read_count
from quiltwork.holdout.storage import (
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

SCHEMA, _VERSION = "holdout-transcript", 5
_MOST_BITS = 64


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
class TranscriptLine:
    """One answered question, or a round given up after an interruption, whose `value` is None.

    `remaining` are the rounds left after it; by `code` the holder of the secret knows the last line
    that was written at once.
    """

    number: int
    question: str
    value: Fraction | None
    overfit: bool
    remaining: int
    code: str = ""

    def body(self) -> dict[str, Any]:
        """Write the entry as JSON-ready data."""
        told = {**vars(self), "value": None if self.value is None else str(self.value)}
        return {k: v for k, v in told.items() if k != "code" or v}

    def answer(self, settings: AlgorithmSettings, sensitivity: Fraction | None = None) -> Answer:
        """Return what it shows to whoever asked; `sensitivity` is of a number, not a mean."""
        value = self.value or Fraction()
        noise, step = 0.0, 0.0
        if self.overfit:
            unit = 1.0 if sensitivity is None else nearest_float(sensitivity * settings.rows)
            noise, step = settings.answer_sd * unit, 1 / settings.values if settings.values else 0.0
        return Answer(nearest_float(value), self.overfit, self.remaining, value, noise, step)


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
class Transcript:
    """Everything a holdout has said.

    Attributes:
        settings: of Algorithm 1.
        identity: a random name of the holdout.
        commitment: a keyed digest of both datasets, which betrays nothing without the key.
        beliefs: the beliefs' document, or None for independent rows.
        queries: how many questions may be asked, or None.
        train_rows: of the training set.
        dataset: the name under which a ledger is debited, or None.
        ledger: the identity of that ledger, which no other has; None without a ledger.
        columns: which column of a table is what, where questions are data; None where they are
            functions.
        entries: in order.
    """

    settings: AlgorithmSettings
    identity: str
    commitment: str
    beliefs: str | None
    queries: int | None
    train_rows: int
    dataset: str | None = None
    ledger: str | None = None
    columns: Columns | None = None
    entries: tuple[TranscriptLine, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the holdout."""
        return self.settings.rows

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the questions that were asked, in order."""
        return tuple(entry.question for entry in self.entries)

    @property
    def remaining(self) -> int:
        """Rounds left."""
        return self.entries[-1].remaining if self.entries else self.settings.budget

    def promise(
        self, questions: int | None = None, confidence: float = 0.95, means_only: bool = True
    ) -> Guarantee:
        """Return what is promised for so many questions in all; as many as planned if None.

        Theorem: docs/theory/reusable-holdout.md, docs/theory/counting.md
        """
        from quiltwork.beliefs import beliefs_from_json
        from quiltwork.holdout.guarantee import guarantee

        settings = self.settings
        return guarantee(
            None if self.beliefs is None else beliefs_from_json(self.beliefs),
            settings.rows,
            float(settings.threshold),
            float(settings.noise),
            settings.budget,
            questions or self.queries or max(settings.budget, len(self.entries), 1),
            confidence,
            means_only,
            settings.values,
        )

    def header(self) -> str:
        """Write the first line."""
        told = {name: value for name, value in vars(self).items() if name != "entries"}
        settings = told.pop("settings")
        body = {
            **told,
            **{name: getattr(settings, name) for name in ("rows", "budget", "bits", "values")},
            "threshold": str(settings.threshold),
            "noise": str(settings.noise),
            "beliefs": None if self.beliefs is None else json.loads(self.beliefs),
            "columns": None if self.columns is None else asdict(self.columns),
            "scoring": None,  # of boards that scored every submission, which are no more
        }
        return files.dump(SCHEMA, _VERSION, body)

    def lines(self) -> list[str]:
        """Write every line, each with the hash of the one before."""
        written = [self.header()]
        for entry in self.entries:
            written.append(chained(entry.body(), written[-1]))
        return written

    def to_jsonl(self) -> str:
        """Write the transcript as text that `read_transcript` verifies."""
        return "".join(line + "\n" for line in self.lines())

    @property
    def checkpoint(self) -> str:
        """The hash of the last line; kept elsewhere, it reveals later edits and cuts."""
        return line_hash(self.lines()[-1])


def read_transcript(text: str, checkpoint: str | None = None) -> Transcript:
    """Read a transcript back and verify it: schema, hash chain, numbering, budget.

    Args:
        text: what `to_jsonl` wrote.
        checkpoint: a hash noted earlier; one of the lines must have it.
    """
    lines = split_lines(text)
    transcript = _read_header(lines[0] if lines else "")
    entries: list[TranscriptLine] = []
    for at, body in enumerate(read_chained(lines), start=2):
        with reading(at):
            entry = _read_entry(body)
        left = entries[-1].remaining if entries else transcript.settings.budget
        spent = entry.overfit or entry.value is None
        if entry.number != len(entries) + 1 or entry.remaining != left - spent or left < 1:
            raise StorageError(f"Line {at} of the transcript does not follow from the one before.")
        entries.append(entry)
    if checkpoint is not None and checkpoint not in map(line_hash, lines):
        raise StorageError(
            "No line of the transcript has the hash noted earlier: it was edited or cut since."
        )
    return replace(transcript, entries=tuple(entries))


def load_transcript(path: str | Path, checkpoint: str | None = None) -> Transcript:
    """Read and verify a transcript file."""
    try:
        text = files.contents(path).decode()
    except UnicodeDecodeError:
        raise StorageError(f"{str(path)!r} is no transcript: it is no text.") from None
    return read_transcript(text, checkpoint)


def _read_header(line: str) -> Transcript:
    document = files.load(line, SCHEMA, (_VERSION,))
    with reading(1):
        bits = integer(document["bits"], "bits", 0, _MOST_BITS)
        settings = AlgorithmSettings.choose(
            read_count(document["rows"], "rows"),
            written_fraction(document["threshold"], "threshold"),
            written_fraction(document["noise"], "noise"),
            document["budget"],
            document["values"],
        )
        queries = document["queries"]
        if document["scoring"] is not None:
            raise InvalidInputError("boards that score every submission are not read any more.")
        return Transcript(
            replace(settings, bits=bits),
            text_of(document, "identity"),
            text_of(document, "commitment"),
            beliefs_of(document),
            None if queries is None else read_count(queries, "queries"),
            read_count(document["train_rows"], "train_rows"),
            _text_or_none(document, "dataset"),
            _text_or_none(document, "ledger"),
            read_columns(document["columns"]),
        )


def beliefs_of(document: Mapping[str, Any]) -> str | None:
    """Return the beliefs of a first line as a document of their own, None for independent rows."""
    found = document["beliefs"]
    return None if found is None else json.dumps(found, sort_keys=True, ensure_ascii=False)


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


def _read_entry(body: Mapping[str, Any]) -> TranscriptLine:
    if not isinstance(body["overfit"], bool):
        raise InvalidInputError("overfit must be true or false.")
    value = body["value"]
    return TranscriptLine(
        integer(body["number"], "number", 1),
        text_of(body, "question"),
        None if value is None else written_fraction(value, "value"),
        body["overfit"],
        integer(body["remaining"], "remaining", 0),
        text_of({"code": "", **body}, "code"),
    )
