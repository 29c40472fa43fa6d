"""Things with a name that an owner makes and lets others use: tables, holdouts.

What was asked when one was made (`asked`, a struct) and what has become of it (`made`, plain
values) are kept as JSON. It belongs to who made it and to those whom she admitted, until she
dismisses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from quiltwork.service.jobs import now, written
from quiltwork.service.problems import Problem
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Page

Asked = TypeVar("Asked", bound=msgspec.Struct)


@dataclass(frozen=True)
class ObjectRow:
    """One of them at rest."""

    kind: str
    name: str
    owner: str
    asked: dict[str, Any]
    made: dict[str, Any]
    created: int


@dataclass(frozen=True)
class Admission:
    """Who was admitted to one of them."""

    kind: str
    name: str
    member: str


_OBJECTS = TableOf("curator_objects", ObjectRow, "kind, name")
_ADMISSIONS = TableOf("curator_admissions", Admission, "kind, name, member")
FEATURE = Feature(Schema("objects", (_OBJECTS, _ADMISSIONS)))


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
        row = _OBJECTS.one(t, kind=self.word, name=name)
        known = None if row is None else self._stored(row)
        if known is not None and (known.owner, known.asked, known.made) != (owner, asked, {}):
            raise Problem(409, "conflict", f"There is a {self.word} {name!r} already.")
        _OBJECTS.add(t, ObjectRow(self.word, name, owner, msgspec.to_builtins(asked), {}, now()))
        t.note("act", f"made {self.word} {name}", owner)

    def current(self, t: Transaction, name: str) -> StoredObject[Asked]:
        """Return one that is there; 404 if it is not."""
        return self._stored(_OBJECTS.named(t, kind=self.word, name=name))

    def named(self, call: Call) -> StoredObject[Asked]:
        """Return the one that a request is about."""
        return call.service.read(lambda t: self.current(t, call.path[self.word]))

    def listed(self, call: Call, t: Transaction) -> Page[StoredObject[Asked]]:
        """Return those on a page: an auditor's are all, others' their own."""
        admitted = "SELECT name FROM curator_admissions WHERE kind = ? AND member = ?"
        found = _OBJECTS.page(
            *(t, call.query, "name"),
            f"kind = ? AND (? = 'auditor' OR owner = ? OR name IN ({admitted}))",
            *(self.word, call.caller.role, call.who, self.word, call.who),
        )
        return found.shown(self._stored)

    def files(self, t: Transaction, *names: str) -> list[str]:
        """Return the files of the vault that any of them has under some names of `made`."""
        found = _OBJECTS.all(t, "kind = ?", self.word)
        return [one.made[name] for one in found for name in names if name in one.made]

    def update(self, t: Transaction, stored: StoredObject[Asked], **made: Any) -> None:
        """Write down what has become of one, beside what had before."""
        self.write(t, stored.name, stored.asked, {**stored.made, **made})

    def write(self, t: Transaction, name: str, asked: Asked, made: dict[str, Any]) -> None:
        """Write one as it is now."""
        _OBJECTS.update(t, {"kind": self.word, "name": name}, asked=asked, made=made)

    def admit(self, call: Call, t: Transaction) -> None:
        """Let a member use one, as far as her role goes."""
        name, member = call.path[self.word], call.path["member"]
        _ADMISSIONS.add(t, Admission(self.word, name, member))
        t.note("act", f"admitted {member} to {self.word} {name}", call.who)

    def admitted(self, t: Transaction, stored: StoredObject[Asked], caller: Caller) -> list[str]:
        """Return who was admitted, for who made it and for auditors."""
        if caller.role != "auditor" and caller.member != stored.owner:
            return []
        where = "kind = ? AND name = ? ORDER BY member"
        return [one.member for one in _ADMISSIONS.all(t, where, self.word, stored.name)]

    def dismiss(self, call: Call, t: Transaction) -> None:
        """Take access back."""
        name, member = call.path[self.word], call.path["member"]
        _ADMISSIONS.delete(t, kind=self.word, name=name, member=member)
        t.note("act", f"took {self.word} {name} from {member}", call.who)

    def is_own(self, service: Service, caller: Caller, name: str) -> bool | None:
        """Whether one is the caller's: she made it, or was admitted."""
        found = service.read(
            lambda t: t.row(
                "SELECT o.owner, a.member FROM curator_objects o LEFT JOIN curator_admissions a "
                "ON a.kind = o.kind AND a.name = o.name AND a.member = ? "
                "WHERE o.kind = ? AND o.name = ?",
                *(caller.member, self.word, name),
            )
        )
        return None if found is None else caller.member in found

    def _stored(self, row: ObjectRow) -> StoredObject[Asked]:
        asked = msgspec.convert(row.asked, self.asked)
        return StoredObject(row.name, row.owner, asked, row.made, written(row.created))
