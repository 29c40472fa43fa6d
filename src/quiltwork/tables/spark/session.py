"""Where Spark comes from: the table's own session, the active one, or a local one.

Workers must find this package. A session that is started here has the Python that runs it, whether
its environment is activated or not; of another session, what is missing is said in a sentence.
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
"""The Python of the workers, read when a session starts; `python3` on their path without it."""
_LACKING = re.compile(r"ModuleNotFoundError: No module named '(\w+)|PYTHON_VERSION_MISMATCH")
_TIMES = "spark.sql.timestampType"
"""What a time without a zone becomes: left alone, Spark would give it the session's zone."""


def spark_frame(table: Table) -> DataFrame:
    """Return the table as a Spark frame; a local frame goes to the active or a local session."""
    if table.kind == "spark":
        frame: DataFrame = table.frame
        return frame
    session = spark_session()
    local = decode_dictionaries(table.data.arrow())
    before = session.conf.get(_TIMES)
    session.conf.set(_TIMES, "TIMESTAMP_NTZ")
    try:
        made: DataFrame = session.createDataFrame(local)
    finally:
        session.conf.set(_TIMES, before)
    return made


def on_spark(table: Table) -> Table:
    """Return the table as one of a Spark frame."""
    return with_frame(table, spark_frame(table), ordinal=table.orders)


def mapped(
    frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], schema: Any
) -> DataFrame:
    """Map batches of a frame whose columns have any names.

    `mapInArrow` itself does not find a column that has a dot in its name.
    """
    names = frame.columns

    def named(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        return function(pa.RecordBatch.from_arrays(part.columns, names=names) for part in batches)

    numbered = frame.toDF(*(f"column{place}" for place in range(len(names))))
    return numbered.mapInArrow(named, schema)


def quoted(name: str) -> str:
    """Name a column for Spark, where dots and backticks have a meaning.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def spark_session(settings: Mapping[str, str] | None = None, log_level: str | None = None) -> Any:
    """Return the active session, or start one; the rest is for one that is started."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedError(
            "backend='spark' needs PySpark: install it with pip install 'quiltwork[spark]'."
        ) from None
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
    """Let the workers of a session that starts run this Python, unless another is named."""
    named = _PYTHON in os.environ
    os.environ.setdefault(_PYTHON, sys.executable)
    try:
        yield
    finally:
        if not named:
            del os.environ[_PYTHON]


@contextmanager
def with_this_package() -> Iterator[None]:
    """Say what to do where the workers of someone's own session do not find this package."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        lacking = _LACKING.search(str(error))
        if lacking is None:
            raise
        what = f"without the module {lacking[1]!r}" if lacking[1] else "of another version"
        raise UnsupportedError(
            f"The workers of this Spark run a Python {what}. Install quiltwork[spark] for it, or "
            "name a Python that has it in PYSPARK_PYTHON before the session is made; on this "
            f"machine: {sys.executable}."
        ) from None
