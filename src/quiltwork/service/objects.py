"""Named objects that an owner creates and shares with members: tables and holdouts.

Their specification (`spec`, a struct) and their state so far (`state`, plain values) are stored as
JSON. An object belongs to the owner who created it and to the members whom she admitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from quiltwork.service.jobs import now
from quiltwork.service.problems import Problem
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Page


@dataclass(frozen=True)
class StoredObject:
    """An object as it is stored; a subclass for each kind gives the type of its `spec`."""

    kind: str
    name: str
    owner: str
    spec: Any
    state: dict[str, Any]
    created: int


@dataclass(frozen=True)
class Admission:
    """A member's access to an object."""

    kind: str
    name: str
    member: str


Stored = TypeVar("Stored", bound=StoredObject)
_OBJECTS = TableOf("curator_objects", StoredObject, "kind, name")
_ADMISSIONS = TableOf("curator_admissions", Admission, "kind, name, member")
FEATURE = Feature(Schema("objects", (_OBJECTS, _ADMISSIONS)))


@dataclass(frozen=True)
class ObjectKind(Generic[Stored]):
    """A kind of object: its word, which is also its path parameter, and its record class."""

    word: str
    row: type[Stored]

    @cached_property
    def _rows(self) -> TableOf[Stored]:
        return TableOf(_OBJECTS.name, self.row, _OBJECTS.key)

    def create(self, t: Transaction, name: str, owner: str, spec: Any) -> None:
        """Create an object; 409 if another has its name.

        Repeating the same request changes nothing, so an interrupted client can continue.
        """
        existing = self._rows.find(t, kind=self.word, name=name)
        deleted = existing is not None and "deleted" in existing.state
        if deleted or (existing is not None and (existing.owner, existing.spec) != (owner, spec)):
            raise Problem(409, "conflict", f"A {self.word} named {name!r} exists already.")
        if existing is None:
            self._rows.add(t, self.row(self.word, name, owner, spec, {}, now()))
            t.note("act", f"made {self.word} {name}", owner)

    def current(self, t: Transaction, name: str) -> Stored:
        """Return the object of a name; 404 if there is none."""
        return self._rows.get(t, kind=self.word, name=name)

    def requested(self, call: Call) -> Stored:
        """Return the object that a request's path names."""
        return call.service.read(lambda t: self.current(t, call.path[self.word]))

    def listed(self, call: Call, t: Transaction) -> Page[Stored]:
        """Return a page of the objects that the caller may see: for auditors all of them."""
        admitted = "SELECT name FROM curator_admissions WHERE kind = ? AND member = ?"
        return self._rows.page(
            *(t, call.query, "name"),
            f"kind = ? AND (? = 'auditor' OR owner = ? OR name IN ({admitted}))",
            *(self.word, call.caller.role, call.member, self.word, call.member),
        )

    def files(self, t: Transaction, *names: str) -> list[str]:
        """Return the vault files that objects hold under some names of their state."""
        objects = self._rows.select(t, "kind = ?", self.word)
        return [stored.state[name] for stored in objects for name in names if name in stored.state]

    def update(self, t: Transaction, stored: Stored, **changes: Any) -> None:
        """Set fields of an object's state; the others stay."""
        self.write(t, stored.name, stored.spec, {**stored.state, **changes})

    def write(self, t: Transaction, name: str, spec: Any, state: dict[str, Any]) -> None:
        """Replace the specification and state of an object."""
        self._rows.update(t, {"kind": self.word, "name": name}, spec=spec, state=state)

    def withdraw(self, t: Transaction, stored: Stored, member: str) -> None:
        """Delete an object that was never used, with its admissions."""
        key = {"kind": self.word, "name": stored.name}
        for admission in _ADMISSIONS.select(t, "kind = ? AND name = ?", *key.values()):
            _ADMISSIONS.delete(t, **key, member=admission.member)
        self._rows.delete(t, **key)
        t.note("act", f"withdrew {self.word} {stored.name}", member)

    def admit(self, call: Call, t: Transaction) -> None:
        """Give a member access, as far as her role allows."""
        name, member = call.path[self.word], call.path["member"]
        _ADMISSIONS.add(t, Admission(self.word, name, member))
        t.note("act", f"admitted {member} to {self.word} {name}", call.member)

    def admitted(self, t: Transaction, stored: Stored, caller: Caller) -> list[str]:
        """Return the admitted members, for the object's owner and for auditors; else none."""
        if caller.role != "auditor" and caller.member != stored.owner:
            return []
        where = "kind = ? AND name = ? ORDER BY member"
        return [row.member for row in _ADMISSIONS.select(t, where, self.word, stored.name)]

    def dismiss(self, call: Call, t: Transaction) -> None:
        """Withdraw a member's access."""
        name, member = call.path[self.word], call.path["member"]
        _ADMISSIONS.delete(t, kind=self.word, name=name, member=member)
        t.note("act", f"took {self.word} {name} from {member}", call.member)

    def is_own(self, service: Service, caller: Caller, name: str) -> bool | None:
        """Whether the caller created an object or was admitted to it; None if there is none."""
        row = service.read(
            lambda t: t.row(
                "SELECT o.owner, a.member FROM curator_objects o LEFT JOIN curator_admissions a "
                "ON a.kind = o.kind AND a.name = o.name AND a.member = ? "
                "WHERE o.kind = ? AND o.name = ?",
                *(caller.member, self.word, name),
            )
        )
        return None if row is None else caller.member in row
