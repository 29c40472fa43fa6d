"""Names of arguments in messages, in the words of the interface that is used.

A message such as "keep the gaps, with missing='state'" helps the caller of a function, not somebody
who typed a command. So it is written with `argument("missing", "state")`, which gives Python's
words unless another interface is active (`speaking`) and has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Interface(Protocol):
    """An interface other than Python, such as the command line."""

    def is_used(self) -> bool:
        """Whether the current thread serves a user of this interface."""

    def argument(self, name: str, value: tuple[object, ...]) -> str | None:
        """Name an argument, with a value if there is one; None for Python's name."""


_interfaces: list[Interface] = []


@contextmanager
def speaking(interface: Interface) -> Iterator[None]:
    """Write messages in the words of an interface during a block."""
    _interfaces.append(interface)
    try:
        yield
    finally:
        _interfaces.remove(interface)


def argument(name: str, *value: object) -> str:
    """Name an argument, with the value to pass if one is given.

    >>> argument("epsilon"), argument("missing", "state"), argument("limits", (0, 100))
    ('epsilon', "missing='state'", 'limits=(0, 100)')
    """
    for interface in _interfaces[-1:]:
        if interface.is_used() and (words := interface.argument(name, value)) is not None:
            return words
    return f"{name}={value[0]!r}" if value else name


def either(called: str, typed: str) -> str:
    """Return the Python call, or what to type where a command was typed.

    >>> either("query.on(start, stop)", "--window START:STOP")
    'query.on(start, stop)'
    """
    return typed if any(interface.is_used() for interface in _interfaces[-1:]) else called
