"""Who was admitted to a table or a holdout by its owner, and hence may call it her own."""

from __future__ import annotations

from typing import Literal, TypeAlias

from quiltwork.service.rights import Caller
from quiltwork.service.routes import Belongs, Part, Service
from quiltwork.service.storage import Schema, Transaction
from quiltwork.service.structs import PageQuery

Kind: TypeAlias = Literal["table", "holdout"]
_OWNED = {"table": "curator_tables", "holdout": "curator_holdouts"}


def admit(transaction: Transaction, kind: Kind, name: str, member: str, by: str) -> None:
    """Let somebody use a table or holdout, as far as her role goes."""
    transaction.rows(
        "INSERT INTO curator_admitted (kind, name, member) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        *(kind, name, member),
    )
    transaction.note("act", f"admitted {member} to {kind} {name}", by)


def own(kind: Kind) -> Belongs:
    """Return whose such an object is: of who made it, and of those who were admitted."""
    statement = (
        f"SELECT o.owner, a.member FROM {_OWNED[kind]} o LEFT JOIN curator_admitted a "  # noqa: S608
        "ON a.kind = ? AND a.name = o.name AND a.member = ? WHERE o.name = ?"
    )

    def is_own(service: Service, caller: Caller, name: str) -> bool | None:
        found = service.storage.read(lambda t: t.row(statement, kind, caller.member, name))
        return None if found is None else caller.member in found

    return is_own


def listed(transaction: Transaction, kind: Kind, caller: Caller, asked: PageQuery) -> list[str]:
    """Return the names on a page, and one more: an auditor's are all, others' their own."""
    rows = transaction.rows(
        f"SELECT name FROM {_OWNED[kind]} WHERE name > ? AND (? = 'auditor' OR owner = ? OR "  # noqa: S608
        "name IN (SELECT name FROM curator_admitted WHERE kind = ? AND member = ?)) "
        "ORDER BY name LIMIT ?",
        *(asked.after or "", caller.role, caller.member, kind, caller.member, asked.limit + 1),
    )
    return [str(name) for (name,) in rows]


PART = Part(
    schema=Schema(
        "admission",
        (
            (
                """CREATE TABLE curator_admitted (
                    kind TEXT NOT NULL,
                    name TEXT NOT NULL,
                    member TEXT NOT NULL,
                    PRIMARY KEY (kind, name, member)
                )""",
            ),
        ),
    )
)
