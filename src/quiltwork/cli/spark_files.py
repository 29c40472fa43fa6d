"""Files as Spark frames, for `--backend spark`.

Parquet files, and folders of them, are read by the workers. Other files are read locally and sent
to Spark.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.delimited import columns_of
from quiltwork.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUIET = {
    "spark.ui.showConsoleProgress": "false",  # the command has its own progress bar
    "spark.ui.enabled": "false",  # its pages would show providers' names to the network
}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_REASON = re.compile(r"\[[A-Z_.]+\] (.+)")
_VALUE = re.compile(r"'[^']*'")
"""A cell that Spark could not convert, in its messages; ours never show it."""


def all_parquet(files: Sequence[str]) -> bool:
    """Return whether workers can read these files themselves."""
    return all(file.rstrip("/").endswith((".parquet", ".pq")) for file in files)


def parquet_frame(file: str, columns: Sequence[str]) -> DataFrame:
    """Return some columns of a Parquet file or folder."""
    session = quiet_session()
    if not Path(file).exists():
        raise InvalidInputError(f"There is no file {file!r}.")
    from quiltwork.tables.spark.session import quote_name

    # Spark's messages may contain cells.
    with _failures(InvalidInputError, f"Cannot read {file!r} as a table"):
        frame: DataFrame = session.read.parquet(str(Path(file).absolute()))
        for name in columns:
            if frame.columns.count(name) != 1:
                raise InvalidInputError(
                    f"Column {name!r} is not there once in {file!r}, "
                    f"{columns_of(frame.columns, columns)}."
                )
        return frame.select(*map(quote_name, columns))


def parquet_of_providers(
    files: Mapping[str, str], columns: Sequence[str], provider: str
) -> DataFrame:
    """Return the Parquet files of several providers as one frame, with a provider column."""
    quiet_session()
    from pyspark.sql.functions import lit

    frames = {name: parquet_frame(file, columns) for name, file in files.items()}
    for column in columns:
        kinds = {dict(frame.dtypes)[column] for frame in frames.values()}
        if len(kinds) > 1 and not all(kind.startswith(_NUMBERS) for kind in kinds):
            raise InvalidInputError(
                f"The columns of the providers have different types: {column!r} is "
                f"{' and '.join(sorted(kinds))}."
            )
        if len(kinds) > 1 and kinds & {"float", "double"}:
            frames = {name: _as_double(frame, column) for name, frame in frames.items()}
    with_provider = [frame.withColumn(provider, lit(name)) for name, frame in frames.items()]
    return reduce(lambda first, second: first.unionByName(second), with_provider)


def _as_double(frame: DataFrame, column: str) -> DataFrame:
    """Convert numbers to floats, as another provider has them, if none would be rounded."""
    from quiltwork.tables.spark.session import quote_name

    numbers = frame[quote_name(column)]
    if dict(frame.dtypes)[column] not in ("float", "double"):
        beyond = ~numbers.between(-(2**53), 2**53)
        if frame.where(beyond).limit(1).count():
            raise InvalidInputError(
                f"Column {column!r} has whole numbers beyond 2^53 at one provider and fractions at "
                "another, and no type represents both exactly. Convert them to text."
            )
    return frame.withColumn(column, numbers.cast("double"))


@contextmanager
def at_work(backend: str) -> Iterator[None]:
    """Run a block on Spark, and report its failures in a sentence."""
    if backend == "local":
        yield
        return
    quiet_session()
    with _failures(StorageError, "Spark failed"):
        yield


def quiet_session() -> Any:
    """Return the active Spark session, or start one with few log messages."""
    from quiltwork.tables.spark.session import spark_session

    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    return spark_session(_QUIET, log_level="ERROR")


@contextmanager
def _failures(kind: type[Exception], action: str) -> Iterator[None]:
    """Turn exceptions of Spark into an error of `kind`, without values of cells."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        match = _REASON.search(str(error))
        reason = match[1] if match else str(error).partition("\n")[0]
        raise kind(f"{action}: {_VALUE.sub('…', reason)}") from None
