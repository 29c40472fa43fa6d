"""The transcript of a holdout: every question and answer, chained by hashes, without the holdout.

One line of JSON per entry. The first line has the settings and the beliefs; each later line holds
the hash of the one before. Verifying replays the budget. O(entries).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.holdout.algorithm import Settings

SCHEMA = "holdout-transcript"
_FIRST = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One answered question, or a round given up after an interruption.

    Attributes:
        number: from 1.
        question: its label, if it had one.
        value: the answer, exact; None for an interruption.
        overfit: whether the answer came from the holdout and cost a round.
        remaining: rounds left after it.
    """

    number: int
    question: str
    value: Fraction | None
    overfit: bool
    remaining: int

    def body(self) -> dict[str, Any]:
        """Write the entry as JSON-ready data."""
        return {
            "number": self.number,
            "question": self.question,
            "value": None if self.value is None else str(self.value),
            "overfit": self.overfit,
            "remaining": self.remaining,
        }


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
        entries: in order.
    """

    settings: Settings
    identity: str
    commitment: str
    beliefs: str | None
    queries: int | None
    train_rows: int
    dataset: str | None = None
    entries: tuple[Entry, ...] = ()

    @property
    def remaining(self) -> int:
        """Rounds left."""
        return self.entries[-1].remaining if self.entries else self.settings.budget

    def header(self) -> str:
        """Write the first line."""
        body = {
            "rows": self.settings.rows,
            "threshold": str(self.settings.threshold),
            "noise": str(self.settings.noise),
            "budget": self.settings.budget,
            "bits": self.settings.bits,
            "identity": self.identity,
            "commitment": self.commitment,
            "beliefs": None if self.beliefs is None else json.loads(self.beliefs),
            "queries": self.queries,
            "train_rows": self.train_rows,
            "dataset": self.dataset,
        }
        return files.dump(SCHEMA, 1, body)

    def lines(self) -> list[str]:
        """Write every line, each with the hash of the one before."""
        written = [self.header()]
        for entry in self.entries:
            written.append(chained(entry, written[-1]))
        return written

    def to_jsonl(self) -> str:
        """Write the transcript as text that `read_transcript` verifies."""
        return "".join(line + "\n" for line in self.lines())

    @property
    def checkpoint(self) -> str:
        """The hash of the last line; kept elsewhere, it reveals later edits and cuts."""
        return line_hash(self.lines()[-1])


def chained(entry: Entry, previous: str) -> str:
    """Write an entry's line after the line `previous`."""
    body = {**entry.body(), "previous": line_hash(previous)}
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


def split_lines(text: str) -> list[str]:
    """Split at line feeds only: labels may hold the other characters that end lines in Unicode."""
    return text.removesuffix("\n").split("\n") if text else []


def line_hash(line: str) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line.encode()).hexdigest()


def read_transcript(text: str, checkpoint: str | None = None) -> Transcript:
    """Read a transcript back and verify it: schema, hash chain, numbering, budget.

    Args:
        text: what `to_jsonl` wrote.
        checkpoint: a hash noted earlier; one of the lines must have it.

    Raises:
        StorageError: naming the line at which it does not verify.
        InvalidInputError: if it is no transcript.
    """
    lines = split_lines(text)
    if not lines:
        raise InvalidInputError("The transcript is empty.")
    transcript = _read_header(lines[0])
    entries: list[Entry] = []
    for at, line in enumerate(lines[1:], start=2):
        entry = _read_entry(line, lines[at - 2], at)
        left = entries[-1].remaining if entries else transcript.settings.budget
        spent = entry.overfit or entry.value is None
        if entry.number != len(entries) + 1 or entry.remaining != left - spent or left < 1:
            raise StorageError(f"Line {at} of the transcript does not follow from the one before.")
        entries.append(entry)
    if checkpoint is not None and checkpoint not in map(line_hash, lines):
        raise StorageError(
            "No line of the transcript has the hash noted earlier: it was edited or cut since."
        )
    return Transcript(**{**vars(transcript), "entries": tuple(entries)})


def load_transcript(path: str | Path, checkpoint: str | None = None) -> Transcript:
    """Read and verify a transcript file."""
    return read_transcript(Path(path).read_text(encoding="utf-8"), checkpoint)


def _read_header(line: str) -> Transcript:
    document = files.load(line, SCHEMA, (1,))
    try:
        settings = Settings(
            document["rows"],
            Fraction(document["threshold"]),
            Fraction(document["noise"]),
            document["budget"],
            document["bits"],
        )
        beliefs = document["beliefs"]
        return Transcript(
            settings,
            document["identity"],
            document["commitment"],
            None if beliefs is None else json.dumps(beliefs, sort_keys=True, ensure_ascii=False),
            document["queries"],
            document["train_rows"],
            document["dataset"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"Line 1 of the transcript cannot be read: {error}.") from None


def _read_entry(line: str, previous: str, at: int) -> Entry:
    try:
        body: Mapping[str, Any] = json.loads(line)
        entry = Entry(
            body["number"],
            body["question"],
            None if body["value"] is None else Fraction(body["value"]),
            body["overfit"],
            body["remaining"],
        )
        followed = body["previous"]
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise StorageError(f"Line {at} of the transcript cannot be read: {error}.") from None
    if followed != line_hash(previous):
        raise StorageError(
            f"Line {at} of the transcript does not carry the hash of line {at - 1}: one of them "
            "was changed."
        )
    return entry


def as_rows(entries: Iterable[Entry]) -> list[list[object]]:
    """Return entries as rows of a table: number, question, answer, from the holdout, left."""
    return [
        [
            entry.number,
            entry.question or "-",
            "interrupted" if entry.value is None else f"{float(entry.value):.6g}",
            "holdout" if entry.overfit else "training",
            entry.remaining,
        ]
        for entry in entries
    ]
