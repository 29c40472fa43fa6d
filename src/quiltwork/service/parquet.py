"""Parquet files of strangers, read by a child process with limits and written anew.

What a Parquet file says of its sizes is what whoever made it wrote there: a page that is small in
the file may ask for all the memory there is. So a process that may be killed for it reads the file,
a little at a time, up to limits; what it passes on was written by this very module.
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
_BESIDE = 512_000_000
"""Bytes that reading may take beside what is read."""
_REFUSED = 2
_SENTENCE = "The file cannot be read as Parquet, or takes too much memory."


def unpacks(limits: Limits) -> str:
    """Say that a file is too large when it is unpacked."""
    return f"The file unpacks to more than {limits.bytes:,} bytes, which is the most."


def rewritten(path: Path, limits: Limits) -> bytes:
    """Return a Parquet file with the rows of another, if these are within limits.

    Raises:
        InvalidInputError: for lists, long texts, too many cells, and what cannot be read.
    """
    given = {name: getattr(limits, name) for name in ("bytes", "rows", "columns", "field")}
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    with path.open("rb") as file:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "quiltwork.service.parquet", json.dumps(given)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        try:
            content, said = child.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise InvalidInputError("The file takes too long to read; send less at once.") from None
        finally:
            child.kill()
            child.wait()
    if child.returncode == 0:
        return content
    raise InvalidInputError(said.decode() if child.returncode == _REFUSED else _SENTENCE)


def _limit_memory(limits: Limits) -> None:
    """Let this process take no more memory than the limits allow, where a system has limits."""
    with suppress(ImportError):
        import resource

        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + 4 * limits.bytes + _BESIDE
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _copy(source: Any, target: Any, limits: Limits) -> None:
    """Read a file batch by batch, count what it holds, and write it anew."""
    from pyarrow import parquet, types

    with parquet.ParquetFile(source, pre_buffer=False) as file:
        schema = file.schema_arrow
        if any(types.is_nested(field.type) for field in schema):
            raise InvalidInputError("A column of a file holds one value in each row, no lists.")
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
                            f"A cell of column {name!r} has over {limits.field} letters."
                        )
                if size > limits.bytes:
                    raise InvalidInputError(unpacks(limits))
                writer.write_batch(batch)


def _longest(column: Any) -> int:
    """Return the bytes of the longest text of a column; 0 of numbers."""
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
    return f"A file may have {limits.rows:,} rows of {limits.columns} columns."


def main(given: str) -> int:
    """Copy standard input to standard output within limits; a refusal is a sentence."""
    import pyarrow

    limits, target = Limits(**json.loads(given)), pyarrow.BufferOutputStream()
    _limit_memory(limits)
    try:
        _copy(pyarrow.PythonFile(sys.stdin.buffer, "r"), target, limits)
    except InvalidInputError as error:
        sys.stderr.write(str(error))
        return _REFUSED
    except UnicodeDecodeError:
        sys.stderr.write("A column's name, or a text, is not UTF-8.")
        return _REFUSED
    except Exception:
        return 1  # what was raised may quote cells
    sys.stdout.buffer.write(target.getvalue())
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    os._exit(code) if code else sys.exit(0)  # nothing of Arrow's own to say at the end
