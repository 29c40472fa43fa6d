"""Members, and the tokens by which they are authenticated.

A token is `qwk_`, 64 hexadecimal digits (256 random bits) and 8 digits of their CRC-32: secret
scanners can recognize it, and a mistyped one is refused without a database lookup. It is shown once
and stored as a plain SHA-256, which suffices for a value that cannot be guessed. Times of last use
are collected in memory and written every 30 seconds, so a request costs no write for them; a crash
loses at most that much. Revocation, removal and expiry take effect at once.
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

from quiltwork.budget.ledger.entries import now
from quiltwork.errors import InvalidInputError
from quiltwork.service.problems import Problem
from quiltwork.service.rights import RIGHTS, Caller, Role
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, Text, copy_fields

_SECONDS_BETWEEN_WRITES = 30


_OF_MEMBER = "/v1/members/{member}"


class NewMember(Document, frozen=True):
    """A member to invite."""

    name: Name
    role: Role


class Member(Document, frozen=True):
    """A member of the curator, in one role."""

    name: str
    role: Role
    invited_by: str
    created: str
    removed: str | None = None


class NewToken(Document, frozen=True):
    """A token to make; without datasets or actions it is good for everything its member may do."""

    label: Text = ""
    days: Annotated[int, Meta(ge=1, le=3650)] = 90
    datasets: Annotated[list[Name], Meta(min_length=1, max_length=1000)] | None = None
    actions: Annotated[list[str], Meta(min_length=1, max_length=100)] | None = None


class Token(Document, frozen=True):
    """A token's record, without its secret."""

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
    """A token as it is stored, with the hash of its secret."""

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
    """A new token; `secret` is shown this once and is not stored."""

    secret: str
    token: Token


class Self(Document, frozen=True):
    """The caller, and what her token allows."""

    member: str
    role: Role
    token: str
    actions: list[str]
    datasets: list[str] | None = None


def authenticated(service: Service, secret: str) -> Caller | None:
    """Return the caller of a token; None if it is malformed, unknown, expired or revoked."""
    if not is_token(secret):
        return None
    caller = caller_by(service, "hash", hashed(secret))
    if caller is not None:
        service.last_uses[caller.token] = now()
    return caller


def caller_by(service: Service, column: Literal["id", "hash"], value: str) -> Caller | None:
    """Return the caller whose token has this id or hash; None if it is expired or revoked."""
    row = service.read(
        lambda t: t.row(
            "SELECT t.member, m.role, t.id, t.datasets, t.actions, t.expires "  # noqa: S608
            "FROM curator_tokens t JOIN curator_members m ON m.name = t.member "
            f"WHERE t.{column} = ? AND t.revoked IS NULL AND m.removed IS NULL",
            value,
        )
    )
    if row is None or row[5] <= now():
        return None
    limits = (None if text is None else frozenset(json.loads(text)) for text in row[3:5])
    return Caller(*row[:3], *limits)


def member_of(service: Service, name: str) -> Member | None:
    """Return a member by name; None if there is none, or she was removed."""
    member = service.read(lambda t: _MEMBERS.find(t, name=name))
    return None if member is None or member.removed else member


def invite(service: Service, name: str, role: Role, by: str) -> Member:
    """Add a member; 409 if the name is or was in use, since the audit log must stay unambiguous."""
    invited = Member(name=name, role=role, invited_by=by, created=now())

    def work(t: Transaction) -> None:
        if _MEMBERS.find(t, name=name) not in (None, invited):
            raise Problem(
                409,
                "conflict",
                f"The name {name!r} is or was a member's; names are never reused. Choose another.",
            )
        _MEMBERS.add(t, invited)
        t.note("act", f"invited {name} as {role}", by)

    service.write(work)
    return invited


def issue(
    service: Service,
    member: str,
    by: str,
    new: NewToken,
    latest: str | None = None,
) -> IssuedToken:
    """Make a token for a member, valid until `latest` at most; its secret is not stored."""
    secret = new_token()
    expires = (datetime.now(UTC) + timedelta(days=new.days)).isoformat(timespec="seconds")
    token = StoredToken(
        id=secrets.token_hex(8),
        hash=hashed(secret),
        member=member,
        label=new.label,
        created=now(),
        expires=expires if latest is None else min(expires, latest),
        datasets=new.datasets,
        actions=new.actions,
    )

    def work(t: Transaction) -> None:
        _TOKENS.add(t, token)
        t.note("act", f"made token {token.id} for {member}, until {token.expires}", by)

    service.write(work)
    return IssuedToken(secret=secret, token=copy_fields(Token, token))


def first_owner(service: Service, name: str) -> str | None:
    """Create the first owner and return her token; None if there are members already."""
    if service.read(lambda t: t.row("SELECT name FROM curator_members")) is not None:
        return None
    invite(service, name, "owner", name)
    return issue(service, name, name, NewToken(label="first token", days=365)).secret


def write_last_uses(service: Service) -> None:
    """Write the collected times of last use to the database."""
    collected = {token: service.last_uses.pop(token) for token in list(service.last_uses)}

    def work(t: Transaction) -> None:
        for token, at in collected.items():
            _TOKENS.update(t, {"id": token}, used=at)

    if collected:
        service.write(work)


def member_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a member is the caller or was invited by her."""
    member = member_of(service, name)
    return None if member is None else caller.member in (member.name, member.invited_by)


def token_is_own(service: Service, caller: Caller, token: str) -> bool | None:
    """Whether a token belongs to the caller or to a member whom she invited."""
    stored = service.read(lambda t: _TOKENS.find(t, id=token))
    return None if stored is None else member_is_own(service, caller, stored.member)


FEATURE.ownership.update(member=member_is_own, token=token_is_own)


@FEATURE.at("GET", "/v1/me", "self.read")
def _show_self(call: Call) -> Self:
    """Show who you are and what your token allows."""
    caller = call.caller
    allowed = [action for action, roles in RIGHTS.items() if caller.role in roles]
    return Self(
        member=caller.member,
        role=caller.role,
        token=caller.token,
        actions=[name for name in allowed if caller.actions is None or name in caller.actions],
        datasets=None if caller.datasets is None else sorted(caller.datasets),
    )


@FEATURE.at("POST", "/v1/members", "member.create", request=NewMember, status=201)
def _invite_member(call: Call) -> Member:
    """Invite a member, in one role."""
    return invite(call.service, call.body.name, call.body.role, call.member)


@FEATURE.at("GET", "/v1/members", "member.list", query=PageQuery)
def _list_members(call: Call, t: Transaction) -> Page[Member]:
    """List yourself and the members whom you invited."""
    own = "name = ? OR invited_by = ?"
    return _MEMBERS.page(t, call.query, "name", own, call.member, call.member)


@FEATURE.at("DELETE", _OF_MEMBER, "member.remove", status=204)
def _remove_member(call: Call, t: Transaction) -> None:
    """Remove a member whom you invited, with all tokens."""
    name, at = call.path["member"], now()
    if name == call.member:
        raise InvalidInputError(
            "You cannot remove yourself: the curator might be left without an owner."
        )
    _MEMBERS.update(t, {"name": name}, removed=at)
    t.rows("UPDATE curator_tokens SET revoked = ? WHERE member = ? AND revoked IS NULL", at, name)
    t.note("act", f"removed {name}", call.member)


@FEATURE.at("POST", f"{_OF_MEMBER}/tokens", "token.create", request=NewToken, status=201)
def _make_token(call: Call) -> IssuedToken:
    """Make a token for yourself or a member whom you invited; it is shown once."""
    new, caller = call.body, call.caller
    unknown = sorted(set(new.actions or ()) - RIGHTS.keys())
    if unknown:
        raise InvalidInputError(f"Unknown action {unknown[0]!r}; GET /v1/me lists yours.")
    if caller.actions is not None and not set(new.actions or RIGHTS) <= caller.actions:
        raise Problem(
            403, "forbidden", "A token limited to some actions cannot make one for other actions."
        )
    latest = None
    if caller.actions is not None:  # else a limited token could outlive itself through others
        latest = call.service.read(lambda t: _TOKENS.get(t, id=caller.token)).expires
    return issue(call.service, call.path["member"], caller.member, new, latest)


@FEATURE.at("GET", f"{_OF_MEMBER}/tokens", "token.list", query=PageQuery)
def _list_tokens(call: Call, t: Transaction) -> Page[Token]:
    """List tokens, with the time of their last use."""
    uses = call.service.last_uses
    page = _TOKENS.page(t, call.query, "id", "member = ?", call.path["member"])
    return page.map(lambda token: copy_fields(Token, token, used=uses.get(token.id, token.used)))


@FEATURE.at("DELETE", f"{_OF_MEMBER}/tokens/{{token}}", "token.revoke", status=204)
def _revoke_token(call: Call, t: Transaction) -> None:
    """Revoke a token at once."""
    token = _TOKENS.get(t, id=call.path["token"], member=call.path["member"])
    if token.revoked is None:
        _TOKENS.update(t, {"id": token.id}, revoked=now())
    t.note("act", f"revoked token {token.id} of {token.member}", call.member)


async def _write_periodically(service: Service) -> None:
    while True:
        await anyio.sleep(_SECONDS_BETWEEN_WRITES)
        await anyio.to_thread.run_sync(write_last_uses, service)


@asynccontextmanager
async def recording_last_uses(service: Service) -> AsyncIterator[None]:
    """Write times of last use periodically during a block, and once at its end."""
    async with anyio.create_task_group() as group:
        group.start_soon(_write_periodically, service)
        yield
        group.cancel_scope.cancel()
    write_last_uses(service)


PREFIX = "qwk_"
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{64}})([0-9a-f]{{8}})")


def new_token() -> str:
    """Return a new random token; only its hash is ever stored.

    >>> is_token(new_token()), is_token("qwk_" + 72 * "0")
    (True, False)
    """
    body = secrets.token_hex(32)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether a text has the form and the checksum of a token; makes no lookup."""
    match = _SHAPE.fullmatch(text)
    return match is not None and _checksum(match[1]) == match[2]


def hashed(token: str) -> str:
    """Return the SHA-256 under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
