"""Browser sessions: a random cookie of 256 bits, stored as its hash, that stands for a token.

Signing in with a token starts a session; signing out, twelve hours, or the token's end closes it.
The cookie is HttpOnly and SameSite=Strict and is good for pages only: the API ignores cookies, so
no request that another site makes a browser send has any effect there. Every form carries a value
derived from the cookie (CSRF token).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from quiltwork.budget.ledger.entries import now
from quiltwork.service.members import authenticated, caller_by, hashed, member_of
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Service
from quiltwork.service.storage import Schema, TableOf, Transaction


@dataclass(frozen=True)
class StoredSession:
    """A session by the hash of its cookie, with its token or the member that a proxy signed in."""

    hash: str
    token: str
    expires: str
    member: str = ""


_SESSIONS = TableOf("curator_sessions", StoredSession, "hash")
SCHEMA = Schema("dashboard", (_SESSIONS,))
SESSION, PRE_SESSION = "quiltwork_session", "quiltwork_visit"
"""Names of cookies; the second protects the sign-in form of a browser without a session."""
_HOURS = {SESSION: 12, PRE_SESSION: 1}


def begin(service: Service, secret: str) -> str | None:
    """Start a session for a token and return its cookie; None if the token is not valid."""
    caller = authenticated(service, secret)
    if caller is None:
        return None
    return _start(service, caller.token, "", caller.member, f"by token {caller.token}")


def begin_as(service: Service, user: str) -> str:
    """Start a session for a user signed in by the proxy; "" if she is not a member."""
    if member_of(service, user) is None:
        return ""
    return _start(service, "", user, user, "at the proxy")


def _start(service: Service, token: str, member: str, who: str, how: str) -> str:
    cookie, at = secrets.token_hex(32), now()
    expires = (datetime.now(UTC) + timedelta(hours=_HOURS[SESSION])).isoformat(timespec="seconds")

    def work(t: Transaction) -> None:
        t.rows("DELETE FROM curator_sessions WHERE expires <= ?", at)
        _SESSIONS.add(t, StoredSession(hashed(cookie), token, expires, member))
        t.note("act", f"signed in to the dashboard {how}", who)

    service.write(work)
    return cookie


def caller_with(service: Service, cookie: str, user: str = "") -> Caller | None:
    """Return the caller of a session; None once the session, its token or its member has expired.

    A session started by a proxy is valid only for requests on which the proxy names the same
    `user`: signing out at the proxy ends it, and a stolen cookie alone is useless.
    """

    def work(t: Transaction) -> Caller | None:
        session = _SESSIONS.find(t, hash=hashed(cookie)) if cookie else None
        if session is None or session.expires <= now():
            return None
        if session.token:
            return caller_by(service, "id", session.token)
        member = member_of(service, session.member) if session.member == user else None
        return None if member is None else Caller(user, member.role, f"at the proxy: {user}")

    return service.read(work)


def end(service: Service, cookie: str) -> None:
    """Delete a session."""
    service.write(lambda t: _SESSIONS.delete(t, hash=hashed(cookie)))


def form_value(cookie: str) -> str:
    """Return the CSRF token of forms on pages shown to this cookie."""
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


def cookie_of(request: Request, name: str = SESSION) -> str:
    """Return the value of a cookie, "" without one."""
    return request.cookies.get(_cookie_name(request, name), "")


def set_cookie(request: Request, response: Response, value: str, name: str = SESSION) -> None:
    """Set a cookie on a response; an empty value deletes it."""
    response.set_cookie(
        _cookie_name(request, name),
        value,
        max_age=_HOURS[name] * 3600 if value else 0,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _cookie_name(request: Request, name: str) -> str:
    """Return the name of a cookie; with TLS its prefix keeps subdomains from setting it."""
    return f"__Host-{name}" if request.url.scheme == "https" else name
