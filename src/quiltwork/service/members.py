"""Members and their tokens: who somebody is, and what a token may do for her.

Times of last use are kept in memory and written now and then, so that asking costs no write; a
crash forgets half a minute of them. Revoking, removing and expiring take effect at once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import anyio
import msgspec
from msgspec import Meta

from quiltwork.budget.ledger.tables import now
from quiltwork.errors import InvalidInputError
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.rights import RIGHTS, Caller, Role
from quiltwork.service.routes import Call, Feature, Routes, Service
from quiltwork.service.storage import Schema, Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, Text, paged
from quiltwork.service.tokens import hashed, is_token, new_token

SCHEMA = Schema(
    "members",
    (
        (
            """CREATE TABLE curator_members (
                name TEXT NOT NULL PRIMARY KEY,
                role TEXT NOT NULL,
                invited_by TEXT NOT NULL,
                created TEXT NOT NULL,
                removed TEXT
            )""",
            """CREATE TABLE curator_tokens (
                id TEXT NOT NULL PRIMARY KEY,
                hash TEXT NOT NULL UNIQUE,
                member TEXT NOT NULL,
                label TEXT NOT NULL,
                created TEXT NOT NULL,
                expires TEXT NOT NULL,
                revoked TEXT,
                used TEXT,
                datasets TEXT,
                actions TEXT
            )""",
            "CREATE INDEX curator_tokens_of ON curator_tokens (member)",
        ),
    ),
)
_SECONDS_BETWEEN_WRITES = 30
_LISTED = "SELECT id, member, label, created, expires, revoked, used, datasets, actions"


_OF_MEMBER = "/v1/members/{member}"
_routes = Routes()


class NewMember(Document, frozen=True):
    """Somebody to invite."""

    name: Name
    role: Role


class Member(Document, frozen=True):
    """Somebody who may ask something of the curator."""

    name: str
    role: Role
    invited_by: str
    created: str
    removed: str | None = None


class NewToken(Document, frozen=True):
    """What a token is to be for; without datasets or actions, for all of its member's."""

    label: Text = ""
    days: Annotated[int, Meta(ge=1, le=3650)] = 90
    datasets: Annotated[list[Name], Meta(min_length=1, max_length=1000)] | None = None
    actions: Annotated[list[str], Meta(min_length=1, max_length=100)] | None = None


class Token(Document, frozen=True):
    """A token, without what would let anybody use it."""

    id: str
    member: str
    label: str
    created: str
    expires: str
    revoked: str | None = None
    used: str | None = None
    datasets: list[str] | None = None
    actions: list[str] | None = None


class IssuedToken(Document, frozen=True):
    """A new token: `secret` is shown this once and kept nowhere."""

    secret: str
    token: Token


class Self(Document, frozen=True):
    """Who the caller is, and what the token allows."""

    member: str
    role: Role
    token: str
    actions: list[str]
    datasets: list[str] | None = None


def authenticated(service: Service, secret: str) -> Caller | None:
    """Return whose token this is; None for what is no token, expired, revoked or unknown."""
    if not is_token(secret):
        return None
    found = service.storage.read(
        lambda t: t.row(
            "SELECT t.id, t.member, m.role, t.expires, t.datasets, t.actions "
            "FROM curator_tokens t JOIN curator_members m ON m.name = t.member "
            "WHERE t.hash = ? AND t.revoked IS NULL AND m.removed IS NULL",
            hashed(secret),
        )
    )
    at = now()
    if found is None or found[3] <= at:
        return None
    token, member, role, _, datasets, actions = found
    service.uses[token] = at
    return Caller(member, role, token, listed_names(datasets), listed_names(actions))


def member_of(service: Service, name: str) -> Member | None:
    """Return a member who was not removed."""
    found = service.storage.read(
        lambda t: t.row(
            "SELECT name, role, invited_by, created FROM curator_members "
            "WHERE name = ? AND removed IS NULL",
            name,
        )
    )
    return None if found is None else Member(**_row(Member, found))


def invite(service: Service, name: str, role: Role, by: str) -> Member:
    """Add a member; 409 if there is, or was, one of this name: it is never given away again."""
    made = Member(name=name, role=role, invited_by=by, created=now())

    def work(t: Transaction) -> None:
        old = t.row("SELECT role, invited_by, created FROM curator_members WHERE name = ?", name)
        if old is not None and tuple(old) != (role, by, made.created):
            raise Problem(409, "conflict", f"There is, or was, a member {name!r}; names stay.")
        t.insert("curator_members", name=name, role=role, invited_by=by, created=made.created)
        t.note("act", f"invited {name} as {role}", by)

    service.storage.write(work)
    return made


def issue(
    service: Service,
    member: str,
    by: str,
    label: str = "",
    days: int = 90,
    datasets: list[str] | None = None,
    actions: list[str] | None = None,
    latest: str | None = None,
) -> IssuedToken:
    """Make a token for a member, until `latest` at most; its secret is kept nowhere."""
    secret = new_token()
    expires = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
    expires = expires if latest is None else min(expires, latest)
    row: dict[str, Any] = {
        "id": secrets.token_hex(8),
        "member": member,
        "label": label,
        "created": now(),
        "expires": expires,
    }
    token = Token(**row, datasets=datasets, actions=actions)
    narrowed = {"datasets": datasets, "actions": actions}
    row |= {name: json.dumps(part) for name, part in narrowed.items() if part is not None}

    def work(t: Transaction) -> None:
        t.insert("curator_tokens", hash=hashed(secret), **row)
        t.note("act", f"made token {token.id} for {member}, until {expires}", by)

    service.storage.write(work)
    return IssuedToken(secret=secret, token=token)


def first_owner(service: Service, name: str) -> str | None:
    """Make the first owner and a token for her; None if there are members already."""
    if service.storage.read(lambda t: t.row("SELECT name FROM curator_members")) is not None:
        return None
    invite(service, name, "owner", name)
    return issue(service, name, name, "first token", days=365).secret


def write_uses(service: Service) -> None:
    """Write the times of last use that have gathered."""
    gathered = {token: service.uses.pop(token) for token in list(service.uses)}

    def work(t: Transaction) -> None:
        for token, at in gathered.items():
            t.update("curator_tokens", {"id": token}, used=at)

    if gathered:
        service.storage.write(work)


def member_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a member is the caller, or was invited by her."""
    found = member_of(service, name)
    return None if found is None else caller.member in (found.name, found.invited_by)


def token_is_own(service: Service, caller: Caller, token: str) -> bool | None:
    """Whether a token is the caller's, or of somebody whom she invited."""
    found = service.storage.read(
        lambda t: t.row("SELECT member FROM curator_tokens WHERE id = ?", token)
    )
    return None if found is None else member_is_own(service, caller, found[0])


@_routes.at("GET", "/v1/me", "self.read")
def _show_self(call: Call) -> Self:
    """Say who is asking."""
    caller = call.caller
    allowed = [action for action, roles in RIGHTS.items() if caller.role in roles]
    return Self(
        member=caller.member,
        role=caller.role,
        token=caller.token,
        actions=[one for one in allowed if caller.actions is None or one in caller.actions],
        datasets=None if caller.datasets is None else sorted(caller.datasets),
    )


@_routes.at("POST", "/v1/members", "member.create", request=NewMember, status=201)
def _invite_member(call: Call) -> Member:
    """Invite somebody, in one role."""
    return invite(call.service, call.body.name, call.body.role, call.caller.member)


@_routes.at("GET", "/v1/members", "member.list", query=PageQuery)
def _list_members(call: Call) -> Page[Member]:
    """List yourself and those whom you invited."""
    found = call.service.storage.read(
        lambda t: t.rows(
            "SELECT name, role, invited_by, created, removed FROM curator_members "
            "WHERE (name = ? OR invited_by = ?) AND name > ? ORDER BY name LIMIT ?",
            *(call.caller.member, call.caller.member),
            *(call.query.after or "", call.query.limit + 1),
        )
    )
    items = [Member(**_row(Member, row)) for row in found]
    return paged(items, call.query.limit, lambda one: one.name)


@_routes.at("DELETE", _OF_MEMBER, "member.remove", status=204)
def _remove_member(call: Call) -> None:
    """Remove somebody whom you invited, with all tokens."""
    name, at = call.path["member"], now()
    if name == call.caller.member:
        raise InvalidInputError("Nobody can remove herself: a curator would be without an owner.")

    def work(t: Transaction) -> None:
        t.update("curator_members", {"name": name}, removed=at)
        t.rows(
            "UPDATE curator_tokens SET revoked = ? WHERE member = ? AND revoked IS NULL", at, name
        )
        t.note("act", f"removed {name}", call.caller.member)

    call.service.storage.write(work)


@_routes.at("POST", f"{_OF_MEMBER}/tokens", "token.create", request=NewToken, status=201)
def _make_token(call: Call) -> IssuedToken:
    """Make a token for yourself or somebody whom you invited; it is shown once."""
    asked, caller = call.body, call.caller
    unknown = sorted(set(asked.actions or ()) - RIGHTS.keys())
    if unknown:
        raise InvalidInputError(f"There is no action {unknown[0]!r}; GET /v1/me lists yours.")
    if caller.actions is not None and not set(asked.actions or RIGHTS) <= caller.actions:
        raise Problem(403, "forbidden", "A narrowed token makes only tokens as narrow.")
    return issue(
        call.service,
        call.path["member"],
        caller.member,
        asked.label,
        asked.days,
        asked.datasets,
        asked.actions,
        None if caller.actions is None else _end(call.service, caller),
    )


def _end(service: Service, caller: Caller) -> str:
    """When the caller's token ends; one that is made with a narrowed token ends with it."""
    found = service.storage.read(
        lambda t: t.row("SELECT expires FROM curator_tokens WHERE id = ?", caller.token)
    )
    return now() if found is None else str(found[0])


@_routes.at("GET", f"{_OF_MEMBER}/tokens", "token.list", query=PageQuery)
def _list_tokens(call: Call) -> Page[Token]:
    """List tokens, with their last use."""
    found = call.service.storage.read(
        lambda t: t.rows(
            f"{_LISTED} FROM curator_tokens WHERE member = ? AND id > ? ORDER BY id LIMIT ?",
            *(call.path["member"], call.query.after or "", call.query.limit + 1),
        )
    )
    items = []
    for *row, datasets, actions in found:
        token = Token(**_row(Token, row), datasets=_listed(datasets), actions=_listed(actions))
        used = call.service.uses.get(token.id, token.used)
        items.append(msgspec.structs.replace(token, used=used))
    return paged(items, call.query.limit, lambda one: one.id)


@_routes.at("DELETE", f"{_OF_MEMBER}/tokens/{{token}}", "token.revoke", status=204)
def _revoke_token(call: Call) -> None:
    """Revoke a token, at once."""
    member, token, at = call.path["member"], call.path["token"], now()

    def work(t: Transaction) -> None:
        if (
            t.row("SELECT id FROM curator_tokens WHERE id = ? AND member = ?", token, member)
            is None
        ):
            raise not_found()
        t.rows("UPDATE curator_tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", at, token)
        t.note("act", f"revoked token {token} of {member}", call.caller.member)

    call.service.storage.write(work)


def _row(kind: type, values: Any) -> dict[str, Any]:
    return dict(zip(kind.__struct_fields__, values, strict=False))  # type: ignore[attr-defined]


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else list(json.loads(text))


def listed_names(text: str | None) -> frozenset[str] | None:
    """Read what a token is narrowed to; None for no limit."""
    return None if text is None else frozenset(json.loads(text))


@asynccontextmanager
async def _running(service: Service) -> AsyncIterator[None]:
    """Write times of last use while the application runs, and at its end."""

    async def keep_writing() -> None:
        while True:
            await anyio.sleep(_SECONDS_BETWEEN_WRITES)
            await anyio.to_thread.run_sync(write_uses, service)

    async with anyio.create_task_group() as group:
        group.start_soon(keep_writing)
        yield
        group.cancel_scope.cancel()
    write_uses(service)


FEATURE = Feature(
    schema=SCHEMA,
    belongs={"member": member_is_own, "token": token_is_own},
    running=_running,
    routes=tuple(_routes),
)
