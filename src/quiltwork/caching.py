"""Caches: properties that are computed once, and results that live as long as an argument.

`cached_property` is that of Python 3.12, which has no lock shared by all instances. Up to Python
3.11 the lock lets one thread at a time compute a property, of whichever instance: threads that
price different debits wait for each other, and a fork in between leaves the lock held for ever.
Without it two threads may compute the same value twice, which is harmless.
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

    class cached_property:  # noqa: N801  (the name of the standard library)
        """A property that is computed on first access and then stored in the instance."""

        def __init__(self, function: Any) -> None:
            """Wrap a method."""
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute and store the value; later accesses find the instance's own attribute."""
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


def cached_by_owner(function: Function) -> Function:
    """Cache a function's results by its arguments, as long as the first argument lives.

    Cost: a dictionary lookup for each call; the results of an owner are freed with it.
    """
    caches: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()

    @wraps(function)
    def cached(owner: Any, *arguments: Any) -> Any:
        results = caches.setdefault(owner, {})
        if arguments not in results:
            results[arguments] = function(owner, *arguments)
        return results[arguments]

    return cached  # type: ignore[return-value]


__all__ = ["cached_by_owner", "cached_property"]
