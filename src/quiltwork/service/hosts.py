"""Under which names requests may come in, and what proxies may say of them.

A page of another name is not taken for the curator's own: else a site could let its own name point
to this machine (DNS rebinding), and its pages would be of the same origin.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quiltwork.service.problems import Problem, problem_response
from quiltwork.service.settings import LOOPBACK, Settings

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@/\[\]]+))(?::\d{1,5})?")


PROXY_USER = "quiltwork.user"
"""In the scope of a request: whom a proxy that is trusted has signed in."""


class Entrance:
    """Passes on what comes in under an allowed name, and refuses everything else.

    What a proxy says of a request is taken from proxies alone: from those of this machine whether
    it was encrypted, and who has signed in from those whose addresses the operator names. The
    header that says so is dropped from every request, so nothing behind reads it.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Take the application and what it is started with."""
        self._app, self._names = app, {name.lower() for name in settings.allowed_hosts}
        self._proxies, self._header = settings.proxies, settings.user_header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and host_of(Headers(scope=scope)) not in self._names:
            problem = Problem(
                421,
                "bad-request",
                "This curator does not answer under that name; its operator allows names with "
                "--allow-host.",
            )
            await problem_response(problem)(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(self._read(scope), receive, send)
        else:
            await self._app(scope, receive, send)

    def _read(self, scope: Scope) -> Scope:
        """Return the scope with what proxies say, and without their headers."""
        peer, headers = (scope.get("client") or ("",))[0], scope["headers"]
        told = {"headers": [one for one in headers if one[0].lower() != self._header]}
        users = [text for name, text in headers if name.lower() == self._header]
        if self._header and peer in self._proxies and len(users) == 1:
            told[PROXY_USER] = users[0].decode("latin-1").strip()
        schemes = [text for name, text in headers if name.lower() == b"x-forwarded-proto"]
        if peer in (*LOOPBACK, *self._proxies) and schemes in ([b"https"], [b"http"]):
            told["scheme"] = schemes[0].decode()
        return {**scope, **told}


def host_of(headers: Headers) -> str:
    """Return the name that a request is for, without the port; "" for what is no name.

    >>> host_of(Headers({"host": "[::1]:8000"})), host_of(Headers({"host": "Localhost:80"}))
    ('::1', 'localhost')
    """
    named = _HOST.fullmatch(headers.get("host", "").lower())
    return "" if named is None else named[1] or named[2]
