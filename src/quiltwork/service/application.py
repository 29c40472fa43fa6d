"""The application: the API's face of the pipeline, and what is asked without a token."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from quiltwork.errors import QuiltworkError
from quiltwork.service.hosts import Entrance
from quiltwork.service.members import authenticated, is_token, noted_uses
from quiltwork.service.openapi import KEY_PATTERN, description
from quiltwork.service.pipeline import Metrics, Work, endpoint
from quiltwork.service.problems import NO_STORE, Problem, problem_of, problem_response
from quiltwork.service.request_limits import limited_body, media_type_of, too_large
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Route, Service, check
from quiltwork.service.structs import converted, read_document
from quiltwork.service.uploads import received, suffix_of

_JSON = "application/json"
_HTTP_KINDS = {404: "not-found", 405: "method-not-allowed"}


def create_app(
    service: Service, pages: Callable[[Service, Metrics], Iterable[BaseRoute]] = lambda *_: ()
) -> Starlette:
    """Return the application of a curator; `pages` makes routes that are no part of the API."""
    metrics = Metrics()

    async def counts(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def ready(_: Request) -> Response:
        state = 200 if await run_sync(_is_ready, service) else 503
        words = "ready" if state == 200 else "not ready"
        return Response(msgspec.json.encode({"status": words}), state, NO_STORE, _JSON)

    text = msgspec.json.encode(description(service.routes))
    plain: dict[str, Any] = {
        "/openapi.json": Response(text, media_type=_JSON),
        "/healthz": Response(b'{"status":"ok"}', media_type=_JSON),
        "/readyz": ready,
        "/metrics": counts,
    }
    by_path: dict[str, dict[str, Route]] = {}
    for route in service.routes:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[
            *(StarletteRoute(path, answer, methods=["GET"]) for path, answer in plain.items()),
            *(
                StarletteRoute(
                    path, endpoint(service, ApiFace(service, routes), metrics), methods=list(routes)
                )
                for path, routes in by_path.items()
            ),
            *pages(service, metrics),
        ],
        exception_handlers={HTTPException: _http_problem, Exception: _unexpected},
        lifespan=lambda _: _lifespan(service),
        middleware=[Middleware(Entrance, settings=service.settings)],
    )
    app.router.redirect_slashes = False  # nothing is elsewhere, and no token is sent there
    app.state.service = service
    return app


def _is_ready(service: Service) -> bool:
    """Whether database and data directory can be used now."""
    try:
        service.read(lambda t: t.row("SELECT 1"))
    except QuiltworkError:
        return False
    return os.access(service.vault.folder, os.W_OK)


@asynccontextmanager
async def _lifespan(service: Service) -> AsyncIterator[None]:
    async with noted_uses(service):
        yield
    service.ledger.close()


@dataclass(frozen=True)
class ApiFace:
    """The API at one path: all its methods; HEAD is answered as GET is."""

    service: Service
    routes: Mapping[str, Route]

    def _route(self, request: Request) -> Route:
        return self.routes["GET" if request.method == "HEAD" else request.method]

    def named(self, request: Request) -> tuple[str, str]:
        """Name a request by its route."""
        route = self._route(request)
        return route.name, route.path

    async def enter(self, request: Request) -> tuple[str, bool]:
        """Recognise what is no token, and what is too large."""
        route, limits = self._route(request), self.service.settings.limits
        token = bearer(request)
        _check_length(request, limits.upload if route.upload else limits.document)
        return token, route.upload

    async def work(self, request: Request) -> Work:
        """Read a document, or pass on a file as it comes."""
        route, service = self._route(request), self.service
        limits = service.settings.limits
        path = {name: str(value) for name, value in request.path_params.items()}
        query, key = _read_query(route, request), _read_key(route, request)
        stream = limited_body(
            request.stream(), limits.upload if route.upload else limits.document, limits.pause
        )
        media_type = media_type_of(request)
        admitted = partial(_admitted, service, route, bearer(request), path)
        if route.upload:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            sent = partial(
                received, service.vault, limits, _parts(stream), suffix_of(media_type), encoding
            )
        else:
            content = b"".join([part async for part in stream])
            sent = partial(_read_json, route, content, media_type, limits.depth)
        return lambda: _told(route, route.carry_out(service, admitted, path, query, key, sent))

    def refused(self, request: Request, problem: Problem) -> Response:
        """Tell it as problem details."""
        return problem_response(problem)


def _told(route: Route, found: Any) -> Response:
    content = b"" if route.response is None else msgspec.json.encode(found)
    return Response(content, route.status, NO_STORE, _JSON if content else None)


def bearer(request: Request) -> str:
    """Return the token of a request; 401 for what cannot be one, without asking anybody."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_token(secret.strip()):
        raise _unauthenticated()
    return secret.strip()


def _admitted(service: Service, route: Route, secret: str, path: dict[str, str]) -> Caller:
    """Return who asks, if she may; else 401, 403 or 404."""

    caller = authenticated(service, secret)
    if caller is None:
        raise _unauthenticated()
    check(route, service, caller, path)
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
