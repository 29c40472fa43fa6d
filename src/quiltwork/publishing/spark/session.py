"""Where Spark comes from: the table's own session, the active one, or a local one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quiltwork.errors import UnsupportedError
from quiltwork.publishing.frames import as_arrow, column_names
from quiltwork.publishing.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spark_frame(table: Table) -> DataFrame:
    """Return the table as a Spark frame; a local frame goes to the active or a local session.

    Raises:
        UnsupportedError: without PySpark.
    """
    if table.kind == "spark":
        frame: DataFrame = table.frame
        return frame
    session = _session()
    local = _plain(as_arrow(table.frame, column_names(table.frame)))
    made: DataFrame = session.createDataFrame(local)
    return made


def _session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedError(
            "backend='spark' needs PySpark: install it with pip install 'quiltwork[spark]'."
        ) from None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _plain(table: Any) -> Any:
    """Unpack dictionary columns, which Spark does not take."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, plain)
    return table
