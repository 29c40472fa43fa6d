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
        self._holder: int | None = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out; refuse a question that is asked while another is evaluated."""
        if self._holder == threading.get_ident():
            raise InvalidInputError(
                "A statistic asked the holdout that was evaluating it. Ask first, and use the "
                "answer in the next statistic."
            )
        with self._lock:
            self._holder = threading.get_ident()
            try:
                self._check_owner()
                yield
            finally:
                self._holder = None

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
