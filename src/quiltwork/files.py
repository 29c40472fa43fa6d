"""Stable files: every JSON the product writes names its schema and version.

A document is `{"schema": "quiltwork/<name>", "version": <int>, …}`; numbers that must be exact are
strings such as `"1/10"`. The schemas are listed in `docs/reference/files.md`.

What is written appears whole or not at all, and only ever in the place of a regular file.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from quiltwork.errors import InvalidInputError, StorageError

PRIVATE = 0o600
"""The mode of files with budgets or secrets: their owner's only."""


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
    document = parse(text)
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


def parse(text: str | bytes) -> Any:
    """Read JSON that others may have written.

    Raises:
        InvalidInputError: if it is none, nested too deeply, or holds text that no file can.
    """
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        plain.encode()
        found = json.loads(plain)
        if "\\ud" in plain:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise InvalidInputError("Not a JSON document: it is nested too deeply.") from None
    except UnicodeEncodeError:
        raise InvalidInputError(
            "Not a JSON document: it has half of a surrogate pair, which no file can hold."
        ) from None
    except ValueError as error:
        raise InvalidInputError(f"Not a JSON document: {error}.") from None
    except (AttributeError, TypeError):
        raise InvalidInputError(
            f"A document is text, not {type(text).__name__}; give what was written."
        ) from None
    return found


def contents(path: str | Path) -> bytes:
    """Read a small file or a pipe whole.

    Raises:
        InvalidInputError: if the path cannot be read, or names a folder or a device.
    """
    try:
        refuse_device(path)
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"Cannot read {str(path)!r}: {reason}.") from None


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


def write(path: str | Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write text (as UTF-8) or bytes to a path, which holds all of it or what it held before.

    Raises:
        InvalidInputError: if something is there that is no regular file.
        StorageError: if it cannot be written.
    """
    with replacing(path, mode) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of `path` once the block has ended without an error.

    A new file has this mode, less the umask; one that was there keeps its own, unless the mode is
    `PRIVATE`, which is for budgets and secrets.

    Raises:
        InvalidInputError: if something is there that is no regular file.
        StorageError: if it cannot be written; then `path` is as it was.
    """
    target = check_writable(path)
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode != PRIVATE and target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    except OSError as error:
        raise _unwritable(path, error.strerror or error) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def check_writable(path: str | Path) -> Path:
    """Return the file that writing to `path` would make or replace; links are followed.

    For use before an answer is paid for: nothing is written yet, and a full disk shows only later.

    Raises:
        InvalidInputError: if a folder, a device or a pipe is there.
        StorageError: if the folder is missing or may not be written, or the file may not.
    """
    target = Path(os.path.realpath(_checked(path)))
    if not target.parent.is_dir():
        raise _unwritable(path, f"there is no folder {str(target.parent)!r}")
    for place, needed in ((target.parent, os.W_OK | os.X_OK), (target, os.W_OK)):
        if place.exists() and not os.access(place, needed):
            raise _unwritable(path, f"{str(place)!r} may not be written; check its permissions")
    return target


def _checked(path: str | Path) -> str | Path:
    """Refuse what is there and no regular file."""
    if not str(path):
        raise InvalidInputError("The name of the file to write is empty; name a file.")
    try:
        kind = Path(path).stat().st_mode
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or error) from None
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
        raise InvalidInputError(f"{str(path)!r} is {what}, not a file to write; name a file.")
    return path


def _unwritable(path: str | Path, reason: object) -> StorageError:
    return StorageError(f"{str(path)!r} could not be written: {reason}.")
