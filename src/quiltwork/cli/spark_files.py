"""Files as Spark frames, for `--backend spark`.

Parquet files, and folders of them, are read where the workers are. Other files are read on this
machine, as they always are, and sent there.
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
    "spark.ui.showConsoleProgress": "false",  # there is a bar already
    "spark.ui.enabled": "false",  # its pages show values, such as providers' names, to the network
}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_REASON = re.compile(r"\[[A-Z_.]+\] (.+)")
_VALUE = re.compile(r"'[^']*'")
"""How Spark shows a cell that it cannot convert; messages here never do."""


def all_parquet(files: Sequence[str]) -> bool:
    """Tell whether workers can read these files themselves."""
    return all(file.rstrip("/").endswith((".parquet", ".pq")) for file in files)


def parquet_frame(file: str, columns: Sequence[str]) -> DataFrame:
    """Return some columns of a Parquet file or folder."""
    session = quiet_session()
    if not Path(file).exists():
        raise InvalidInputError(f"There is no file {file!r}.")
    from quiltwork.tables.spark.session import quote_name

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
    """Return the Parquet files of several providers as one frame, with a column that names them."""
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
    named = [frame.withColumn(provider, lit(name)) for name, frame in frames.items()]
    return reduce(lambda one, other: one.unionByName(other), named)


def _as_double(frame: DataFrame, column: str) -> DataFrame:
    """Make numbers floats, as they are at another provider, if no two of them become one."""
    from quiltwork.tables.spark.session import quote_name

    numbers = frame[quote_name(column)]
    if dict(frame.dtypes)[column] not in ("float", "double"):
        beyond = ~numbers.between(-(2**53), 2**53)
        if frame.where(beyond).limit(1).count():
            raise InvalidInputError(
                f"Column {column!r} holds whole numbers beyond 2^53 at one provider and fractions "
                "at another, and no type holds both; make them text."
            )
    return frame.withColumn(column, numbers.cast("double"))


@contextmanager
def at_work(backend: str) -> Iterator[None]:
    """Say in a sentence what Spark fails with, where it is at work."""
    if backend == "local":
        yield
        return
    quiet_session()
    with _failures(StorageError, "Spark failed"):
        yield


def quiet_session() -> Any:
    """Return the running Spark, or start one that says little."""
    from quiltwork.tables.spark.session import spark_session

    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    return spark_session(_QUIET, log_level="ERROR")


@contextmanager
def _failures(kind: type[Exception], what: str) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        told = _REASON.search(str(error))
        reason = told[1] if told else str(error).partition("\n")[0]
        raise kind(f"{what}: {_VALUE.sub('…', reason)}") from None
