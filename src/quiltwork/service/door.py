"""What stands before every request: names that are answered to, places, pace, and counts.

A page of another name is not taken for the curator's own: else a site could let its own name point
to this machine (DNS rebinding), and its pages would be of the same origin. One token holds at most
half of the places, for questions and for files; what is more waits, and is not read meanwhile. A
body that stops coming, or drips, gives its place back, so that nobody keeps all others waiting.
Counts for Prometheus are of requests: never a value, a name or a dataset.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from quiltwork.service.problems import Problem, problem_response
from quiltwork.service.settings import LOOPBACK, Limits, Settings

_SLOWEST = 20_000
"""Bytes a second, on average, from a body that is taken."""


class Turns:
    """Who may be at work at the same time; used by one event loop."""

    def __init__(self, limits: Limits) -> None:
        """Take how many requests, and how many files, are worked on at once."""
        self.threads = anyio.CapacityLimiter(math.inf)
        """For threads of those who have a place."""
        self._files = anyio.CapacityLimiter(limits.uploads)
        self._half = {False: max(1, limits.threads // 2), True: max(1, limits.uploads // 2)}
        self._own: WeakValueDictionary[tuple[str, bool], anyio.CapacityLimiter] = (
            WeakValueDictionary()
        )

    @asynccontextmanager
    async def of(self, token: str, *, file: bool) -> AsyncIterator[None]:
        """Wait for a place among those of one token, and with a file for one among all."""
        fresh = anyio.CapacityLimiter(self._half[file])
        async with self._own.setdefault((token, file), fresh):
            if not file:
                yield
                return
            async with self._files:
                yield


async def paced(
    stream: AsyncIterator[bytes], most: int, pause: float
) -> AsyncGenerator[bytes, None]:
    """Pass on a body; 408 if it stops for a `pause` or drips, 413 if it has over `most` bytes."""
    begun, size = time.monotonic(), 0
    while True:
        try:
            with anyio.fail_after(pause):
                part = await anext(stream, None)
        except TimeoutError:
            raise _too_slow() from None
        if part is None:
            return
        size += len(part)
        if size > most:
            raise too_large(most)
        if time.monotonic() - begun > pause + size / _SLOWEST:
            raise _too_slow()
        yield part


def media_type_of(request: Request) -> str:
    """Return what kind of body a request says it has."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def too_large(most: int) -> Problem:
    """What is said of a body with more bytes than are taken."""
    return Problem(413, "too-large", f"A body may have {most:,} bytes here.")


def _too_slow() -> Problem:
    return Problem(408, "too-slow", "It comes too slowly, or stopped coming; send it again.")


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


class Metrics:
    """Counts of answers by route and status, and the seconds they took; used by one event loop."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def saw(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._answers[route, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Write them in the text format of Prometheus."""
        lines = ["# TYPE quiltwork_requests_total counter"]
        lines += [
            f'quiltwork_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._answers.items())
        ]
        lines.append("# TYPE quiltwork_request_seconds_total counter")
        lines += [
            f'quiltwork_request_seconds_total{{route="{route}"}} {seconds:.6f}'
            for route, seconds in sorted(self._seconds.items())
        ]
        return "\n".join([*lines, ""])
