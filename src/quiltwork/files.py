"""Stable files: every JSON the product writes names its schema and version.

A document is `{"schema": "quiltwork/<name>", "version": <int>, …}`; numbers that must be exact are
strings such as `"1/10"`. The schemas are listed in `docs/reference/files.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quiltwork.errors import InvalidInputError


def dump(name: str, version: int, body: Mapping[str, Any]) -> str:
    """Write a document as canonical JSON: sorted keys, no NaN, UTF-8 kept readable.

    >>> dump("example", 1, {"epsilon": "1/10"})
    '{"epsilon": "1/10", "schema": "quiltwork/example", "version": 1}'
    """
    document = {"schema": f"quiltwork/{name}", "version": version, **body}
    return json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)


def load(text: str | bytes, name: str, versions: tuple[int, ...]) -> dict[str, Any]:
    """Read a document back, checking that it is the schema and a version we know.

    Raises:
        InvalidInputError: if the text is no JSON, another schema or a version from the future.
    """
    try:
        document = json.loads(text)
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"Not a JSON document: {error}.") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != f"quiltwork/{name}":
        raise InvalidInputError(
            f"Expected a document of schema 'quiltwork/{name}', found {found!r}; "
            "check that this is the right file."
        )
    if document.get("version") not in versions:
        raise InvalidInputError(
            f"Schema 'quiltwork/{name}' version {document.get('version')!r} is unknown to this "
            f"release, which reads {', '.join(map(str, versions))}; upgrade quiltwork."
        )
    return dict(document)
