"""Reading and writing files; every JSON document names its schema and version.

A document is `{"schema": "quiltwork/<name>", "version": <int>, …}`; numbers that must be exact are
strings such as `"1/10"`. The schemas are listed in `docs/reference/files.md`.

Writing is atomic: a file appears whole or not at all, and only regular files are replaced.
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

UNPACKED_LIMIT = "QUILTWORK_UNPACKED_MB"
"""The environment variable that lets compressed files unpack to more."""

TABLES = (".parquet", ".pq", ".arrow", ".feather")
"""Endings of files with typed columns."""

_MB = 10**6
_UNPACKED_FREELY = 16 * _MB
_UNPACKED_TIMES = 50
_SURROGATE = re.compile("[\ud800-\udfff]")


def dump(name: str, version: int, body: Mapping[str, Any]) -> str:
    """Write a document as canonical JSON: sorted keys, no NaN, UTF-8 kept readable.

    Text with a lone surrogate, as in file names that are not UTF-8, is written in ASCII.

    >>> dump("example", 1, {"epsilon": "1/10"})
    '{"epsilon": "1/10", "schema": "quiltwork/example", "version": 1}'
    """
    document = {"schema": f"quiltwork/{name}", "version": version, **body}
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return json.dumps(document, sort_keys=True, allow_nan=False)


def parse(text: str | bytes) -> Any:
    """Parse JSON of any shape.

    Raises:
        InvalidInputError: if it is not JSON, is nested too deeply, has an overlong number, or has a
            field twice: readers differ in which of the two they take.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise InvalidInputError(f"A JSON document is text, not {shortened(text)}.")
    try:
        return json.loads(text, object_pairs_hook=_without_repeated_fields)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"Not a JSON document: {error}.") from None


def _without_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"it names {shortened(repeated)} twice")
    return fields


def load(text: str | bytes, name: str, versions: tuple[int, ...]) -> dict[str, Any]:
    """Parse a document, and check its schema and version.

    Raises:
        InvalidInputError: if the text is not JSON, or has another schema or an unknown version.
    """
    document = parse(text)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != f"quiltwork/{name}":
        raise InvalidInputError(
            f"Expected a document of schema 'quiltwork/{name}', found {schema!r}; "
            "check that this is the right file."
        )
    if type(document.get("version")) is not int or document["version"] not in versions:
        raise InvalidInputError(
            f"Schema 'quiltwork/{name}' version {document.get('version')!r} is unknown to this "
            f"release, which reads {', '.join(map(str, versions))}; upgrade quiltwork."
        )
    return dict(document)


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a small file or a pipe; - is standard input.

    Raises:
        InvalidInputError: if the path cannot be read, or is a folder or a device.
    """
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        refuse_device(path)
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None


def read_text(path: str | Path) -> str:
    """Return the text of a small file, without a byte order mark.

    Raises:
        InvalidInputError: as `read_bytes` does, and if the text is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{str(path)!r} is not text in UTF-8.") from None


def refuse_device(path: str | Path) -> None:
    """Refuse devices, which may never end; a path that does not exist passes.

    Raises:
        InvalidInputError: if the path is a device, such as /dev/zero.
    """
    try:
        kind = Path(path).stat().st_mode
    except OSError:
        return
    except ValueError as error:  # a zero byte, or a lone surrogate
        raise InvalidInputError(f"{str(path)!r} is no name of a file: {error}.") from None
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise InvalidInputError(f"{str(path)!r} is a device, not a file; name a file.")


class Unpacked(io.RawIOBase):
    """The uncompressed content of a file, as a stream that raises an error if it gets too long.

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
        """Fill a buffer.

        Raises:
            InvalidInputError: if the content exceeds the limit.
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
    """Refuse a compressed file that unpacks to far more than its size.

    Raises:
        InvalidInputError: if `size`, the bytes unpacked so far, exceeds the limit.
    """
    if size <= _UNPACKED_FREELY:
        return
    packed = Path(path).stat().st_size
    if size <= max(_UNPACKED_TIMES * packed, _allowed()):
        return
    raise InvalidInputError(
        f"{str(path)!r} has {packed / _MB:.3g} MB and unpacks to more than {size // _MB:,} MB, "
        f"over {_UNPACKED_TIMES} times its size, like files made to exhaust memory. If "
        f"you expect this, set {UNPACKED_LIMIT} to the megabytes it may have."
    )


def expand_files(path: str) -> list[str]:
    """Return the files of a path, a folder or a pattern such as `meters/*.csv`, sorted.

    Raises:
        InvalidInputError: if a folder or a pattern has no file.
    """
    if os.path.isdir(path):
        entries = os.scandir(path)
        paths = [entry.path for entry in entries if entry.is_file() and entry.name[0] not in "._"]
    elif glob.has_magic(path) and not os.path.exists(path):
        paths = [match for match in glob.glob(path, recursive=True) if os.path.isfile(match)]
    else:
        return [path]
    if not paths:
        raise InvalidInputError(f"There is no file to read in {path!r}.")
    return sorted(paths)


def open_table_file(path: str, columns: int | None = None) -> Any:
    """Open a Parquet or Arrow file as an Arrow data set, to read so many of its columns.

    Raises:
        InvalidInputError: if it is not such a file, or unpacks to too much.
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
            metadata = parquet.read_metadata(path)
            check_unpacked(path, parquet_size(metadata, columns or metadata.num_columns))
        return dataset.dataset(path, format="parquet" if kind == "Parquet" else "feather")
    except (OSError, ArrowException) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InvalidInputError(f"Cannot read {path!r} as {kind}: {reason}.") from None


def parquet_size(metadata: Any, columns: int) -> int:
    """Return a lower bound on the bytes of some columns of a Parquet file, from its metadata."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    encoded = sum(int(group.total_byte_size) for group in groups)
    return max(8 * int(metadata.num_rows) * columns, encoded)


def _allowed() -> int:
    text = os.environ.get(UNPACKED_LIMIT, "0")
    if not text.isdecimal() or len(text) > 12:
        raise InvalidInputError(
            f"{UNPACKED_LIMIT} must be a whole number of megabytes, not {text!r}."
        )
    return int(text) * _MB


def write(path: str | Path, content: str | bytes, mode: int | None = None) -> None:
    """Write text (as UTF-8) or bytes to a path atomically, with permissions as in `replacing`.

    Characters that UTF-8 cannot encode become question marks.

    Raises:
        InvalidInputError: if the path is not a regular file.
        StorageError: if it cannot be written.
    """
    with replacing(path, mode) as file:
        file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` when the block ends without an error.

    Its permissions are `mode` from the first byte on; by default those of the file it replaces, or
    the usual ones of a new file.

    Raises:
        InvalidInputError: if the path is not a regular file.
        StorageError: if it cannot be written; then `path` is unchanged.
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
    """Return an opener for `open` that creates the file with its final permissions."""
    return None if mode is None else lambda name, flags: os.open(name, flags, mode)


def sync_folder(folder: str | Path) -> None:
    """Make the names of new files durable, on systems where folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_path(path: object) -> Path:
    """Return an argument as the path of a file.

    Raises:
        InvalidInputError: if it cannot be the name of a file.
    """
    try:
        name = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        name = None
    if not isinstance(name, str) or "\0" in name or not Path(name).name:  # "." has none
        raise InvalidInputError(f"path must be the name of a file, not {shortened(path)}.")
    return Path(name)


def check_writable(path: str | Path) -> Path:
    """Return the file that writing to `path` would create or replace; links are followed.

    For use before an answer is paid for. Nothing is written, so a full disk is not noticed.

    Raises:
        InvalidInputError: if the path is a folder, a device or a pipe.
        StorageError: if the folder is missing or may not be written, or the file may not.
    """
    target = Path(os.path.realpath(_regular_or_new(path)))
    if not target.parent.is_dir():
        raise unwritable(path, f"there is no folder {str(target.parent)!r}")
    for entry, needed in ((target.parent, os.W_OK | os.X_OK), (target, os.W_OK)):
        if entry.exists() and not os.access(entry, needed):
            raise unwritable(path, f"{str(entry)!r} may not be written; check its permissions")
    return target


def _regular_or_new(path: str | Path) -> str | Path:
    """Return a path that is a regular file or does not exist; refuse others."""
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
    """Return the error for a file that cannot be written; the reason is an error or text."""
    text = getattr(reason, "strerror", None) or str(reason).rstrip(".")
    return StorageError(f"{str(path)!r} could not be written: {text}.")
