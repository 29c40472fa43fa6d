"""Schedules and their runs as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quiltwork.errors import InvalidInputError
from quiltwork.service.storage import Schema, Transaction

Missed: TypeAlias = Literal["catch-up", "skip"]
_SCHEDULE = "SELECT id, dataset, owner, state, missed, body, created FROM curator_schedules"
_RUN = (
    "SELECT schedule, number, due, day, start, stop, epsilon, state, debit, job FROM curator_runs"
)
SCHEMA = Schema(
    "schedules",
    (
        (
            """CREATE TABLE curator_schedules (
                id TEXT NOT NULL PRIMARY KEY,
                dataset TEXT NOT NULL,
                owner TEXT NOT NULL,
                state TEXT NOT NULL,
                missed TEXT NOT NULL,
                body TEXT NOT NULL,
                created BIGINT NOT NULL
            )""",
            "CREATE INDEX curator_schedules_of ON curator_schedules (dataset, created)",
            """CREATE TABLE curator_runs (
                schedule TEXT NOT NULL,
                number BIGINT NOT NULL,
                due BIGINT NOT NULL,
                day TEXT NOT NULL,
                start BIGINT NOT NULL,
                stop BIGINT NOT NULL,
                epsilon TEXT NOT NULL,
                state TEXT NOT NULL,
                debit BIGINT NOT NULL,
                job TEXT NOT NULL,
                PRIMARY KEY (schedule, number)
            )""",
            "CREATE INDEX curator_runs_due ON curator_runs (due) WHERE state = 'waiting'",
        ),
    ),
)


@dataclass(frozen=True)
class StoredSchedule:
    """A schedule as it was made."""

    id: str
    dataset: str
    owner: str
    state: str
    missed: Missed
    body: Mapping[str, Any]
    created: int


@dataclass(frozen=True)
class StoredRun:
    """One run: waiting, queued, drawing, done, skipped or lost."""

    schedule: str
    number: int
    due: int
    day: str
    start: int
    stop: int
    epsilon: str
    state: str
    debit: int
    job: str


def find(t: Transaction, name: str) -> StoredSchedule | None:
    """Return a schedule."""
    row = t.row(f"{_SCHEDULE} WHERE id = ?", name)
    return None if row is None else _stored(row)


def schedules_of(t: Transaction, dataset: str) -> list[StoredSchedule]:
    """Return the schedules of a dataset, the latest first."""
    rows = t.rows(f"{_SCHEDULE} WHERE dataset = ? ORDER BY created DESC, id", dataset)
    return [_stored(row) for row in rows]


def runs_of(t: Transaction, name: str) -> list[StoredRun]:
    """Return the runs of a schedule, in order."""
    rows = t.rows(f"{_RUN} WHERE schedule = ? ORDER BY number", name)
    return [StoredRun(*row) for row in rows]


def run_of(t: Transaction, name: str, number: int) -> StoredRun:
    """Return one run."""
    row = t.row(f"{_RUN} WHERE schedule = ? AND number = ?", name, number)
    if row is None:
        raise InvalidInputError("The schedule has no run of that number.")
    return StoredRun(*row)


def _stored(row: Sequence[Any]) -> StoredSchedule:
    name, dataset, owner, state, missed, body, created = row
    return StoredSchedule(name, dataset, owner, state, missed, json.loads(body), created)
