"""Calls of the API's routes by name, within the process: the same rights, checks and handlers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from quiltwork.service.problems import not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Route, Service, check, perform
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
    route = _route(service, name, path or {})
    if route.request is not None:
        rest["body"] = converted(dict(body or {}), route.request)
    if route.query is not None:
        rest["query"] = converted(dict(query or {}), route.query, strict=False)
    return perform(service, route, caller, path, **rest)


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
    route, limits, vault = _route(service, name, path), service.settings.limits, service.vault
    check(route, service, caller, path)
    upload = Upload(vault.write(received(parts, limits)), suffix, vault, limits)
    try:
        return perform(service, route, caller, path, upload=upload, **rest)
    finally:
        upload.discard()


def _route(service: Service, name: str, path: Mapping[str, str]) -> Route:
    """Return a route; what cannot be a name of anything is nowhere, as over HTTP."""
    if not all(re.match(NAME, value) for value in path.values()):
        raise not_found()
    return service.route(name)
