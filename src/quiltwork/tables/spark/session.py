"""Spark sessions: the table's own session, the active one, or a local one.

Workers must have this package. A session started here uses the Python that runs it, whether its
environment is activated or not; if another session lacks something, an error says what.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quiltwork.errors import UnsupportedError
from quiltwork.tables.input.frames import decode_dictionaries
from quiltwork.tables.table import Table, with_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_PYTHON = "PYSPARK_PYTHON"
"""Names the Python of the workers when a session starts; without it, `python3` on their path."""
_LACKING = re.compile(r"ModuleNotFoundError: No module named '(\w+)|PYTHON_VERSION_MISMATCH")
_TIMES = "spark.sql.timestampType"
"""The type of times without a zone; by default Spark would assign the session's zone."""


def spark_frame(table: Table) -> DataFrame:
    """Return the table as a Spark frame; a local frame is sent to the active or a local session."""
    if table.kind == "spark":
        frame: DataFrame = table.frame
        return frame
    session = spark_session()
    local = decode_dictionaries(table.data.arrow())
    # The setting belongs to the user's session, so it is restored.
    before = session.conf.get(_TIMES)
    session.conf.set(_TIMES, "TIMESTAMP_NTZ")
    try:
        frame_of_table: DataFrame = session.createDataFrame(local)
    finally:
        session.conf.set(_TIMES, before)
    return frame_of_table


def on_spark(table: Table) -> Table:
    """Return the table with a Spark frame."""
    return with_frame(table, spark_frame(table), ordinal=table.orders)


def map_batches(
    frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any
) -> DataFrame:
    """Map the batches of a frame with any column names.

    `mapInArrow` itself fails for column names with a dot.
    """
    names = frame.columns

    def named(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        return function(pa.RecordBatch.from_arrays(part.columns, names=names) for part in batches)

    # Temporary names without dots, which Spark would parse as field access.
    numbered = frame.toDF(*(f"column{place}" for place in range(len(names))))
    return numbered.mapInArrow(named, schema)


def quote_name(name: str) -> str:
    """Quote a column name for Spark, in which dots and backticks have a meaning.

    >>> quote_name("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def spark_session(settings: Mapping[str, str] | None = None, log_level: str | None = None) -> Any:
    """Return the active session, or start one; the arguments are for a new one."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedError(
            "backend='spark' needs PySpark: install it with pip install 'quiltwork[spark]'."
        ) from None
    # A user's session keeps its settings.
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    try:
        with _this_python():
            session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        reason = " ".join(str(error).split())
        raise UnsupportedError(
            "Spark did not start. It needs Java 17 or newer, on the path or named by JAVA_HOME: "
            f"{reason}"
        ) from None
    if log_level is not None:
        session.sparkContext.setLogLevel(log_level)
    return session


@contextmanager
def _this_python() -> Iterator[None]:
    """Make the workers of a new session run this Python, unless another one is configured."""
    named = _PYTHON in os.environ
    os.environ.setdefault(_PYTHON, sys.executable)
    try:
        yield
    finally:
        if not named:
            del os.environ[_PYTHON]


@contextmanager
def with_this_package() -> Iterator[None]:
    """Turn errors about a missing package or another Python on the workers into a clear message."""
    try:
        yield
    except Exception as error:
        # By name, since PySpark need not be installed to raise other errors.
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        match = _LACKING.search(str(error))
        if match is None:
            raise
        description = f"without the module {match[1]!r}" if match[1] else "of another version"
        raise UnsupportedError(
            f"The workers of this Spark session run a Python {description}. Install "
            "quiltwork[spark] for it, or set PYSPARK_PYTHON to a Python that has it before the "
            f"session starts; on this machine: {sys.executable}."
        ) from None
