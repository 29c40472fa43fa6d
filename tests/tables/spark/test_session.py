"""Which Python the workers of a session run. No Spark is started here."""

from __future__ import annotations

import os
import sys

import pytest

from quiltwork.errors import UnsupportedError
from quiltwork.tables.spark.session import spark_session, with_this_package

pyspark = pytest.importorskip("pyspark")


class Builder:
    """Stands for Spark's: keeps what the environment says when a session starts."""

    def config(self, name, value):
        return self

    def getOrCreate(self):  # noqa: N802  (Spark's name)
        return os.environ.get("PYSPARK_PYTHON")


@pytest.mark.parametrize("named", [None, "some/python"])
def test_a_session_that_is_started_runs_this_python_unless_another_is_named(monkeypatch, named):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", Builder())
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if named is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", named)
    assert spark_session() == (named or sys.executable)
    assert os.environ.get("PYSPARK_PYTHON") == named


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("ModuleNotFoundError: No module named 'quiltwork.tables'", "module 'quiltwork'"),
        ("Error from python worker: (ModuleNotFoundError: No module named 'numpy')", "'numpy'"),
        ("[PYTHON_VERSION_MISMATCH] 3.9 and 3.11", "of another version"),
    ],
)
def test_workers_without_the_package_are_told_in_a_sentence(words, told):
    from pyspark.errors import PySparkException

    with pytest.raises(UnsupportedError, match="PYSPARK_PYTHON") as refused, with_this_package():
        raise PySparkException(words)
    assert told in str(refused.value)


def test_other_failures_stay_what_they_are():
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException), with_this_package():
        raise PySparkException("No space left on device")
    with pytest.raises(KeyError), with_this_package():
        raise KeyError("ModuleNotFoundError: No module named 'x'")
