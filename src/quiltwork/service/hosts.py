"""Names under which a curator answers: a page of another name is not taken for its own.

Without this, a site could let its own name point to this machine (DNS rebinding), and its pages
would be of the same origin as the curator's.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quiltwork.service.problems import Problem, problem_response

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@/\[\]]+))(?::\d{1,5})?")


class AllowedHosts:
    """Passes on what comes in under an allowed name, and refuses everything else."""

    def __init__(self, app: ASGIApp, names: tuple[str, ...]) -> None:
        """Take the application and the names."""
        self._app, self._names = app, {name.lower() for name in names}

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
        else:
            await self._app(scope, receive, send)


def host_of(headers: Headers) -> str:
    """Return the name that a request is for, without the port; "" for what is no name.

    >>> host_of(Headers({"host": "[::1]:8000"})), host_of(Headers({"host": "Localhost:80"}))
    ('::1', 'localhost')
    """
    named = _HOST.fullmatch(headers.get("host", "").lower())
    return "" if named is None else named[1] or named[2]
