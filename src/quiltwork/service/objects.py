"""Things with a name that an owner makes and lets others use: tables, holdouts.

What was asked when one was made (`asked`, a struct) and what has become of it (`made`, plain
values) are kept as JSON. It belongs to who made it and to those whom she admitted, until she
dismisses them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from quiltwork.service.jobs import now, written
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, Transaction
from quiltwork.service.structs import PageQuery

Asked = TypeVar("Asked", bound=msgspec.Struct)
_COLUMNS = "name, owner, asked, made, created"
FEATURE = Feature(
    schema=Schema(
        "objects",
        (
            (
                """CREATE TABLE curator_objects (
                    kind TEXT NOT NULL,
                    name TEXT NOT NULL,
                    owner TEXT NOT NULL,
                    asked TEXT NOT NULL,
                    made TEXT NOT NULL,
                    created BIGINT NOT NULL,
                    PRIMARY KEY (kind, name)
                )""",
                """CREATE TABLE curator_admissions (
                    kind TEXT NOT NULL,
                    name TEXT NOT NULL,
                    member TEXT NOT NULL,
                    PRIMARY KEY (kind, name, member)
                )""",
            ),
        ),
    )
)


@dataclass(frozen=True)
class StoredObject(Generic[Asked]):
    """One of them."""

    name: str
    owner: str
    asked: Asked
    made: dict[str, Any]
    created: str


@dataclass(frozen=True)
class Kind(Generic[Asked]):
    """A kind of them: its word, which names it in paths too, and the struct of what is asked."""

    word: str
    asked: type[Asked]

    def create(self, t: Transaction, name: str, owner: str, asked: Asked) -> None:
        """Make one, or 409 if there is another of this name.

        Asking for the same again, before anything came of it, changes nothing.
        """
        known = self.find(t, name)
        if known is not None and (known.owner, known.asked, known.made) != (owner, asked, {}):
            raise Problem(409, "conflict", f"There is a {self.word} {name!r} already.")
        t.insert(
            "curator_objects",
            kind=self.word,
            name=name,
            owner=owner,
            created=now(),
            made="{}",
            asked=msgspec.json.encode(asked).decode(),
        )
        t.note("act", f"made {self.word} {name}", owner)

    def find(self, t: Transaction, name: str) -> StoredObject[Asked] | None:
        """Return one."""
        where = "WHERE kind = ? AND name = ?"
        row = t.row(f"SELECT {_COLUMNS} FROM curator_objects {where}", self.word, name)  # noqa: S608
        return None if row is None else self._stored(row)

    def current(self, t: Transaction, name: str) -> StoredObject[Asked]:
        """Return one that is there; 404 if it is not."""
        found = self.find(t, name)
        if found is None:
            raise not_found()
        return found

    def named(self, call: Call) -> StoredObject[Asked]:
        """Return the one that a request is about."""
        return call.service.storage.read(lambda t: self.current(t, call.path[self.word]))

    def listed(self, t: Transaction, caller: Caller, asked: PageQuery) -> list[StoredObject[Asked]]:
        """Return those on a page, and one more: an auditor's are all, others' their own."""
        rows = t.rows(
            f"SELECT {_COLUMNS} FROM curator_objects WHERE kind = ? AND name > ? AND "  # noqa: S608
            "(? = 'auditor' OR owner = ? OR name IN "
            "(SELECT name FROM curator_admissions WHERE kind = ? AND member = ?)) "
            "ORDER BY name LIMIT ?",
            *(self.word, asked.after or "", caller.role, caller.member, self.word),
            *(caller.member, asked.limit + 1),
        )
        return [self._stored(row) for row in rows]

    def update(self, t: Transaction, stored: StoredObject[Asked], **made: Any) -> None:
        """Write down what has become of one, beside what had before."""
        self.write(t, stored.name, stored.asked, {**stored.made, **made})

    def write(self, t: Transaction, name: str, asked: Asked, made: dict[str, Any]) -> None:
        """Write one as it is now."""
        now = {"asked": msgspec.json.encode(asked).decode(), "made": json.dumps(made)}
        t.update("curator_objects", {"kind": self.word, "name": name}, **now)

    def admit(self, call: Call) -> None:
        """Let a member use one, as far as her role goes."""
        name, member = call.path[self.word], call.path["member"]

        def work(t: Transaction) -> None:
            t.insert("curator_admissions", kind=self.word, name=name, member=member)
            t.note("act", f"admitted {member} to {self.word} {name}", call.caller.member)

        call.service.storage.write(work)

    def admitted(self, t: Transaction, stored: StoredObject[Asked], caller: Caller) -> list[str]:
        """Return who was admitted, for who made it and for auditors."""
        if caller.role != "auditor" and caller.member != stored.owner:
            return []
        rows = t.rows(
            "SELECT member FROM curator_admissions WHERE kind = ? AND name = ? ORDER BY member",
            *(self.word, stored.name),
        )
        return [str(member) for (member,) in rows]

    def dismiss(self, t: Transaction, call: Call) -> None:
        """Take access back."""
        name, member = call.path[self.word], call.path["member"]
        t.delete("curator_admissions", kind=self.word, name=name, member=member)
        t.note("act", f"took {self.word} {name} from {member}", call.caller.member)

    def is_own(self, service: Service, caller: Caller, name: str) -> bool | None:
        """Whether one is the caller's: she made it, or was admitted."""
        found = service.storage.read(
            lambda t: t.row(
                "SELECT o.owner, a.member FROM curator_objects o LEFT JOIN curator_admissions a "
                "ON a.kind = o.kind AND a.name = o.name AND a.member = ? "
                "WHERE o.kind = ? AND o.name = ?",
                *(caller.member, self.word, name),
            )
        )
        return None if found is None else caller.member in found

    def _stored(self, row: Any) -> StoredObject[Asked]:
        name, owner, asked, made, created = row
        read = msgspec.json.decode(asked, type=self.asked)
        return StoredObject(name, owner, read, json.loads(made), written(created))
