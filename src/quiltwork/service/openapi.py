"""OpenAPI 3.1 from the routes and the structs that validate: one source for both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from quiltwork import __version__
from quiltwork.service.problems import MEDIA_TYPE, ProblemDetails
from quiltwork.service.rights import RIGHTS
from quiltwork.service.routes import Route
from quiltwork.service.structs import NAME
from quiltwork.service.uploads import MEDIA_TYPES

_REF = "#/components/schemas/{name}"
KEY_PATTERN = r"^[!-~]{1,200}$(?!\n)"
"""An Idempotency-Key: printable characters without blanks."""


def description(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the API's description as JSON values."""
    listed = [route for route in routes if route.path.startswith("/v1/")]
    structs = {part for route in listed for part in (route.request, route.response) if part}
    kinds = sorted({ProblemDetails, *structs}, key=str)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    refs = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "quiltwork curator", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, refs: dict[type, Any]) -> dict[str, Any]:
    problem = {"content": {MEDIA_TYPE: {"schema": refs[ProblemDetails]}}}
    answer: dict[str, Any] = {"description": "Done."}
    if route.response is not None:
        answer["content"] = {"application/json": {"schema": refs[route.response]}}
    roles = ", ".join(f"{role} ({on})" for role, on in RIGHTS[route.action].items())
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"Action `{route.action}`, for: {roles}.",
        "parameters": _parameters(route),
        "responses": {
            str(route.status): answer,
            "default": {"description": "Refused or failed.", **problem},
        },
    }
    if route.request is not None:
        content: dict[str, Any] = {"application/json": {"schema": refs[route.request]}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.upload:
        content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    """Describe what stands in the path, in the query and in headers."""
    named = {"type": "string", "pattern": NAME}
    found = [("path", name, True, named) for name in re.findall(r"{(\w+)}", route.path)]
    if route.query is not None:
        (_,), components = msgspec.json.schema_components([route.query], ref_template=_REF)
        query = components[route.query.__name__]
        needed = query.get("required", ())
        found += [("query", name, name in needed, one) for name, one in query["properties"].items()]
    if route.spends:
        found.append(("header", "Idempotency-Key", True, {**named, "pattern": KEY_PATTERN}))
    return [
        {"name": name, "in": place, "required": required, "schema": schema}
        for place, name, required, schema in found
    ]
