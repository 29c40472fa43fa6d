"""The host names that requests may use, and the headers that proxies may set.

A request for any other host name is refused. Otherwise a hostile site could point its own name at
this machine (DNS rebinding), and its pages would share the curator's origin.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quiltwork.service.problems import Problem, problem_response
from quiltwork.service.settings import LOOPBACK, Settings

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@/\[\]]+))(?::\d{1,5})?")


PROXY_USER = "quiltwork.user"
"""The scope's key for the member whom a trusted proxy has signed in."""


class HostMiddleware:
    """ASGI middleware that admits allowed host names and reads the headers of trusted proxies.

    `X-Forwarded-Proto` is believed from proxies of this machine or of a configured address, the
    header that names a signed-in user from configured addresses only. The user header is removed
    from every request, so nothing behind this layer can read a forged one.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Wrap the application."""
        self._app, self._names = app, {name.lower() for name in settings.allowed_hosts}
        self._proxies, self._header = settings.proxies, settings.user_header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and host_of(Headers(scope=scope)) not in self._names:
            problem = Problem(
                421,
                "bad-request",
                "This curator does not answer under this host name; its operator allows names "
                "with --allow-host.",
            )
            await problem_response(problem)(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(self._without_proxy_headers(scope), receive, send)
        else:
            await self._app(scope, receive, send)

    def _without_proxy_headers(self, scope: Scope) -> Scope:
        """Return the scope with what trusted proxies state, and without the user header."""
        peer, headers = (scope.get("client") or ("",))[0], scope["headers"]
        changes = {"headers": [header for header in headers if header[0].lower() != self._header]}
        users = [text for name, text in headers if name.lower() == self._header]
        # Two such headers may mean that a client smuggled one past the proxy: neither counts.
        if self._header and peer in self._proxies and len(users) == 1:
            changes[PROXY_USER] = users[0].decode("latin-1").strip()
        schemes = [text for name, text in headers if name.lower() == b"x-forwarded-proto"]
        if peer in (*LOOPBACK, *self._proxies) and schemes in ([b"https"], [b"http"]):
            changes["scheme"] = schemes[0].decode()
        return {**scope, **changes}


def host_of(headers: Headers) -> str:
    """Return the host name of a request without its port; "" for a malformed one.

    >>> host_of(Headers({"host": "[::1]:8000"})), host_of(Headers({"host": "Localhost:80"}))
    ('::1', 'localhost')
    """
    host = _HOST.fullmatch(headers.get("host", "").lower())
    return "" if host is None else host[1] or host[2]
