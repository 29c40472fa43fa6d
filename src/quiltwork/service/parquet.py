"""Untrusted Parquet files, read by a child process under limits and rewritten.

The sizes stated in a Parquet file are written by its author: a page that is small in the file may
demand all of the machine's memory. So a child process with a memory limit reads the file in small
batches, and the server sees only the copy that this module wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.service.settings import Limits

_SECONDS = 120
_ROWS_AT_ONCE = 1024
_OVERHEAD = 512_000_000
"""Bytes of memory that reading may take in addition to the data."""
_REFUSED = 2
_UNREADABLE = "The file is not valid Parquet, or takes too much memory."


def unpacks_to_too_much(limits: Limits) -> str:
    """Return the message for a file that is too large after unpacking."""
    return f"The file unpacks to more than the limit of {limits.bytes:,} bytes."


def rewritten(path: Path, limits: Limits) -> bytes:
    """Return a rewritten copy of a Parquet file that is within limits.

    Raises:
        InvalidInputError: for nested columns, long texts, too many cells, and unreadable files.
    """
    numbers = {name: getattr(limits, name) for name in ("bytes", "rows", "columns", "field")}
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    with path.open("rb") as file:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "quiltwork.service.parquet", json.dumps(numbers)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        try:
            content, message = child.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise InvalidInputError(
                "The file takes too long to read. Send fewer rows at once."
            ) from None
        finally:
            child.kill()
            child.wait()
    if child.returncode == 0:
        return content
    raise InvalidInputError(message.decode() if child.returncode == _REFUSED else _UNREADABLE)


def _limit_memory(limits: Limits) -> None:
    """Limit the memory of this process, on systems that support it."""
    with suppress(ImportError):
        import resource

        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            limit = pages * resource.getpagesize() + 4 * limits.bytes + _OVERHEAD
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold rows


def _copy(source: Any, target: Any, limits: Limits) -> None:
    """Rewrite a file batch by batch, checking the limits on the way."""
    from pyarrow import parquet, types

    with parquet.ParquetFile(source, pre_buffer=False) as file:
        schema = file.schema_arrow
        if any(types.is_nested(field.type) for field in schema):
            raise InvalidInputError("Columns must hold single values, not lists or structs.")
        if len(schema) > limits.columns:
            raise InvalidInputError(_shape(limits))
        rows = size = 0
        with parquet.ParquetWriter(target, schema, compression="none") as writer:
            for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows > limits.rows:
                    raise InvalidInputError(_shape(limits))
                for name, column in zip(schema.names, batch.columns, strict=True):
                    if _longest(column) > 4 * limits.field:  # bytes
                        raise InvalidInputError(
                            f"A cell of column {name!r} has more than {limits.field:,} characters."
                        )
                if size > limits.bytes:
                    raise InvalidInputError(unpacks_to_too_much(limits))
                writer.write_batch(batch)


def _longest(column: Any) -> int:
    """Return the length in bytes of a column's longest text; 0 for other types."""
    import pyarrow.compute as pc
    from pyarrow import types

    values = column.dictionary if types.is_dictionary(column.type) else column
    kind = values.type
    if types.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if not (types.is_binary(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return 0
    return pc.max(pc.binary_length(values)).as_py() or 0


def _shape(limits: Limits) -> str:
    return (
        f"The file is too large: at most {limits.rows:,} rows of {limits.columns} columns are "
        "allowed."
    )


def main(numbers: str) -> int:
    """Rewrite standard input to standard output; a refusal is written to standard error."""
    import pyarrow

    limits, target = Limits(**json.loads(numbers)), pyarrow.BufferOutputStream()
    _limit_memory(limits)
    try:
        _copy(pyarrow.PythonFile(sys.stdin.buffer, "r"), target, limits)
    except InvalidInputError as error:
        sys.stderr.write(str(error))
        return _REFUSED
    except UnicodeDecodeError:
        sys.stderr.write("The name of a column, or a text, is not valid UTF-8.")
        return _REFUSED
    except Exception:
        return 1  # the error itself may quote cells
    sys.stdout.buffer.write(target.getvalue())
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    os._exit(code) if code else sys.exit(0)  # skips Arrow's own messages at exit
