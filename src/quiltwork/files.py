"""Stable files: every JSON the product writes names its schema and version.

A document is `{"schema": "quiltwork/<name>", "version": <int>, …}`; numbers that must be exact are
strings such as `"1/10"`. The schemas are listed in `docs/reference/files.md`.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
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


def contents(path: str | Path) -> bytes:
    """Read a small file or a pipe whole.

    Raises:
        InvalidInputError: if the path cannot be read, or names a folder or a device.
    """
    try:
        refuse_device(path)
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None


def refuse_device(path: str | Path) -> None:
    """Refuse what may never end, before it is read; a path that is not there passes.

    Raises:
        InvalidInputError: if the path is a device, such as /dev/zero.
    """
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise InvalidInputError(f"{str(path)!r} is a device, not a file; name a file.")
