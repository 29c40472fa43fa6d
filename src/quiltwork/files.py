"""Stable files: every JSON the product writes names its schema and version.

A document is `{"schema": "quiltwork/<name>", "version": <int>, …}`; numbers that must be exact are
strings such as `"1/10"`. The schemas are listed in `docs/reference/files.md`.

What is written appears whole or not at all, and only ever in the place of a regular file.
"""

from __future__ import annotations

import glob
import io
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import shortened

OWNER_ONLY = 0o600
"""The mode of files with secrets or budgets."""

ALLOWED = "QUILTWORK_UNPACKED_MB"
"""The environment variable that lets compressed files unpack to more."""

TABLES = (".parquet", ".pq", ".arrow", ".feather")
"""How the names of files end that hold columns with types."""

_MB = 10**6
_UNPACKED_FREELY = 16 * _MB
_UNPACKED_TIMES = 50
_SURROGATE = re.compile("[\ud800-\udfff]")


def dump(name: str, version: int, body: Mapping[str, Any]) -> str:
    """Write a document as canonical JSON: sorted keys, no NaN, UTF-8 kept readable.

    Half a pair of surrogates, as in names of files that are no UTF-8, makes all of it ASCII.

    >>> dump("example", 1, {"epsilon": "1/10"})
    '{"epsilon": "1/10", "schema": "quiltwork/example", "version": 1}'
    """
    document = {"schema": f"quiltwork/{name}", "version": version, **body}
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return json.dumps(document, sort_keys=True, allow_nan=False)


def parse(text: str | bytes) -> Any:
    """Read JSON of any shape.

    Raises:
        InvalidInputError: if it is none, is nested too deeply, holds a number without end or names
            a field twice, of which others may read the other one.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise InvalidInputError(f"A JSON document is text, not {shortened(text)}.")
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"Not a JSON document: {error}.") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(
            name for name, times in Counter(name for name, _ in pairs).items() if times > 1
        )
        raise ValueError(f"it names {shortened(twice)} twice")
    return found


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
    if type(document.get("version")) is not int or document["version"] not in versions:
        raise InvalidInputError(
            f"Schema 'quiltwork/{name}' version {document.get('version')!r} is unknown to this "
            f"release, which reads {', '.join(map(str, versions))}; upgrade quiltwork."
        )
    return dict(document)


def read_bytes(path: str | Path) -> bytes:
    """Read a small file or a pipe whole.

    Raises:
        InvalidInputError: if the path cannot be read, or names a folder or a device.
    """
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        refuse_device(path)
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None


def read_text(path: str | Path) -> str:
    """Read a small text file whole, as `read_bytes` does.

    Raises:
        InvalidInputError: also if it is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{str(path)!r} is not text in UTF-8.") from None


def refuse_device(path: str | Path) -> None:
    """Refuse what may never end, before it is read; a path that is not there passes.

    Raises:
        InvalidInputError: if the path is a device, such as /dev/zero.
    """
    try:
        kind = Path(path).stat().st_mode
    except OSError:
        return
    except ValueError as error:  # a zero byte, or half a pair of surrogates
        raise InvalidInputError(f"{str(path)!r} is no name of a file: {error}.") from None
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise InvalidInputError(f"{str(path)!r} is a device, not a file; name a file.")


class Unpacked(io.RawIOBase):
    """What a compressed file holds, as a stream that ends with a sentence where it gets too long.

    A file may unpack to 16 MB, to 50 times its own size, or to what the environment variable
    QUILTWORK_UNPACKED_MB allows. Records in CSV with two columns or more rarely reach 10 times.
    """

    def __init__(self, source: Any, path: str | Path) -> None:
        """Read from `source`, which unpacks the file at `path`."""
        self._source = source
        self._path = path
        self._size = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on.

        Raises:
            InvalidInputError: if it is too much.
        """
        count: int = self._source.readinto(buffer)
        self._size += count
        check_unpacked(self._path, self._size)
        return count

    def close(self) -> None:
        """Close the source too."""
        self._source.close()
        super().close()


def check_unpacked(path: str | Path, size: int) -> None:
    """Refuse a compressed file that holds so many bytes, if that is out of proportion.

    Raises:
        InvalidInputError: if it is.
    """
    if size <= _UNPACKED_FREELY:
        return
    packed = Path(path).stat().st_size
    if size <= max(_UNPACKED_TIMES * packed, _allowed()):
        return
    raise InvalidInputError(
        f"{str(path)!r} has {packed / _MB:.3g} MB and unpacks to more than {size // _MB:,} MB, "
        f"over {_UNPACKED_TIMES} times its size, as files do that are made to fill the memory. If "
        f"you expect this, set {ALLOWED} to the megabytes it may have."
    )


def expand_files(path: str) -> list[str]:
    """Return the files that a path, a folder or a pattern such as `meters/*.csv` names, in order.

    Raises:
        InvalidInputError: if a folder or a pattern has none.
    """
    if os.path.isdir(path):
        found = [one.path for one in os.scandir(path) if one.is_file() and one.name[0] not in "._"]
    elif glob.has_magic(path) and not os.path.exists(path):
        found = [one for one in glob.glob(path, recursive=True) if os.path.isfile(one)]
    else:
        return [path]
    if not found:
        raise InvalidInputError(f"There is no file to read in {path!r}.")
    return sorted(found)


def open_table_file(path: str, columns: int | None = None) -> Any:
    """Return a Parquet or Arrow file as a data set of Arrow, of which so many columns are read.

    Raises:
        InvalidInputError: if it is no such file, or unpacks to too much.
        UnsupportedError: without Arrow.
    """
    try:
        from pyarrow import ArrowException, dataset, parquet
    except ImportError:
        raise UnsupportedError(
            "Parquet and Arrow files need pyarrow: install it with pip install 'quiltwork[data]'."
        ) from None
    kind = "Parquet" if path.endswith((".parquet", ".pq")) else "Arrow"
    refuse_device(path)
    try:
        if kind == "Parquet":
            found = parquet.read_metadata(path)
            check_unpacked(path, parquet_size(found, columns or found.num_columns))
        return dataset.dataset(path, format="parquet" if kind == "Parquet" else "feather")
    except (OSError, ArrowException) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InvalidInputError(f"Cannot read {path!r} as {kind}: {reason}.") from None


def parquet_size(metadata: Any, columns: int) -> int:
    """Return how many bytes some columns of a Parquet file have at least, by its metadata."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    encoded = sum(int(group.total_byte_size) for group in groups)
    return max(8 * int(metadata.num_rows) * columns, encoded)


def _allowed() -> int:
    text = os.environ.get(ALLOWED, "0")
    if not text.isdecimal() or len(text) > 12:
        raise InvalidInputError(f"{ALLOWED} must be a whole number of megabytes, not {text!r}.")
    return int(text) * _MB


def write(path: str | Path, content: str | bytes, mode: int | None = None) -> None:
    """Write text (as UTF-8) or bytes to a path, which holds all of it or what it held before.

    `mode` is as in `replacing`.

    What UTF-8 has no letter for becomes a question mark, as on the terminal.

    Raises:
        InvalidInputError: if something is there that is no regular file.
        StorageError: if it cannot be written.
    """
    with replacing(path, mode) as file:
        file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of `path` once the block has ended without an error.

    Its permissions are `mode` from the first byte on; without one, those of the file it replaces,
    or the usual ones of a new file.

    Raises:
        InvalidInputError: if something is there that is no regular file.
        StorageError: if it cannot be written; then `path` is as it was.
    """
    target = check_writable(path)
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb", opener=_opener(mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is None and target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _opener(mode: int | None) -> Callable[[str, int], int] | None:
    """Return what `open` makes a file with, so that it never has wider permissions."""
    return None if mode is None else lambda name, flags: os.open(name, flags, mode)


def sync_folder(folder: str | Path) -> None:
    """Make the names of new files durable, where folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_path(path: object) -> Path:
    """Return the path that an argument names.

    Raises:
        InvalidInputError: if it is no name of a file.
    """
    try:
        name = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        name = None
    if not isinstance(name, str) or "\0" in name or not Path(name).name:  # "." has none
        raise InvalidInputError(f"path must be the name of a file, not {shortened(path)}.")
    return Path(name)


def check_writable(path: str | Path) -> Path:
    """Return the file that writing to `path` would make or replace; links are followed.

    For use before an answer is paid for: nothing is written yet, and a full disk shows only later.

    Raises:
        InvalidInputError: if a folder, a device or a pipe is there.
        StorageError: if the folder is missing or may not be written, or the file may not.
    """
    target = Path(os.path.realpath(_checked(path)))
    if not target.parent.is_dir():
        raise unwritable(path, f"there is no folder {str(target.parent)!r}")
    for place, needed in ((target.parent, os.W_OK | os.X_OK), (target, os.W_OK)):
        if place.exists() and not os.access(place, needed):
            raise unwritable(path, f"{str(place)!r} may not be written; check its permissions")
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
        raise unwritable(path, error) from None
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
        raise InvalidInputError(f"{str(path)!r} is {what}, not a file to write; name a file.")
    return path


def unwritable(path: str | Path, reason: object) -> StorageError:
    """Say that a file cannot be written, and why: an error, or words."""
    told = getattr(reason, "strerror", None) or str(reason).rstrip(".")
    return StorageError(f"{str(path)!r} could not be written: {told}.")
