"""The curator's ASGI application: the API's adapter for the pipeline, and the public addresses."""

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
from quiltwork.service.hosts import HostMiddleware
from quiltwork.service.members import authenticated, is_token, recording_last_uses
from quiltwork.service.openapi import KEY_PATTERN, openapi_document
from quiltwork.service.pipeline import Metrics, Work, endpoint
from quiltwork.service.problems import NO_STORE, Problem, problem_of, problem_response
from quiltwork.service.request_limits import limited_body, media_type_of, too_large
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Route, Service, check_rights
from quiltwork.service.structs import as_struct, parse_document
from quiltwork.service.uploads import received, suffix_of

_JSON = "application/json"
_HTTP_KINDS = {404: "not-found", 405: "method-not-allowed"}


def create_app(
    service: Service, pages: Callable[[Service, Metrics], Iterable[BaseRoute]] = lambda *_: ()
) -> Starlette:
    """Return the application of a curator; `pages` makes the routes outside the API."""
    metrics = Metrics()

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def show_readiness(_: Request) -> Response:
        ready = await run_sync(_is_ready, service)
        body = msgspec.json.encode({"status": "ready" if ready else "not ready"})
        return Response(body, 200 if ready else 503, NO_STORE, _JSON)

    schema = msgspec.json.encode(openapi_document(service.routes))
    public: dict[str, Any] = {
        "/openapi.json": Response(schema, media_type=_JSON),
        "/healthz": Response(b'{"status":"ok"}', media_type=_JSON),
        "/readyz": show_readiness,
        "/metrics": show_metrics,
    }
    by_path: dict[str, dict[str, Route]] = {}
    for route in service.routes:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[
            *(StarletteRoute(path, respond, methods=["GET"]) for path, respond in public.items()),
            *(
                StarletteRoute(
                    path,
                    endpoint(service, ApiAdapter(service, routes), metrics),
                    methods=list(routes),
                )
                for path, routes in by_path.items()
            ),
            *pages(service, metrics),
        ],
        exception_handlers={HTTPException: _http_problem, Exception: _unexpected},
        lifespan=lambda _: _lifespan(service),
        middleware=[Middleware(HostMiddleware, settings=service.settings)],
    )
    # A redirect to the same path with a slash would carry a token to an address nobody chose.
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def _is_ready(service: Service) -> bool:
    """Whether the database answers and the data directory can be written."""
    try:
        service.read(lambda t: t.row("SELECT 1"))
    except QuiltworkError:
        return False
    return os.access(service.vault.folder, os.W_OK)


@asynccontextmanager
async def _lifespan(service: Service) -> AsyncIterator[None]:
    async with recording_last_uses(service):
        yield
    service.ledger.close()


@dataclass(frozen=True)
class ApiAdapter:
    """The API at one path, with all its methods; HEAD is answered like GET."""

    service: Service
    routes: Mapping[str, Route]

    def _route(self, request: Request) -> Route:
        return self.routes["GET" if request.method == "HEAD" else request.method]

    def label(self, request: Request) -> tuple[str, str]:
        """Return the route's name and path."""
        route = self._route(request)
        return route.name, route.path

    async def admit(self, request: Request) -> tuple[str, bool]:
        """Refuse a malformed token and a declared length beyond the limit."""
        route, limits = self._route(request), self.service.settings.limits
        token = bearer_token(request)
        _check_length(request, limits.upload if route.upload else limits.document)
        return token, route.upload

    async def prepare(self, request: Request) -> Work:
        """Read a JSON body; an upload is streamed while the work runs."""
        route, service = self._route(request), self.service
        limits = service.settings.limits
        path = {name: str(value) for name, value in request.path_params.items()}
        query, key = _parse_query(route, request), _idempotency_key(route, request)
        stream = limited_body(
            request.stream(), limits.upload if route.upload else limits.document, limits.pause
        )
        media_type = media_type_of(request)
        authorize = partial(_authorized, service, route, bearer_token(request), path)
        if route.upload:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            read_body = partial(
                received, service.vault, limits, _parts(stream), suffix_of(media_type), encoding
            )
        else:
            content = b"".join([part async for part in stream])
            read_body = partial(_parse_json, route, content, media_type, limits.depth)
        return lambda: _response(route, route.run(service, authorize, path, query, key, read_body))

    def refusal(self, request: Request, problem: Problem) -> Response:
        """Return the problem as problem details."""
        return problem_response(problem)


def _response(route: Route, result: Any) -> Response:
    content = b"" if route.response is None else msgspec.json.encode(result)
    return Response(content, route.status, NO_STORE, _JSON if content else None)


def bearer_token(request: Request) -> str:
    """Return the bearer token of a request; 401 for a malformed one, without any lookup."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_token(secret.strip()):
        raise _unauthenticated()
    return secret.strip()


def _authorized(service: Service, route: Route, secret: str, path: dict[str, str]) -> Caller:
    """Return the caller, if she may use the route; else 401, 403 or 404."""
    caller = authenticated(service, secret)
    if caller is None:
        raise _unauthenticated()
    check_rights(route, service, caller, path)
    return caller


def _unauthenticated() -> Problem:
    detail = "Send a valid token as `Authorization: Bearer …`."
    return Problem(401, "unauthenticated", detail, {"WWW-Authenticate": "Bearer"})


def _check_length(request: Request, max_bytes: int) -> None:
    text = request.headers.get("content-length", "0")
    if not text.isdecimal() or len(text) > 15 or int(text) > max_bytes:
        raise too_large(max_bytes)


def _parse_query(route: Route, request: Request) -> Any:
    items = request.query_params.multi_items()
    if len(dict(items)) < len(items) or (items and route.query is None):
        raise Problem(400, "bad-request", "A query parameter is repeated or unknown.")
    return None if route.query is None else as_struct(dict(items), route.query, strict=False)


def _idempotency_key(route: Route, request: Request) -> str:
    if not route.spends:
        return ""
    key = request.headers.get("idempotency-key", "")
    if not re.match(KEY_PATTERN, key):
        raise Problem(
            400,
            "bad-request",
            "This request may spend budget, so it needs an Idempotency-Key header of 1 to 200 "
            "printable characters without spaces: a new key for each question, the same key for "
            "a retry.",
        )
    return key


def _parse_json(route: Route, body: bytes, media_type: str, depth: int) -> Any:
    if route.request is None:
        if body:
            raise Problem(400, "bad-request", "This route takes no body; leave it out.")
        return None
    if media_type != _JSON:
        raise Problem(415, "unsupported-media", f"Send the body with Content-Type {_JSON}.")
    return parse_document(body, route.request, depth)


def _parts(stream: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
    """Yield the parts of an async stream in a worker thread, as they arrive."""
    while (part := anyio.from_thread.run(anext, stream, None)) is not None:
        yield part


async def _http_problem(_: Request, error: Exception) -> Response:
    """Return Starlette's own refusals as problem details."""
    status = getattr(error, "status_code", 400)
    kind = _HTTP_KINDS.get(status, "bad-request")
    headers = getattr(error, "headers", None)
    return problem_response(Problem(status, kind, str(getattr(error, "detail", "")), headers))


async def _unexpected(_: Request, error: Exception) -> Response:
    return problem_response(problem_of(error))
