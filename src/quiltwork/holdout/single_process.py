"""`SingleProcess`: objects with a budget that cannot be copied, pickled or used in another process.

A copy would answer with the whole budget again. Their state is durable, in memory or in a sealed
log, before an answer that depends on it is shown.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.holdout.sealed_log import SealedLog, Secret


class SingleProcess:
    """Base class of holdouts and boards: owned by one process, not copyable, logged."""

    def __init__(self, secret: Secret, log: SealedLog | None) -> None:
        self._secret, self._log, self._closed = secret, log, False
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._asking = threading.local()

    def close(self) -> None:
        """Stop answering and release the file, so that another process may resume it."""
        self._closed = True
        if self._log is not None:
            self._log.close()

    def record(self, line: Mapping[str, Any]) -> None:
        """Append a line that is no submission: a team's choice, or the end of the board."""
        with self._alone():
            SingleProcess._check_open(self)
            self._append([line])

    def _append(self, bodies: Sequence[Mapping[str, Any]]) -> str:
        """Append lines durably; on failure close, because the file's state is then unknown.

        Returns the authentication code of the last line.
        """
        with self._closing():
            if self._log is None or not bodies:
                return ""
            self._secret = self._log.append(bodies, self._secret)
            return self._log.code

    def _keep(self, secret: Secret) -> None:
        """Replace the secret file; durable before the new secret is used."""
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
                f"This {type(self).__name__} was closed, by close() or after a failed write. If it "
                "has a file, open it again with resume."
            )

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Refuse a question that a statistic asks from the thread that evaluates it.

        No lock is held meanwhile: a statistic may wait for other threads, and these may ask.
        """
        self._check_owner()
        if getattr(self._asking, "now", False):
            raise InvalidInputError(
                "A statistic asked the holdout while the holdout was evaluating it. Ask first, "
                "then use the answer in the next statistic."
            )
        self._asking.now = True
        try:
            yield
        finally:
            self._asking.now = False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock while the budget changes; statistics are never called inside."""
        self._check_owner()  # first: after a fork the copied lock may be held for ever
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
