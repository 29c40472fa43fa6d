"""The records that a curator returns, shared by the service and its client.

They are plain dataclasses, so the client needs none of the service's dependencies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class MemberShare:
    """One member's share of a budget: the part used, its cap, and the part reserved."""

    member: str
    charged: float = 0.0
    cap: float | None = None
    reserved: float = 0.0


@dataclass(frozen=True)
class Dataset:
    """A dataset with its budget; `shares` of other members are visible to its owner and auditors.

    The budget covers `length` time points, of which `arrived` have rows; None if unknown. With a
    `delta`, `spent`, `remaining` and all shares are fractions of what ε and δ allow.
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
    """An answer about data simulated from the belief, with its intervals."""

    cells: list[Any]
    values: list[Any]
    intervals: list[list[float]] | None


@dataclass(frozen=True)
class AnswerPreview:
    """The cost and the expected error of an answer; nothing was spent."""

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
    """An answer with its intervals; `document` is the full release, as its `to_json` writes it."""

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
    """Whether the ledger is intact, and the hash at its end, to compare with later."""

    intact: bool
    detail: str
    ledger: str | None = None
    entries: int | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Job:
    """The publication of the table `subject`; `place` is the number of jobs queued before it."""

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
    """The number of rows that a provider uploaded for a table.

    `kept` is False if the provider deleted them after the table was published.
    """

    provider: str
    rows: int
    kept: bool = True


@dataclass(frozen=True)
class CollaborativeTable:
    """A table; owner and auditors see all `parts`, a provider its own, analysts get None."""

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
    """With probability `confidence` every answer is within `tolerance` of the true score.

    The tolerance is a share of the range of the widest offered metric. For a ladder it holds for
    the best score, and there is no `epsilon`.
    """

    questions: int
    tolerance: float
    confidence: float
    epsilon: float | None


@dataclass(frozen=True)
class Holdout:
    """A holdout: the rounds that are left, and the promised accuracy.

    `attempts_left` is the number of answers that the caller may still get, `announcements_left`
    the number of scores still announced to all members together. `final_rows` are held back for the
    final ranking, and `chosen` is the caller's submission for it.
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
    """A score; larger is better. `overfit` means that it came from the holdout, with noise.

    `noise_sd` is the standard deviation of that noise, in the metric's unit; 0 without noise.
    A ladder gives a value only to a submission that clearly beats its best. In standings `low` and
    `high` are an interval for the true score.
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


def from_document(kind: type[Kind], body: Mapping[str, Any]) -> Kind:
    """Return the record of a document; fields that only a newer curator knows are ignored."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _convert(hints[name], body.get(name)) for name in names})


def _convert(hint: Any, value: Any) -> Any:
    """Convert a field's value: to a record, a list of records, or as it is."""
    for part in (hint, *get_args(hint)):
        if isinstance(value, dict) and is_dataclass(part):
            return from_document(part, value)  # type: ignore[arg-type]
        if isinstance(value, list) and get_origin(part) is list:
            return [_convert(get_args(part)[0], item) for item in value]
    return value
