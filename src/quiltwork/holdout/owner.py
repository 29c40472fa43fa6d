"""One owner: objects with a budget refuse to be copied, pickled or used in another process.

What they must not forget is kept in memory, or in files before anybody sees it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.holdout.sealed_log import SealedLog, Secret


class OneOwner:
    """An object with a budget: it belongs to one process, nothing copies it, its lines are kept."""

    def __init__(self, secret: Secret, log: SealedLog | None) -> None:
        self._secret, self._log, self._closed = secret, log, False
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._asking = threading.local()

    def close(self) -> None:
        """Answer no more, and let go of the file, so that another process may resume it."""
        self._closed = True
        if self._log is not None:
            self._log.close()

    def record(self, line: Mapping[str, Any]) -> None:
        """Keep a line that is no submission: what teams name for the end, and the end."""
        with self._alone():
            OneOwner._check_open(self)
            self._append([line])

    def _append(self, bodies: Sequence[Mapping[str, Any]]) -> str:
        """Keep lines for good, or close: what is on the disk is not known then.

        Returns the code that the last of them carries in the file.
        """
        with self._closing():
            if self._log is None or not bodies:
                return ""
            self._secret = self._log.append(bodies, self._secret)
            return self._log.code

    def _keep(self, secret: Secret) -> None:
        """Replace the secret, for good before it is used."""
        with self._closing():
            if self._log is not None:
                self._log.keep(secret)
            self._secret = secret

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(
                f"This {type(self).__name__} is closed, by close() or because a write failed; go "
                "on with its resume if it has a file."
            )

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

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse
