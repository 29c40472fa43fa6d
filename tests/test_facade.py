"""`import quiltwork as qw`: every announced name is there, and type checkers see the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quiltwork


@pytest.mark.parametrize("name", quiltwork.__all__)
def test_every_announced_name_exists(name):
    assert getattr(quiltwork, name) is not None
    assert name in dir(quiltwork)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'laplace'"):
        quiltwork.laplace  # noqa: B018


LAZY = ["budget", "client", "counts", "holdout", "series", "tables"]
WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS = {"sklearn", "pandas", "polars", "pyarrow", "matplotlib", "psycopg", "pyspark"}
sys.meta_path.insert(0, Missing())
"""


def without_extras(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process where no extra of the package is installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + code], capture_output=True, text=True
    )


def test_looking_at_the_package_needs_no_extra():
    ran = without_extras(
        "import inspect, pydoc, quiltwork as qw\n"
        "members = dict(inspect.getmembers(qw))\n"
        "assert members.keys() == set(dir(qw)) >= set(qw.__all__)\n"
        "assert 'class MarkovChain' in pydoc.render_doc(qw, renderer=pydoc.plaintext)\n"
        "from quiltwork import *\n"
        "assert members['Table'] is Table and members['sklearn'] is sklearn\n"
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("package", ["", *LAZY], ids=lambda name: name or "quiltwork")
def test_every_folder_of_a_room_is_an_attribute_right_after_the_import(package):
    folder = Path(quiltwork.__file__).parent / package
    rooms = sorted(
        path.stem
        for path in folder.iterdir()
        if (path / "__init__.py").exists() or (not package and path.suffix == ".py")
        if not path.name.startswith("_")
    )
    ran = without_extras(
        f"import quiltwork{package and '.' + package} as room\nassert '__all__' not in dir(room)\n"
        f"print([getattr(room, name).__name__.split('.')[-1] for name in {rooms}])\n"
        "assert {*room.__all__} <= set(dir(room))\n"
        "assert {name for name in dir(room) if name[0] == '_'} <= {'__version__'}"
    )
    assert (ran.stdout, ran.returncode) == (f"{rooms}\n", 0), ran.stderr
