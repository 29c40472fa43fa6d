"""The request pipeline, shared by the API and the dashboard: admit, read, run, answer.

Whatever can be refused without a lookup is refused first: a malformed token, an oversized body.
After that one worker thread authenticates the caller, checks her rights and does the work, so the
event loop never waits for a database or a computation. An adapter holds what differs between the
API and pages; refusals, faults, metrics and the access log are common to both.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from quiltwork.service.problems import Problem, problem_of
from quiltwork.service.routes import Service

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
Work: TypeAlias = Callable[[], Response]

_log = logging.getLogger("quiltwork.service")
_access = logging.getLogger("quiltwork.access")


class Metrics:
    """Request counts and durations by route, for Prometheus; used by one event loop.

    They describe requests only: never a value, a member or a dataset.
    """

    def __init__(self) -> None:
        """Start all counters at zero."""
        self._responses: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def record(self, route: str, status: int, seconds: float) -> None:
        """Count one response."""
        self._responses[route, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Return the counters in Prometheus' text format."""
        lines = ["# TYPE quiltwork_requests_total counter"]
        lines += [
            f'quiltwork_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._responses.items())
        ]
        lines.append("# TYPE quiltwork_request_seconds_total counter")
        lines += [
            f'quiltwork_request_seconds_total{{route="{route}"}} {seconds:.6f}'
            for route, seconds in sorted(self._seconds.items())
        ]
        return "\n".join([*lines, ""])


class RequestAdapter(Protocol):
    """The steps of the pipeline that the API and the dashboard do differently."""

    def label(self, request: Request) -> tuple[str, str]:
        """Return the route's name and its path template, which hold no values."""

    async def admit(self, request: Request) -> tuple[str, bool]:
        """Return the token that limits are counted for, and whether a file is being uploaded.

        Raises a `Problem` for requests that cannot be authenticated or are too large.
        """

    async def prepare(self, request: Request) -> Work:
        """Read the body; return the work to be done in a thread."""

    def refusal(self, request: Request, problem: Problem) -> Response:
        """Return the response that states a problem."""


def endpoint(service: Service, adapter: RequestAdapter, metrics: Metrics) -> Endpoint:
    """Return the function that Starlette calls for a request."""

    async def respond(request: Request) -> Response:
        start = time.perf_counter()
        try:
            token, file = await adapter.admit(request)
            async with service.concurrency.slot(token, file=file):
                work = await adapter.prepare(request)
                reads = request.method in ("GET", "HEAD")
                response = await service.concurrency.run(work, token, file=file, reads=reads)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception as error:
            problem = problem_of(error)
            if problem.kind == "internal":
                _log.error("a fault in %s: %s", adapter.label(request)[0], _origin(error))
            response = adapter.refusal(request, problem)
        name, path = adapter.label(request)
        seconds = time.perf_counter() - start
        metrics.record(name, response.status_code, seconds)
        _access.info("%s %s %d %.0f ms", request.method, path, response.status_code, 1000 * seconds)
        return response

    return respond


def _origin(error: BaseException) -> str:
    """Return an error's type, function and line; its message is left out, as it may quote rows."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " at ".join([type(error).__name__, *(f"{at.name}, line {at.lineno}" for at in last)])
