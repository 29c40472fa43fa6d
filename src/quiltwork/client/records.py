"""What a curator tells, as frozen records; what a newer one tells beyond them is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Dataset:
    """A dataset as its curator shows it; `shares` of others are for its owner and auditors."""

    name: str
    kind: str
    owner: str
    created: str
    budget: float
    spent: float
    remaining: float
    releases: int
    length: int | None
    episode: int
    states: list[Any] | None
    columns: dict[str, list[str]] | None
    retired: str | None
    deleted: str | None
    share: dict[str, Any] | None
    shares: list[dict[str, Any]] | None


@dataclass(frozen=True)
class AnswerPreview:
    """What an answer would cost, and how far off it would be."""

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
    verdict: str | None
    reason: str | None
    example: dict[str, Any] | None


@dataclass(frozen=True)
class Released:
    """What was released: a value and an interval for each cell."""

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
    """Whether the chain is intact, and where it ends."""

    intact: bool
    detail: str
    ledger: str | None
    entries: int | None
    hash: str | None


@dataclass(frozen=True)
class Job:
    """Long work: where it is, how many jobs are before it, when its worker was last heard of."""

    id: str
    kind: str
    subject: str
    state: str
    place: int | None
    done: int
    total: int
    worker_age: float | None
    waiting_for: str
    attempts: int
    created: str
    finished: str | None
    error: str


@dataclass(frozen=True)
class ScheduledRun:
    """One run of a schedule."""

    number: int
    day: str
    due: str
    window: list[int]
    epsilon: float
    state: str
    error: str


@dataclass(frozen=True)
class Schedule:
    """A schedule and where each of its runs is."""

    id: str
    dataset: str
    owner: str
    state: str
    created: str
    asked: dict[str, Any]
    noise: float
    runs: list[ScheduledRun]


@dataclass(frozen=True)
class CollaborativeTable:
    """A collaborative table; its parts and job are for those who may see them."""

    name: str
    owner: str
    rules: dict[str, Any]
    state: str
    created: str
    parts: list[dict[str, Any]]
    admitted: list[str]
    job: dict[str, Any] | None


@dataclass(frozen=True)
class Holdout:
    """A holdout: how many rounds are left, and what is promised."""

    name: str
    owner: str
    mode: str
    attempts: int | None
    attempts_left: int | None
    id_column: str
    target: str
    metrics: list[str]
    state: str
    budget: int
    remaining: int
    asked: int
    rows: int | None
    promise: dict[str, Any] | None
    admitted: list[str]


@dataclass(frozen=True)
class Score:
    """An answer; larger is better. `overfit` says that it came from the holdout, with noise."""

    member: str
    metric: str
    number: int
    value: float | None
    overfit: bool
    remaining: int
    at: str


def read(kind: type[Kind], body: Mapping[str, Any]) -> Kind:
    """Read a document; what a newer curator tells beyond it is left out."""
    return kind(**{one.name: body.get(one.name) for one in fields(kind)})  # type: ignore[arg-type]
