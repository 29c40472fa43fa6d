"""`import quiltwork as qw`: every announced name is there, and type checkers see the same ones."""

from __future__ import annotations

import ast
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
