"""Calls of the API's routes by name, within the process: the same rights, checks and handlers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from quiltwork.service.problems import not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Route, Service, check
from quiltwork.service.structs import NAME, converted
from quiltwork.service.uploads import Upload, received


def ask(
    service: Service,
    caller: Caller,
    name: str,
    path: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Any:
    """Do what a route does for a caller, and return its struct; blocks."""
    route = _allowed(service, caller, name, path or {})
    if route.request is not None:
        rest["body"] = converted(dict(body or {}), route.request)
    if route.query is not None:
        rest["query"] = converted(dict(query or {}), route.query, strict=False)
    return route.handler(Call(service, caller, path or {}, **rest))


def send(
    service: Service,
    caller: Caller,
    name: str,
    path: Mapping[str, str],
    parts: Iterable[bytes],
    suffix: str,
    **rest: Any,
) -> Any:
    """Do what a route that takes an upload does; nothing is read of it without the right."""
    route = _allowed(service, caller, name, path)
    limits, vault = service.settings.limits, service.vault
    upload = Upload(vault.write(received(parts, limits)), suffix, vault, limits)
    try:
        check(route, service, caller, path)  # again, now that all of it has come
        return route.handler(Call(service, caller, path, upload=upload, **rest))
    finally:
        upload.discard()


def _allowed(service: Service, caller: Caller, name: str, path: Mapping[str, str]) -> Route:
    """Return a route that a caller may take; what cannot be a name is nowhere, as over HTTP."""
    if not all(re.match(NAME, value) for value in path.values()):
        raise not_found()
    route = service.route(name)
    check(route, service, caller, path)
    return route
