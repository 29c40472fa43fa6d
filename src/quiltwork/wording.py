"""How a sentence names an argument: in the words of the interface that was used.

A refusal such as "keep the gaps, with missing='state'" helps who called a function, not who typed a
command. So it is written with `argument("missing", "state")`. Words are Python's, unless an
interface of another kind is at work (`speaking`) and has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Interface(Protocol):
    """What people use instead of Python, such as a command line."""

    def is_used(self) -> bool:
        """Whether this thread works for somebody who uses it."""

    def argument(self, name: str, value: tuple[object, ...]) -> str | None:
        """Name an argument, perhaps with a value; None if it has no other words."""


_interfaces: list[Interface] = []


@contextmanager
def speaking(interface: Interface) -> Iterator[None]:
    """Let what is said during a block be in the words of an interface."""
    _interfaces.append(interface)
    try:
        yield
    finally:
        _interfaces.remove(interface)


def argument(name: str, *value: object) -> str:
    """Name an argument, or an argument with a value to pass.

    >>> argument("epsilon"), argument("missing", "state"), argument("limits", (0, 100))
    ('epsilon', "missing='state'", 'limits=(0, 100)')
    """
    for interface in _interfaces[-1:]:
        if interface.is_used() and (said := interface.argument(name, value)) is not None:
            return said
    return f"{name}={value[0]!r}" if value else name


def either(called: str, typed: str) -> str:
    """Say what to call, or what to type where a command was typed.

    >>> either("query.on(start, stop)", "--window START:STOP")
    'query.on(start, stop)'
    """
    return typed if any(interface.is_used() for interface in _interfaces[-1:]) else called
