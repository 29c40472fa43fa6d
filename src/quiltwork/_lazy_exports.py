"""Rooms that import what they offer on first use, so that a command pays for what it needs.

The stub `__init__.pyi` beside a room's `__init__.py` is the one list of what it offers: type
checkers and editors read it, and so does `lazy_exports`.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_exports(
    room: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room, from its stub's relative imports.

    Folders and modules of the room are attributes, but not among the names of a star import.
    """
    with open(f"{file.removesuffix('c')}i", "rb") as stub:
        tree = ast.parse(stub.read())
    homes: dict[str, str | None] = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        home = importlib.import_module(room if homes[name] is None else f"{room}.{homes[name]}")
        if name not in vars(home) and (homes[name] is None or not hasattr(home, name)):
            importlib.import_module(f"{home.__name__}.{name}")  # then it is an attribute
        value = getattr(home, name)
        setattr(sys.modules[room], name, value)
        return value

    names = sorted(name for name, home in homes.items() if home is not None)
    return get, lambda: sorted(homes), names
