"""The application: from a request over HTTP to a handler in a thread, and back.

What can be refused without asking anybody is refused first: a token that is none, a body that is
too large. Then one thread recognises the caller, checks her right, reads the body and does the
work, so the event loop never waits for a database or a computation.
"""

from __future__ import annotations

import logging
import re
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from quiltwork.service.door import AllowedHosts, Metrics, media_type_of, paced, too_large
from quiltwork.service.members import authenticated, is_token, noted_uses
from quiltwork.service.openapi import KEY_PATTERN, description
from quiltwork.service.problems import NO_STORE, Problem, problem_of, problem_response
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Route, Service, check
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import converted, read_document
from quiltwork.service.uploads import received, suffix_of

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_log = logging.getLogger("quiltwork.service")
_JSON = "application/json"
_HTTP_KINDS = {404: "not-found", 405: "method-not-allowed"}


def create_app(service: Service, pages: tuple[BaseRoute, ...] = ()) -> Starlette:
    """Return the application of a curator; `pages` are routes that are no part of the API."""
    metrics = Metrics()

    async def counts(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    text = msgspec.json.encode(description(service.routes))
    plain: dict[str, Any] = {
        "/openapi.json": Response(text, media_type=_JSON),
        "/healthz": Response(b'{"status":"ok"}', media_type=_JSON),
        "/metrics": counts,
    }
    by_path: dict[str, dict[str, Route]] = {}
    for route in service.routes:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[
            *(StarletteRoute(path, answer, methods=["GET"]) for path, answer in plain.items()),
            *(
                StarletteRoute(path, _endpoint(service, routes, metrics), methods=list(routes))
                for path, routes in by_path.items()
            ),
            *pages,
        ],
        exception_handlers={HTTPException: _http_problem, Exception: _unexpected},
        lifespan=lambda _: _lifespan(service),
        middleware=[Middleware(AllowedHosts, names=service.settings.allowed_hosts)],
    )
    app.state.service = service
    return app


@asynccontextmanager
async def _lifespan(service: Service) -> AsyncIterator[None]:
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = service.settings.limits.threads
    async with noted_uses(service):
        yield
    service.ledger.close()


def _endpoint(service: Service, routes: Mapping[str, Route], metrics: Metrics) -> Endpoint:
    """One endpoint for all methods of a path; HEAD is answered as GET is."""

    async def endpoint(request: Request) -> Response:
        route = routes["GET" if request.method == "HEAD" else request.method]
        begun = time.perf_counter()
        try:
            secret = bearer(request)
            async with service.turns.of(secret, file=route.upload):
                response = await _answered(service, route, request, secret)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception as error:
            problem = problem_of(error)
            if problem.kind == "internal":
                _log.error("a fault in %s: %s", route.name, _place(error))
            response = problem_response(problem)
        metrics.saw(route.name, response.status_code, time.perf_counter() - begun)
        return response

    return endpoint


def _place(error: BaseException) -> str:
    """Say what kind of error it was and where it came from; its message may hold rows."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " at ".join([type(error).__name__, *(f"{at.name}, line {at.lineno}" for at in last)])


async def _answered(service: Service, route: Route, request: Request, secret: str) -> Response:
    limits = service.settings.limits
    most = limits.upload if route.upload else limits.document
    _check_length(request, most)
    path = {name: str(value) for name, value in request.path_params.items()}
    query, key = _read_query(route, request), _read_key(route, request)
    stream, media_type = paced(request.stream(), most, limits.pause), media_type_of(request)
    admitted = partial(_admitted, service, route, secret, path)
    if route.upload:
        encoding = request.headers.get("content-encoding", "").strip().lower()
        sent = partial(received, service, _parts(stream), suffix_of(media_type), encoding)
        limiter: anyio.CapacityLimiter | None = service.turns.threads
    else:
        content = b"".join([part async for part in stream])
        sent, limiter = partial(_read_json, route, content, media_type, limits.depth), None
    work = partial(route.carry_out, service, admitted, path, query, key, sent)
    found = await anyio.to_thread.run_sync(work, limiter=limiter)
    content = b"" if route.response is None else msgspec.json.encode(found)
    return Response(content, route.status, NO_STORE, _JSON if content else None)


def bearer(request: Request) -> str:
    """Return the token of a request; 401 for what cannot be one, without asking anybody."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_token(secret.strip()):
        raise _unauthenticated()
    return secret.strip()


def _admitted(service: Service, route: Route, secret: str, path: dict[str, str]) -> Caller:
    """Return who asks, if she may, by one look at the database; else 401, 403 or 404."""

    def work(_: Transaction) -> Caller:
        caller = authenticated(service, secret)
        if caller is None:
            raise _unauthenticated()
        check(route, service, caller, path)
        return caller

    return service.read(work)


def _unauthenticated() -> Problem:
    detail = "Send a token that is valid as `Authorization: Bearer …`."
    return Problem(401, "unauthenticated", detail, {"WWW-Authenticate": "Bearer"})


def _check_length(request: Request, most: int) -> None:
    text = request.headers.get("content-length", "0")
    if not text.isdecimal() or len(text) > 15 or int(text) > most:
        raise too_large(most)


def _read_query(route: Route, request: Request) -> Any:
    found = request.query_params.multi_items()
    if len(dict(found)) < len(found) or (found and route.query is None):
        raise Problem(400, "bad-request", "A parameter of the query stands twice, or is unknown.")
    return None if route.query is None else converted(dict(found), route.query, strict=False)


def _read_key(route: Route, request: Request) -> str:
    if not route.spends:
        return ""
    key = request.headers.get("idempotency-key", "")
    if not re.match(KEY_PATTERN, key):
        raise Problem(
            400,
            "bad-request",
            "This may spend budget: send an Idempotency-Key of up to 200 letters, a new one for "
            "each question and the same one to ask again.",
        )
    return key


def _read_json(route: Route, body: bytes, media_type: str, depth: int) -> Any:
    if route.request is None:
        if body:
            raise Problem(400, "bad-request", "Nothing is read from a body here; leave it out.")
        return None
    if media_type != _JSON:
        raise Problem(415, "unsupported-media", f"Send {_JSON} as Content-Type.")
    return read_document(body, route.request, depth)


def _parts(stream: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
    """Pass on a body to a thread, as it comes."""
    while (part := anyio.from_thread.run(anext, stream, None)) is not None:
        yield part


async def _http_problem(_: Request, error: Exception) -> Response:
    """Tell Starlette's own refusals in the same shape."""
    status = getattr(error, "status_code", 400)
    kind = _HTTP_KINDS.get(status, "bad-request")
    headers = getattr(error, "headers", None)
    return problem_response(Problem(status, kind, str(getattr(error, "detail", "")), headers))


async def _unexpected(_: Request, error: Exception) -> Response:
    return problem_response(problem_of(error))
