"""Lazy imports: a room loads what it exports on first use, so that commands pay for what they need.

The stub `__init__.pyi` beside a room's `__init__.py` is the one list of its exports: type checkers
and editors read it, and so does `lazy_exports`.
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
    """Return `__getattr__`, `__dir__` and `__all__` of a room, from the imports in its stub.

    Folders and modules of the room are attributes, but are not part of a star import.
    """
    with open(f"{file.removesuffix('c')}i", "rb") as stub:
        tree = ast.parse(stub.read())
    modules: dict[str, str | None] = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        path = room if modules[name] is None else f"{room}.{modules[name]}"
        module = importlib.import_module(path)
        if name not in vars(module) and (modules[name] is None or not hasattr(module, name)):
            importlib.import_module(f"{module.__name__}.{name}")  # which makes it an attribute
        value = getattr(module, name)
        setattr(sys.modules[room], name, value)  # the next access does not come here
        return value

    names = sorted(name for name, module in modules.items() if module is not None)
    return get, lambda: sorted(modules), names
