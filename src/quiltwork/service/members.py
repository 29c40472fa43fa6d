"""Members and their tokens: who somebody is, and what a token may do for her.

A token is `qwk_`, 64 hexadecimal digits of 256 random bits, and 8 of their CRC-32: a scanner finds
it in a file, and what is mistyped is refused without asking the database. It is shown once and kept
as a plain SHA-256, which is enough for what cannot be guessed. Times of last use are kept in memory
and written now and then, so that asking costs no write; a crash forgets half a minute of them.
Revoking, removing and expiring take effect at once.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import anyio
from msgspec import Meta

from quiltwork.budget.ledger.log import now
from quiltwork.errors import InvalidInputError
from quiltwork.service.problems import Problem
from quiltwork.service.rights import RIGHTS, Caller, Role
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, Text, shown_as

_SECONDS_BETWEEN_WRITES = 30


_OF_MEMBER = "/v1/members/{member}"


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


class StoredToken(Token, frozen=True):
    """A token at rest, by the hash of its secret."""

    hash: str = ""


_MEMBERS = TableOf("curator_members", Member, "name")
_TOKENS = TableOf("curator_tokens", StoredToken, "id", unique=("hash",))
FEATURE = Feature(
    Schema(
        "members",
        (_MEMBERS, _TOKENS),
        ("CREATE INDEX curator_tokens_of ON curator_tokens (member)",),
    )
)


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
    found = caller_by(service, "hash", hashed(secret))
    if found is not None:
        service.uses[found.token] = now()
    return found


def caller_by(service: Service, column: Literal["id", "hash"], value: str) -> Caller | None:
    """Return whose token has this value; None for one that is expired, revoked or unknown."""
    found = service.read(
        lambda t: t.row(
            "SELECT t.member, m.role, t.id, t.datasets, t.actions, t.expires "  # noqa: S608
            "FROM curator_tokens t JOIN curator_members m ON m.name = t.member "
            f"WHERE t.{column} = ? AND t.revoked IS NULL AND m.removed IS NULL",
            value,
        )
    )
    if found is None or found[5] <= now():
        return None
    narrowed = (None if text is None else frozenset(json.loads(text)) for text in found[3:5])
    return Caller(*found[:3], *narrowed)


def member_of(service: Service, name: str) -> Member | None:
    """Return a member who was not removed."""
    found = service.read(lambda t: _MEMBERS.one(t, name=name))
    return None if found is None or found.removed else found


def invite(service: Service, name: str, role: Role, by: str) -> Member:
    """Add a member; 409 if there is, or was, one of this name: it is never given away again."""
    made = Member(name=name, role=role, invited_by=by, created=now())

    def work(t: Transaction) -> None:
        if _MEMBERS.one(t, name=name) not in (None, made):
            raise Problem(409, "conflict", f"There is, or was, a member {name!r}; names stay.")
        _MEMBERS.add(t, made)
        t.note("act", f"invited {name} as {role}", by)

    service.write(work)
    return made


def issue(
    service: Service,
    member: str,
    by: str,
    asked: NewToken,
    latest: str | None = None,
) -> IssuedToken:
    """Make a token for a member, until `latest` at most; its secret is kept nowhere."""
    secret = new_token()
    expires = (datetime.now(UTC) + timedelta(days=asked.days)).isoformat(timespec="seconds")
    token = StoredToken(
        id=secrets.token_hex(8),
        hash=hashed(secret),
        member=member,
        label=asked.label,
        created=now(),
        expires=expires if latest is None else min(expires, latest),
        datasets=asked.datasets,
        actions=asked.actions,
    )

    def work(t: Transaction) -> None:
        _TOKENS.add(t, token)
        t.note("act", f"made token {token.id} for {member}, until {token.expires}", by)

    service.write(work)
    return IssuedToken(secret=secret, token=shown_as(Token, token))


def first_owner(service: Service, name: str) -> str | None:
    """Make the first owner and a token for her; None if there are members already."""
    if service.read(lambda t: t.row("SELECT name FROM curator_members")) is not None:
        return None
    invite(service, name, "owner", name)
    return issue(service, name, name, NewToken(label="first token", days=365)).secret


def write_uses(service: Service) -> None:
    """Write the times of last use that have gathered."""
    gathered = {token: service.uses.pop(token) for token in list(service.uses)}

    def work(t: Transaction) -> None:
        for token, at in gathered.items():
            _TOKENS.update(t, {"id": token}, used=at)

    if gathered:
        service.write(work)


def member_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a member is the caller, or was invited by her."""
    found = member_of(service, name)
    return None if found is None else caller.member in (found.name, found.invited_by)


def token_is_own(service: Service, caller: Caller, token: str) -> bool | None:
    """Whether a token is the caller's, or of somebody whom she invited."""
    found = service.read(lambda t: _TOKENS.one(t, id=token))
    return None if found is None else member_is_own(service, caller, found.member)


FEATURE.belongs.update(member=member_is_own, token=token_is_own)


@FEATURE.at("GET", "/v1/me", "self.read")
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


@FEATURE.at("POST", "/v1/members", "member.create", request=NewMember, status=201)
def _invite_member(call: Call) -> Member:
    """Invite somebody, in one role."""
    return invite(call.service, call.body.name, call.body.role, call.who)


@FEATURE.at("GET", "/v1/members", "member.list", query=PageQuery)
def _list_members(call: Call, t: Transaction) -> Page[Member]:
    """List yourself and those whom you invited."""
    own = "name = ? OR invited_by = ?"
    return _MEMBERS.page(t, call.query, "name", own, call.who, call.who)


@FEATURE.at("DELETE", _OF_MEMBER, "member.remove", status=204)
def _remove_member(call: Call, t: Transaction) -> None:
    """Remove somebody whom you invited, with all tokens."""
    name, at = call.path["member"], now()
    if name == call.who:
        raise InvalidInputError("Nobody can remove herself: a curator would be without an owner.")
    _MEMBERS.update(t, {"name": name}, removed=at)
    t.rows("UPDATE curator_tokens SET revoked = ? WHERE member = ? AND revoked IS NULL", at, name)
    t.note("act", f"removed {name}", call.who)


@FEATURE.at("POST", f"{_OF_MEMBER}/tokens", "token.create", request=NewToken, status=201)
def _make_token(call: Call) -> IssuedToken:
    """Make a token for yourself or somebody whom you invited; it is shown once."""
    asked, caller = call.body, call.caller
    unknown = sorted(set(asked.actions or ()) - RIGHTS.keys())
    if unknown:
        raise InvalidInputError(f"There is no action {unknown[0]!r}; GET /v1/me lists yours.")
    if caller.actions is not None and not set(asked.actions or RIGHTS) <= caller.actions:
        raise Problem(403, "forbidden", "A narrowed token makes only tokens as narrow.")
    latest = None
    if caller.actions is not None:  # what a narrowed token makes ends with it
        latest = call.service.read(lambda t: _TOKENS.named(t, id=caller.token)).expires
    return issue(call.service, call.path["member"], caller.member, asked, latest)


@FEATURE.at("GET", f"{_OF_MEMBER}/tokens", "token.list", query=PageQuery)
def _list_tokens(call: Call, t: Transaction) -> Page[Token]:
    """List tokens, with their last use."""
    uses = call.service.uses
    found = _TOKENS.page(t, call.query, "id", "member = ?", call.path["member"])
    return found.shown(lambda one: shown_as(Token, one, used=uses.get(one.id, one.used)))


@FEATURE.at("DELETE", f"{_OF_MEMBER}/tokens/{{token}}", "token.revoke", status=204)
def _revoke_token(call: Call, t: Transaction) -> None:
    """Revoke a token, at once."""
    found = _TOKENS.named(t, id=call.path["token"], member=call.path["member"])
    if found.revoked is None:
        _TOKENS.update(t, {"id": found.id}, revoked=now())
    t.note("act", f"revoked token {found.id} of {found.member}", call.who)


async def _keep_writing(service: Service) -> None:
    while True:
        await anyio.sleep(_SECONDS_BETWEEN_WRITES)
        await anyio.to_thread.run_sync(write_uses, service)


@asynccontextmanager
async def noted_uses(service: Service) -> AsyncIterator[None]:
    """Write times of last use during a block, and at its end."""
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_writing, service)
        yield
        group.cancel_scope.cancel()
    write_uses(service)


PREFIX = "qwk_"
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{64}})([0-9a-f]{{8}})")


def new_token() -> str:
    """Return a new token; it is never stored as it is.

    >>> is_token(new_token()), is_token("qwk_" + 72 * "0")
    (True, False)
    """
    body = secrets.token_hex(32)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether a text has the shape and the checksum of a token; asks nobody."""
    found = _SHAPE.fullmatch(text)
    return found is not None and _checksum(found[1]) == found[2]


def hashed(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
