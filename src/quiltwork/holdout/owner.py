"""One owner: objects with a budget refuse to be copied, pickled or used in another process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from quiltwork.errors import InvalidInputError, UnsupportedError


class OneOwner:
    """Remembers the process that made it; a fork cannot use it, and nothing can copy it."""

    def __init__(self) -> None:
        """Belong to this process."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._asking = threading.local()

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Refuse a question that a statistic asks in the thread that evaluates it.

        No lock is held: a statistic may wait for other threads, and these may ask.
        """
        self._check_owner()
        if getattr(self._asking, "now", False):
            raise InvalidInputError(
                "A statistic asked the holdout that was evaluating it. Ask first, and use the "
                "answer in the next statistic."
            )
        self._asking.now = True
        try:
            yield
        finally:
            self._asking.now = False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out while the budget changes; no statistic is called meanwhile."""
        self._check_owner()  # before the lock, which a fork may have copied while it was held
        with self._lock:
            yield

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise UnsupportedError(
                "This holdout belongs to the process that made it: a copy in another process "
                "would answer beyond the budget. Ask there, or use n_jobs=1."
            )

    def _refuse(self, *_: Any) -> NoReturn:
        raise UnsupportedError(
            "A holdout cannot be copied or sent to another process: each copy would answer with "
            "the whole budget. Share this object, or use n_jobs=1."
        )

    __copy__ = _refuse
    __deepcopy__ = _refuse
    __reduce__ = _refuse
    __reduce_ex__ = _refuse
