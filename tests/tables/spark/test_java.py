"""A Java from the requirements starts with the options that Spark gives it."""

from __future__ import annotations

import subprocess

from evidence.local_spark import packaged_java_home


def test_the_packaged_java_starts_without_the_module_it_lacks():
    home = packaged_java_home()
    assert home is not None
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 'version "21' in done.stderr
