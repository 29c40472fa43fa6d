"""`import quiltwork` brings in nothing beyond NumPy.

Seconds are not asserted here; `make bench ONLY=cold_start` measures the ratio to `import numpy`.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOADED = """import sys, json
before = set(sys.modules)
{code}
print(json.dumps(sorted(set(sys.modules) - before)))"""


def loaded_by(code: str) -> list[str]:
    """The modules a statement adds to a fresh process."""
    command = [sys.executable, "-c", LOADED.format(code=code)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout.splitlines()[-1])


def third_party(modules: list[str]) -> set[str]:
    tops = {module.split(".")[0] for module in modules}
    return {top for top in tops if top not in sys.stdlib_module_names} - {"quiltwork"}


def test_importing_loads_no_third_party_package_beyond_numpy():
    assert third_party(loaded_by("import quiltwork")) <= {"numpy"}


def test_importing_enters_no_room():
    own = {m for m in loaded_by("import quiltwork") if m.startswith("quiltwork")}
    assert own == {"quiltwork", "quiltwork._lazy_exports"}


def test_importing_loads_no_more_of_the_standard_library_than_numpy_does():
    numpy = set(loaded_by("import numpy"))
    own = {m for m in loaded_by("import quiltwork") if not m.startswith("quiltwork")}
    assert own - numpy <= {"__future__"}


@pytest.mark.parametrize("room", ["noise", "counts"])
def test_the_rooms_of_the_histogram_path_do_not_load_scipy(room):
    assert third_party(loaded_by(f"import quiltwork.{room}")) <= {"numpy"}


def test_reading_a_file_of_states_does_not_load_pandas(tmp_path):
    """Which takes longer to load than a release takes in all."""
    path = tmp_path / "rows.csv"
    path.write_text("at,state\n1,a\n2,b\n3,a\n")
    statement = f"from quiltwork.series import read_series; read_series({str(path)!r}, 'state')"
    loaded = loaded_by(statement)
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


ELSEWHERE = """import os, pkgutil, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid", "register_at_fork", "sched_getaffinity", "O_NOFOLLOW"):
    delattr(os, name)
del signal.SIGKILL, signal.SIGHUP
import quiltwork
modules = [one.name for one in pkgutil.walk_packages(quiltwork.__path__, "quiltwork.")]
for name in modules:
    if not name.endswith("__main__"):
        __import__(name)
print(len(modules))"""


def test_no_module_imports_what_other_systems_lack():
    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 400
