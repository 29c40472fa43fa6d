"""`import quiltwork as qw`: every announced name is there, and type checkers see the same ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quiltwork

TREE = ast.parse(Path(quiltwork.__file__).read_text(encoding="utf-8"))


def names_for_type_checkers() -> set[str]:
    blocks = [
        n for n in TREE.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    imports = [n for block in blocks for n in block.body if isinstance(n, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def test_type_checkers_see_every_lazy_name():
    lazy = {*quiltwork._HOME, *quiltwork._MODULES}
    assert names_for_type_checkers() == lazy


@pytest.mark.parametrize("name", quiltwork.__all__)
def test_every_announced_name_exists(name):
    assert getattr(quiltwork, name) is not None
    assert name in dir(quiltwork)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'laplace'"):
        quiltwork.laplace  # noqa: B018


ROOMS = [
    path.stem
    for path in Path(quiltwork.__file__).parent.iterdir()
    if path.suffix in ("", ".py") and not path.name.startswith("_")
]
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


def test_the_selector_says_that_scikit_learn_is_missing():
    ran = without_extras("import quiltwork as qw\nqw.sklearn.HoldoutSelector(None)")
    assert "UnsupportedError: scikit-learn is not installed" in ran.stderr


def test_every_room_is_an_attribute_right_after_the_import():
    assert set(ROOMS) == set(quiltwork._MODULES)
    ran = without_extras("import quiltwork\nprint(quiltwork.counts.__name__)")
    assert ran.stdout == "quiltwork.counts\n", ran.stderr


def test_so_are_the_rooms_of_tables():
    folder = Path(quiltwork.publishing.__file__).parent
    rooms = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    ran = without_extras(
        "import quiltwork.publishing as tables\n"
        f"print([getattr(tables, room).__name__.split('.')[-1] for room in {rooms}])\n"
        "assert set(dir(tables)) >= {*tables.__all__}"
    )
    assert ran.stdout == f"{rooms}\n", ran.stderr
