"""Which function a custom query asks: a digest of its code and of what the code uses.

A ledger returns the stored answer to a repeated key, so it must tell functions of one name apart.
The digest covers bytecode, constants, defaults, closures, attributes of the function, whatever of
its own module the code refers to, and data that it takes from other modules by name
(`config.LIMIT`, `config.LIMITS["a"]`, `config.part.LIMIT`). It cannot notice code of other modules
that changes under its name, attributes of their classes and functions, nor files, databases or
clocks that a function reads. Code that looks names up as text (`globals()`, `eval`, `getattr`), or
imports while it runs, has no digest. Equal across processes, not across versions of Python. Cost:
the size of the code and of the data in it.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_BY_TEXT = {"__import__", "eval", "exec", "globals", "locals", "vars", "getattr", "attrgetter"}
_BY_TEXT |= {"__dict__", "__globals__", "__builtins__", "__getattribute__", "modules"}
_BY_TEXT |= {"import_module", "_getframe", "currentframe"}
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class _UnknownError(Exception):
    """Something of which a digest would say too little."""


def digest_of(function: Callable[..., Any]) -> str | None:
    """Return a SHA-256 of what the function computes; None if something in it has no digest.

    >>> digest_of(lambda x: x.sum()) == digest_of(lambda x: x.sum())
    True
    >>> digest_of(lambda x: x.sum()) == digest_of(lambda x: 2 * x.sum())
    False
    """
    try:
        writer = _Writer(_home(function))
        text = writer.written(function)
        return hashlib.sha256(text + writer.taken_from_modules()).hexdigest()
    except (_UnknownError, RecursionError):
        return None


def _home(function: Any) -> str | None:
    """The module of a function written in Python, also where it is bound or partly applied."""
    while isinstance(function, (functools.partial, types.MethodType)):
        function = getattr(function, "func", None) or getattr(function, "__func__", None)
    return function.__module__ if isinstance(function, types.FunctionType) else None


def _content(cell: types.CellType) -> Any:
    """What a name of an enclosing function stands for; it may not stand for anything yet."""
    try:
        return cell.cell_contents
    except ValueError:
        raise _UnknownError from None


@dataclass(frozen=True)
class _Writer:
    """Writes values so that different ones become different bytes."""

    own: str | None
    functions: dict[int, int] = field(default_factory=dict)
    modules: dict[str, types.ModuleType] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def written(self, value: Any) -> bytes:
        kind = type(value)
        if kind in _PLAIN:
            return f"{kind.__name__}:{value!r};".encode("utf-8", "surrogatepass")
        if id(value) in self.functions:  # called twice, or calls itself
            return b"again:%d;" % self.functions[id(value)]
        parts = b"".join(map(self.written, self.parts(value)))
        return b"%s:%d:%s;" % (kind.__name__.encode(), len(parts), parts)

    def parts(self, value: Any) -> Iterator[Any]:
        match value:
            case types.ModuleType():
                self.modules[value.__name__] = value
                yield value.__name__
            case _ if self.is_foreign(value):
                if value.__qualname__ in _BY_TEXT:
                    raise _UnknownError
                yield from (value.__module__, value.__qualname__)
            case tuple() | list():
                yield from value
            case dict():
                yield from value.items()
            case set() | frozenset():
                yield from sorted(map(self.written, value))
            case np.ndarray() | np.generic() if value.dtype.kind in "biufcSU":
                yield from (str(value.dtype), np.shape(value), np.asarray(value).tobytes())
            case types.CodeType():
                yield from (value.co_code, value.co_consts, value.co_names, value.co_varnames)
                yield from (value.co_freevars, value.co_cellvars, value.co_exceptiontable)
            case types.FunctionType():
                self.functions[id(value)] = len(self.functions)
                yield from (value.__code__, value.__defaults__, value.__kwdefaults__)
                yield value.__dict__
                yield from map(_content, value.__closure__ or ())
                yield from self.globals_of(value)
            case types.MethodType():
                yield from (value.__func__, value.__self__)
            case functools.partial():
                yield from (value.func, value.args, value.keywords)
            case _:
                raise _UnknownError

    def is_foreign(self, value: Any) -> bool:
        """Whether another module defines it under its name."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str):
            return False
        if module in (self.own, "__main__"):
            return False
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        return found is value

    def globals_of(self, function: types.FunctionType) -> Iterator[Any]:
        """The names of the function's module that its code mentions, and what they stand for."""
        mentioned = set(_names(function.__code__))
        if mentioned & _BY_TEXT:
            raise _UnknownError
        self.names.update(mentioned)
        for name in sorted(mentioned & function.__globals__.keys()):
            yield from (name, function.__globals__[name])

    def taken_from_modules(self) -> bytes:
        """The data that any code here may take from any module here, by a name it mentions."""
        text, known = b"", (-1, -1)
        while known != (known := (len(self.modules), len(self.names))):
            for module, holder in sorted(self.modules.items()):
                inner = vars(holder)
                for name in sorted(self.names & inner.keys()):
                    if isinstance(inner[name], types.ModuleType):
                        self.modules[inner[name].__name__] = inner[name]
                    elif not callable(inner[name]):
                        text += self.written((module, name, inner[name]))
        return text


def _names(code: types.CodeType) -> Iterator[str]:
    if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(code)):
        raise _UnknownError
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
