"""Browser sessions: a cookie of 256 random bits, kept as its hash, that stands for a token.

Signing in with a token makes one; signing out, half a day, or the end of the token ends it. The
cookie is HttpOnly and SameSite=Strict, and opens pages only: the API knows no cookies, so nothing
that another site makes a browser send can do anything there. Every form carries a value that only
who can read the cookie can compute.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from quiltwork.budget.ledger.log import now
from quiltwork.service.members import authenticated, caller_by, hashed, member_of
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Service
from quiltwork.service.storage import Schema, TableOf, Transaction


@dataclass(frozen=True)
class StoredSession:
    """A session by the hash of its cookie, and the token, or the proxy's user, it stands for."""

    hash: str
    token: str
    expires: str
    member: str = ""


_SESSIONS = TableOf("curator_sessions", StoredSession, "hash")
SCHEMA = Schema("dashboard", (_SESSIONS,))
SESSION, VISIT = "quiltwork_session", "quiltwork_visit"
"""Names of cookies; a visit is of a browser without a session, for the form to sign in."""
_HOURS = {SESSION: 12, VISIT: 1}


def begin(service: Service, secret: str) -> str | None:
    """Return the cookie of a new session of whoever has this token; None if nobody has."""
    caller = authenticated(service, secret)
    if caller is None:
        return None
    return _begun(service, caller.token, "", caller.member, f"by token {caller.token}")


def begin_as(service: Service, user: str) -> str:
    """Return the cookie of a new session of whom a proxy signed in; "" for who is no member."""
    if member_of(service, user) is None:
        return ""
    return _begun(service, "", user, user, "at the proxy")


def _begun(service: Service, token: str, member: str, who: str, how: str) -> str:
    cookie, at = secrets.token_hex(32), now()
    expires = (datetime.now(UTC) + timedelta(hours=_HOURS[SESSION])).isoformat(timespec="seconds")

    def work(t: Transaction) -> None:
        t.rows("DELETE FROM curator_sessions WHERE expires <= ?", at)
        _SESSIONS.add(t, StoredSession(hashed(cookie), token, expires, member))
        t.note("act", f"signed in to the dashboard {how}", who)

    service.write(work)
    return cookie


def caller_with(service: Service, cookie: str, user: str = "") -> Caller | None:
    """Return who has this session; None once it, its token or its member's time has ended.

    A session that a proxy began is good only while the proxy says of every request that it is its
    `user`'s: signing out there ends it here, and a stolen cookie alone opens nothing.
    """

    def work(t: Transaction) -> Caller | None:
        found = _SESSIONS.one(t, hash=hashed(cookie)) if cookie else None
        if found is None or found.expires <= now():
            return None
        if found.token:
            return caller_by(service, "id", found.token)
        member = member_of(service, found.member) if found.member == user else None
        return None if member is None else Caller(user, member.role, f"at the proxy: {user}")

    return service.read(work)


def end(service: Service, cookie: str) -> None:
    """Forget a session."""
    service.write(lambda t: _SESSIONS.delete(t, hash=hashed(cookie)))


def form_value(cookie: str) -> str:
    """Return what a form must carry to come from a page that this cookie was shown."""
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


def cookie_of(request: Request, name: str = SESSION) -> str:
    """Return a cookie, "" without one."""
    return request.cookies.get(_named(request, name), "")


def set_cookie(request: Request, response: Response, value: str, name: str = SESSION) -> None:
    """Give the browser a session or a visit, or take it away if the value is empty."""
    response.set_cookie(
        _named(request, name),
        value,
        max_age=_HOURS[name] * 3600 if value else 0,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _named(request: Request, name: str) -> str:
    """With TLS, a prefix by which the browser refuses cookies that another host has set."""
    return f"__Host-{name}" if request.url.scheme == "https" else name
