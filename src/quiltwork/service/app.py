"""The application: from a request over HTTP to a handler in a thread, and back.

What can be refused without asking anybody is refused first: a token that is none, a body that is
too large. Then one thread recognises the caller, checks her right, reads the body and does the
work, so the event loop never waits for a database or a computation.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
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

from quiltwork.service.door import AllowedHosts, Metrics, paced, too_large
from quiltwork.service.members import authenticated, is_token
from quiltwork.service.openapi import KEY_PATTERN, description
from quiltwork.service.problems import NO_STORE, Problem, problem_of, problem_response
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Route, Service, check
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
    text = msgspec.json.encode(description(service.routes))
    plain: dict[str, Callable[[], Response]] = {
        "/openapi.json": lambda: Response(text, media_type=_JSON),
        "/healthz": lambda: Response(b'{"status":"ok"}', media_type=_JSON),
        "/metrics": lambda: Response(metrics.text(), media_type="text/plain; version=0.0.4"),
    }
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in service.routes:
        by_path.setdefault(route.path, {})[route.method] = _endpoint(service, route, metrics)
    api = [
        StarletteRoute(path, _by_method(endpoints), methods=list(endpoints))
        for path, endpoints in by_path.items()
    ]
    app = Starlette(
        routes=[
            *(StarletteRoute(path, _plain(answer)) for path, answer in plain.items()),
            *api,
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
    async with AsyncExitStack() as stack:
        for one in service.features:
            if one.running is not None:
                await stack.enter_async_context(one.running(service))
        yield
    service.ledger.close()


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """One endpoint for all methods of a path; HEAD is answered as GET is."""

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return endpoint


def _plain(answer: Callable[[], Response]) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return answer()

    return endpoint


def _endpoint(service: Service, route: Route, metrics: Metrics) -> Endpoint:
    async def endpoint(request: Request) -> Response:
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
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}"
    return f"{type(error).__name__}{where}"


async def _answered(service: Service, route: Route, request: Request, secret: str) -> Response:
    limits = service.settings.limits
    most = limits.upload if route.upload else limits.document
    _check_length(request, most)
    path = {name: str(value) for name, value in request.path_params.items()}
    query, key = _read_query(route, request), _read_key(route, request)
    found: Any
    if route.upload:
        rest = {"query": query, "key": key}
        found = await _with_upload(service, route, request, secret, path, **rest)
    else:
        body = b"".join([part async for part in paced(request.stream(), most, limits.pause)])
        media_type = request.headers.get("content-type", "")

        def work() -> Any:
            caller = _admitted(service, route, secret, path)
            read = _read_json(route, body, media_type, limits.depth)
            return route.handler(Call(service, caller, path, query, read, key))

        found = await anyio.to_thread.run_sync(work)
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
        caller = recognised(service, secret)
        check(route, service, caller, path)
        return caller

    return service.read(work)


def recognised(service: Service, secret: str) -> Caller:
    """Return whose token it is, or 401; blocks."""
    caller = authenticated(service, secret)
    if caller is None:
        raise _unauthenticated()
    return caller


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
    if media_type.partition(";")[0].strip().lower() != _JSON:
        raise Problem(415, "unsupported-media", f"Send {_JSON} as Content-Type.")
    return read_document(body, route.request, depth)


async def _with_upload(
    service: Service,
    route: Route,
    request: Request,
    secret: str,
    path: dict[str, str],
    **rest: Any,
) -> Any:
    """Check the caller's right before anything is read, and again when all of it has come."""
    suffix = suffix_of(request.headers.get("content-type", ""))
    encoding = request.headers.get("content-encoding", "").strip().lower()

    await anyio.to_thread.run_sync(_admitted, service, route, secret, path)
    limits = service.settings.limits
    stream = paced(request.stream(), limits.upload, limits.pause)

    def parts() -> Iterator[bytes]:
        while (part := anyio.from_thread.run(anext, stream, None)) is not None:
            yield part

    def work() -> Any:
        with received(service, parts(), suffix, encoding) as upload:
            caller = _admitted(service, route, secret, path)
            return route.handler(Call(service, caller, path, upload=upload, **rest))

    return await anyio.to_thread.run_sync(work, limiter=service.turns.threads)


async def _http_problem(_: Request, error: Exception) -> Response:
    """Tell Starlette's own refusals in the same shape."""
    status = getattr(error, "status_code", 400)
    kind = _HTTP_KINDS.get(status, "bad-request")
    headers = getattr(error, "headers", None)
    return problem_response(Problem(status, kind, str(getattr(error, "detail", "")), headers))


async def _unexpected(_: Request, error: Exception) -> Response:
    return problem_response(problem_of(error))
