"""Holdouts and what they answered as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.service import jobs
from quiltwork.service.storage import Schema, Transaction

SCHEMA = Schema(
    "holdouts",
    (
        (
            """CREATE TABLE curator_holdouts (
                name TEXT NOT NULL PRIMARY KEY,
                owner TEXT NOT NULL,
                body TEXT NOT NULL,
                train TEXT NOT NULL,
                holdout TEXT NOT NULL,
                transcript TEXT NOT NULL,
                created BIGINT NOT NULL
            )""",
            """CREATE TABLE curator_scores (
                name TEXT NOT NULL,
                member TEXT NOT NULL,
                mark TEXT NOT NULL,
                digest TEXT NOT NULL,
                metric TEXT NOT NULL,
                number BIGINT NOT NULL,
                value TEXT NOT NULL,
                overfit BIGINT NOT NULL,
                remaining BIGINT NOT NULL,
                created BIGINT NOT NULL,
                PRIMARY KEY (name, member, mark)
            )""",
        ),
    ),
)


@dataclass(frozen=True)
class Rules:
    """Which column is what, and what is answered.

    Attributes:
        identity: the column that names a row; ids are public.
        target: the column that is predicted.
        group: rows that are alike in it depend on each other; None for independent rows.
        threshold: how far the two tables may differ before the holdout answers.
        noise: the scale of the noise.
        budget: how many answers may come from the holdout.
        metrics: by name, the public ends of the target that an error needs, or None.
    """

    identity: str
    target: str
    group: str | None
    threshold: str
    noise: str
    budget: int
    metrics: Mapping[str, tuple[str, str] | None]


@dataclass(frozen=True)
class Stored:
    """A holdout: files at rest, "" while they are missing; a transcript once it is open."""

    name: str
    owner: str
    rules: Rules
    train: str
    holdout: str
    transcript: str
    created: int


@dataclass(frozen=True)
class Score:
    """One answer: `value` is larger where predictions are better."""

    member: str
    metric: str
    number: int
    value: float
    overfit: bool
    remaining: int
    created: int


def create(transaction: Transaction, name: str, owner: str, rules: Rules) -> None:
    """Register a holdout without tables.

    Raises:
        InvalidInputError: if there is one of this name.
    """
    if find(transaction, name) is not None:
        raise InvalidInputError(f"There is a holdout {name!r} already; choose another name.")
    transaction.rows(
        "INSERT INTO curator_holdouts (name, owner, body, train, holdout, transcript, created) "
        "VALUES (?, ?, ?, '', '', '', ?)",
        *(name, owner, json.dumps({**vars(rules), "metrics": dict(rules.metrics)}), jobs.now()),
    )
    transaction.note("act", f"registered holdout {name}", owner)


def keep(t: Transaction, stored: Stored, key: str, digest: str, score: Score) -> None:
    """Keep an answer under its key, and note that it was asked for."""
    t.rows(
        "INSERT INTO curator_scores (name, member, mark, digest, metric, number, value, overfit, "
        "remaining, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        *(stored.name, score.member, key, digest, score.metric, score.number, repr(score.value)),
        *(int(score.overfit), score.remaining, score.created),
    )
    t.note("act", f"asked holdout {stored.name}", score.member, dataset_of(stored))


def standings(transaction: Transaction, name: str) -> list[Score]:
    """Return every member's best answer for each metric, best first."""
    rows = transaction.rows(f"{_SCORE} WHERE name = ? ORDER BY number", name)
    best: dict[tuple[str, str], Score] = {}
    for one in map(_score, rows):
        known = best.get((one.member, one.metric))
        if known is None or one.value > known.value:
            best[one.member, one.metric] = one
    return sorted(best.values(), key=lambda one: (one.metric, -one.value, one.number))


def dataset_of(stored: Stored) -> str:
    """Return the ledger's name for a holdout's budget."""
    return f"holdout.{stored.name}"


def current(transaction: Transaction, name: str) -> Stored:
    """Return a holdout that is there."""
    found = find(transaction, name)
    if found is None:
        raise InvalidInputError(f"There is no holdout {name!r}.")
    return found


def find(transaction: Transaction, name: str) -> Stored | None:
    """Return a holdout."""
    row = transaction.row(f"{_HOLDOUT} WHERE name = ?", name)
    return None if row is None else _stored(row)


def files(transaction: Transaction) -> list[str]:
    """Return the files of the vault that holdouts need."""
    rows = transaction.rows("SELECT train, holdout FROM curator_holdouts")
    return [str(name) for row in rows for name in row if name]


_HOLDOUT = "SELECT name, owner, body, train, holdout, transcript, created FROM curator_holdouts"
_SCORE = "SELECT member, metric, number, value, overfit, remaining, created FROM curator_scores"


def _stored(row: Any) -> Stored:
    name, owner, body, train, holdout, transcript, created = row
    rules = json.loads(body)
    return Stored(name, owner, Rules(**rules), train, holdout, transcript, created)


def scored(t: Transaction, name: str, member: str, key: str) -> tuple[str, Score] | None:
    """Return the answer under a member's key, and the digest of its question."""
    where = "WHERE name = ? AND member = ? AND mark = ?"
    row = t.row(f"{_SCORE} {where}", name, member, key)
    if row is None:
        return None
    (digest,) = t.row(f"SELECT digest FROM curator_scores {where}", name, member, key)  # noqa: S608
    return str(digest), _score(row)


def _score(row: Any) -> Score:
    member, metric, number, value, overfit, remaining, created = row
    return Score(member, metric, number, float(value), bool(overfit), remaining, created)
