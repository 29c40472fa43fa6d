"""What a curator tells: the records that the service writes and its client reads.

Plain dataclasses, so that the client needs nothing that the service is made of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class MemberShare:
    """What one member may use of a budget, and has used."""

    member: str
    charged: float = 0.0
    cap: float | None = None
    reserved: float = 0.0


@dataclass(frozen=True)
class Dataset:
    """A dataset at a glance; other members' `shares` are for its owner and auditors.

    The budget covers `length` time points, of which so many have `arrived`; None if not known. With
    a `delta` what is `spent`, `remaining` and shared out are shares of what ε and δ allow.
    """

    name: str
    kind: Literal["series", "counts"]
    owner: str
    created: str
    text: str
    budget: float
    spent: float
    remaining: float
    releases: int
    length: int | None
    arrived: int | None
    episode: int
    beliefs: list[str]
    states: list[Any] | None
    columns: dict[str, list[str]] | None
    retired: str | None
    deleted: str | None
    share: MemberShare | None
    shares: list[MemberShare] | None
    delta: float = 0.0


@dataclass(frozen=True)
class AnswerExample:
    """An answer about data that were simulated from the belief, with its intervals."""

    cells: list[Any]
    values: list[Any]
    intervals: list[list[float]] | None


@dataclass(frozen=True)
class AnswerPreview:
    """What an answer would cost and how far off it would be; nothing was spent."""

    dataset: str
    granted: bool
    refusal: str | None
    spent_before: float
    spent_after: float | None
    budget: float
    cells: int
    scale: float
    expected_error: float
    half_width: float
    half_width_of_all: float
    confidence: float
    verdict: str | None = None
    reason: str | None = None
    example: AnswerExample | None = None
    claim: str | None = None


@dataclass(frozen=True)
class Released:
    """An answer with its error bars; `document` is the whole release as quiltwork writes it."""

    number: int
    dataset: str
    at: str
    analyst: str | None
    kind: str
    query: dict[str, Any]
    epsilon: float
    protects: str
    cells: list[Any]
    values: list[Any]
    intervals: list[list[float]] | None
    confidence: float
    text: str
    document: dict[str, Any]

    @property
    def result(self) -> Any:
        """The release itself: a `Release` of a series, a `CountTable` of counts."""
        text = json.dumps(self.document)
        if self.document["schema"] == "quiltwork/count-table":
            from quiltwork.counts import CountTable

            return CountTable.from_json(text)
        from quiltwork.series import Release

        return Release.from_json(text)


@dataclass(frozen=True)
class Verification:
    """Whether the chain is intact, and where it ends: keep it, to compare later."""

    intact: bool
    detail: str
    ledger: str | None = None
    entries: int | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Job:
    """The publication of the table `subject`; `place` counts the jobs before it while it waits."""

    id: str
    subject: str
    owner: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    place: int | None
    done: int
    total: int
    attempts: int
    created: str
    started: str | None
    finished: str | None
    error: str


@dataclass(frozen=True)
class GivenPart:
    """How many rows a provider gave to a table.

    `kept` is False once she has deleted them, of a table that was published with them.
    """

    provider: str
    rows: int
    kept: bool = True


@dataclass(frozen=True)
class CollaborativeTable:
    """A table; a provider sees its own part, the owner and auditors all, analysts None."""

    name: str
    owner: str
    rules: dict[str, Any]
    state: Literal["collecting", "publishing", "published"]
    created: str
    parts: list[GivenPart] | None
    admitted: list[str]
    job: Job | None


@dataclass(frozen=True)
class HoldoutPromise:
    """With probability `confidence` every answer is within `tolerance` of the truth.

    That is a share of the metric's range, of the widest one that may be asked. Of a ladder the best
    score is; it has no `epsilon`.
    """

    questions: int
    tolerance: float
    confidence: float
    epsilon: float | None


@dataclass(frozen=True)
class Holdout:
    """A holdout: how many rounds are left, and what is promised for so many questions.

    `attempts_left` is how many more answers the caller may get, `announcements_left` how many more
    scores are announced, of all members together. `final_rows` are kept apart for the end, and
    `chosen` is the submission that the caller has named for it.
    """

    name: str
    owner: str
    mode: Literal["rounds", "ladder", "one bit"]
    attempts: int | None
    attempts_left: int | None
    id_column: str
    target: str
    group: str | None
    metrics: list[str]
    state: Literal["waiting for tables", "ready to open", "open", "ended", "deleted"]
    created: str
    budget: int
    remaining: int
    asked: int
    rows: int | None
    promise: HoldoutPromise | None
    classes: list[str] | None
    announcements_left: int | None
    final_rows: int | None
    chosen: int | None
    admitted: list[str]


@dataclass(frozen=True)
class Score:
    """An answer; larger is better. `overfit` says that it came from the holdout, with noise.

    `noise_sd` is the standard deviation of that noise, in the metric's unit; 0 where there is none.
    A ladder tells a value only to what clearly beats its best. In standings `low` and `high` are
    where the truth is.
    """

    member: str
    metric: str
    number: int
    value: float | None
    overfit: bool
    remaining: int
    at: str
    noise_sd: float = 0.0
    low: float | None = None
    high: float | None = None


def read(kind: type[Kind], body: Mapping[str, Any]) -> Kind:
    """Read a document; what a newer curator tells beyond it is left out."""
    hints = get_type_hints(kind)
    named = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _read(hints[name], body.get(name)) for name in named})


def _read(hint: Any, value: Any) -> Any:
    """Read what a field holds: a record, a list of them, or a value as it is."""
    for part in (hint, *get_args(hint)):
        if isinstance(value, dict) and is_dataclass(part):
            return read(part, value)  # type: ignore[arg-type]
        if isinstance(value, list) and get_origin(part) is list:
            return [_read(get_args(part)[0], one) for one in value]
    return value
