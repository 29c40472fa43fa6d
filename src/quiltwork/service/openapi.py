"""The OpenAPI 3.1 document, made from the routes and the structs that validate requests."""

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
"""An Idempotency-Key: up to 200 printable ASCII characters without spaces."""


def openapi_document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the OpenAPI document as plain values."""
    public = [route for route in routes if route.path.startswith("/v1/")]
    structs = {struct for route in public for struct in (route.request, route.response) if struct}
    kinds = sorted({ProblemDetails, *structs}, key=str)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    refs = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in public:
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
    success: dict[str, Any] = {"description": "Success."}
    if route.response is not None:
        success["content"] = {"application/json": {"schema": refs[route.response]}}
    roles = ", ".join(f"{role} ({on})" for role, on in RIGHTS[route.action].items())
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"Action `{route.action}`, for: {roles}.",
        "parameters": _parameters(route),
        "responses": {
            str(route.status): success,
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
    """Describe the parameters in path, query and headers."""
    string = {"type": "string", "pattern": NAME}
    parameters = [("path", name, True, string) for name in re.findall(r"{(\w+)}", route.path)]
    if route.query is not None:
        (_,), components = msgspec.json.schema_components([route.query], ref_template=_REF)
        query = components[route.query.__name__]
        required = query.get("required", ())
        fields = query["properties"].items()
        parameters += [("query", name, name in required, schema) for name, schema in fields]
    if route.spends:
        parameters.append(("header", "Idempotency-Key", True, {**string, "pattern": KEY_PATTERN}))
    return [
        {"name": name, "in": location, "required": required, "schema": schema}
        for location, name, required, schema in parameters
    ]
