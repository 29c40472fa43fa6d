"""Answers of competitions: kept once for each key of a member, and who stands where."""

from __future__ import annotations

import msgspec

from quiltwork.client.records import Score
from quiltwork.service.storage import Schema, Transaction

SCHEMA = Schema(
    "standings",
    (
        (
            """CREATE TABLE curator_standings (
                name TEXT NOT NULL,
                member TEXT NOT NULL,
                mark TEXT NOT NULL,
                digest TEXT NOT NULL,
                number BIGINT NOT NULL,
                score TEXT NOT NULL,
                PRIMARY KEY (name, member, mark)
            )""",
        ),
    ),
)


def keep(t: Transaction, name: str, key: str, digest: str, score: Score) -> None:
    """Keep an answer under its key."""
    t.insert(
        "curator_standings",
        name=name,
        member=score.member,
        mark=key,
        digest=digest,
        number=score.number,
        score=msgspec.json.encode(score).decode(),
    )


def scored(t: Transaction, name: str, member: str, key: str) -> tuple[str, Score] | None:
    """Return the answer under a member's key, and the digest of its question."""
    where = "WHERE name = ? AND member = ? AND mark = ?"
    row = t.row(f"SELECT digest, score FROM curator_standings {where}", name, member, key)  # noqa: S608
    return None if row is None else (str(row[0]), msgspec.json.decode(row[1], type=Score))


def scores(t: Transaction, name: str, member: str | None = None) -> list[Score]:
    """Return every answer, or those of one member, in order."""
    rows = t.rows("SELECT score FROM curator_standings WHERE name = ? ORDER BY number", name)
    found = [msgspec.json.decode(text, type=Score) for (text,) in rows]
    return [one for one in found if member in (None, one.member)]


def standings(t: Transaction, name: str) -> list[Score]:
    """Return every member's best answer for each metric, best first."""
    best: dict[tuple[str, str], tuple[float, Score]] = {}
    for one in scores(t, name):
        known = best.get((one.member, one.metric))
        if one.value is not None and (known is None or one.value > known[0]):
            best[one.member, one.metric] = (one.value, one)
    ranked = sorted(best.values(), key=lambda found: (found[1].metric, -found[0], found[1].number))
    return [one for _, one in ranked]
