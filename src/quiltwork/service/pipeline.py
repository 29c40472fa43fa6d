"""One way for every request, of the API and of pages: who asks, a place, the body, the work.

What can be refused without asking anybody is refused first: a token that is none, a body that is
too large. Then one thread recognises the caller, checks her right and does the work, so the event
loop never waits for a database or a computation. What differs between the API and pages is their
`Face`; refusals, faults, counts and the access log are the same for both.
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
    """Counts of answers by route and status, and the seconds they took; used by one event loop.

    Counts for Prometheus are of requests: never a value, a name or a dataset.
    """

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


class Face(Protocol):
    """What requests of one kind have of their own."""

    def named(self, request: Request) -> tuple[str, str]:
        """Return the name of what is asked for, and its path without what stands in it."""

    async def enter(self, request: Request) -> tuple[str, bool]:
        """Return by which token somebody asks, and whether she sends a file; raise for nobody."""

    async def work(self, request: Request) -> Work:
        """Read the body, and return what is to be done in a thread."""

    def refused(self, request: Request, problem: Problem) -> Response:
        """Tell a refusal."""


def endpoint(service: Service, face: Face, metrics: Metrics) -> Endpoint:
    """Return what Starlette calls."""

    async def answer(request: Request) -> Response:
        begun = time.perf_counter()
        try:
            token, file = await face.enter(request)
            async with service.concurrency.place(token, file=file):
                work = await face.work(request)
                reads = request.method in ("GET", "HEAD")
                response = await service.concurrency.run(work, token, file=file, reads=reads)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception as error:
            problem = problem_of(error)
            if problem.kind == "internal":
                _log.error("a fault in %s: %s", face.named(request)[0], _place(error))
            response = face.refused(request, problem)
        name, path = face.named(request)
        seconds = time.perf_counter() - begun
        metrics.saw(name, response.status_code, seconds)
        _access.info("%s %s %d %.0f ms", request.method, path, response.status_code, 1000 * seconds)
        return response

    return answer


def _place(error: BaseException) -> str:
    """Say what kind of error it was and where it came from; its message may hold rows."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " at ".join([type(error).__name__, *(f"{at.name}, line {at.lineno}" for at in last)])
