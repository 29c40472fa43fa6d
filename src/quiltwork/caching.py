"""What is computed once: properties, and what functions find for an object.

`cached_property` is as it is from Python 3.12 on, without a lock that all instances share. Up to
3.11 one thread at a time computes a property, of whichever instance, so that threads which price
different debits wait for each other, and a fork in between leaves the lock held for ever. Without
it two threads may compute the same value of one instance twice, which does no harm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

Function = TypeVar("Function", bound=Callable[..., Any])

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801  (the name it stands for)
        """Compute a property when it is asked for first, and keep it in the instance."""

        def __init__(self, function: Any) -> None:
            """Take the place of a method."""
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute and keep; later the instance's own attribute is found before this."""
            if instance is None:
                return self
            found = instance.__dict__[self.name] = self.function(instance)
            return found


def cached_by_owner(function: Function) -> Function:
    """Keep what a function finds as long as its first argument lives, for all others it had."""
    known: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()

    @wraps(function)
    def kept(first: Any, *others: Any) -> Any:
        found = known.setdefault(first, {})
        if others not in found:
            found[others] = function(first, *others)
        return found[others]

    return kept  # type: ignore[return-value]


__all__ = ["cached_by_owner", "cached_property"]
