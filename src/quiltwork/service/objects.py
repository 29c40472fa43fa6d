"""Things with a name that an owner makes and lets others use: tables, holdouts.

What was asked when one was made (`asked`, a struct) and what has become of it (`made`, plain
values) are kept as JSON. It belongs to who made it and to those whom she admitted, until she
dismisses them.
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
    """One of them; a kind says by a class of its own which struct was `asked`."""

    kind: str
    name: str
    owner: str
    asked: Any
    made: dict[str, Any]
    created: int


@dataclass(frozen=True)
class Admission:
    """Who was admitted to one of them."""

    kind: str
    name: str
    member: str


Stored = TypeVar("Stored", bound=StoredObject)
_OBJECTS = TableOf("curator_objects", StoredObject, "kind, name")
_ADMISSIONS = TableOf("curator_admissions", Admission, "kind, name, member")
FEATURE = Feature(Schema("objects", (_OBJECTS, _ADMISSIONS)))


@dataclass(frozen=True)
class Kind(Generic[Stored]):
    """A kind of them: its word, which names it in paths too, and their class."""

    word: str
    row: type[Stored]

    @cached_property
    def _rows(self) -> TableOf[Stored]:
        return TableOf(_OBJECTS.name, self.row, _OBJECTS.key)

    def create(self, t: Transaction, name: str, owner: str, asked: Any) -> None:
        """Make one, or 409 if there is another of this name.

        Asking for the same again changes nothing: what stopped half way can be gone on with.
        """
        known = self._rows.one(t, kind=self.word, name=name)
        gone = known is not None and "deleted" in known.made
        if gone or (known is not None and (known.owner, known.asked) != (owner, asked)):
            raise Problem(409, "conflict", f"There is a {self.word} {name!r} already.")
        if known is None:
            self._rows.add(t, self.row(self.word, name, owner, asked, {}, now()))
            t.note("act", f"made {self.word} {name}", owner)

    def current(self, t: Transaction, name: str) -> Stored:
        """Return one that is there; 404 if it is not."""
        return self._rows.named(t, kind=self.word, name=name)

    def named(self, call: Call) -> Stored:
        """Return the one that a request is about."""
        return call.service.read(lambda t: self.current(t, call.path[self.word]))

    def listed(self, call: Call, t: Transaction) -> Page[Stored]:
        """Return those on a page: an auditor's are all, others' their own."""
        admitted = "SELECT name FROM curator_admissions WHERE kind = ? AND member = ?"
        return self._rows.page(
            *(t, call.query, "name"),
            f"kind = ? AND (? = 'auditor' OR owner = ? OR name IN ({admitted}))",
            *(self.word, call.caller.role, call.who, self.word, call.who),
        )

    def files(self, t: Transaction, *names: str) -> list[str]:
        """Return the files of the vault that any of them has under some names of `made`."""
        found = self._rows.all(t, "kind = ?", self.word)
        return [one.made[name] for one in found for name in names if name in one.made]

    def update(self, t: Transaction, stored: Stored, **made: Any) -> None:
        """Write down what has become of one, beside what had before."""
        self.write(t, stored.name, stored.asked, {**stored.made, **made})

    def write(self, t: Transaction, name: str, asked: Any, made: dict[str, Any]) -> None:
        """Write one as it is now."""
        self._rows.update(t, {"kind": self.word, "name": name}, asked=asked, made=made)

    def withdraw(self, t: Transaction, stored: Stored, who: str) -> None:
        """Forget one that was never used, and who was admitted to it."""
        which = {"kind": self.word, "name": stored.name}
        for one in _ADMISSIONS.all(t, "kind = ? AND name = ?", *which.values()):
            _ADMISSIONS.delete(t, **which, member=one.member)
        self._rows.delete(t, **which)
        t.note("act", f"withdrew {self.word} {stored.name}", who)

    def admit(self, call: Call, t: Transaction) -> None:
        """Let a member use one, as far as her role goes."""
        name, member = call.path[self.word], call.path["member"]
        _ADMISSIONS.add(t, Admission(self.word, name, member))
        t.note("act", f"admitted {member} to {self.word} {name}", call.who)

    def admitted(self, t: Transaction, stored: Stored, caller: Caller) -> list[str]:
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
