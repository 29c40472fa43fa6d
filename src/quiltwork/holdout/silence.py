"""Silence while a statistic is evaluated on a holdout: no warning tells what it met there.

Warnings are off in the whole process from the first evaluation that begins to the last that ends,
because Python's filters belong to the process. No lock is held meanwhile, so that a statistic may
wait for other threads.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class _Silence:
    """Knows which threads need it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[int] = []
        self._caught = warnings.catch_warnings(record=True)

    def begin(self) -> None:
        with self._lock:
            self._threads.append(threading.get_ident())
            if len(self._threads) == 1:
                self._caught = warnings.catch_warnings(record=True)
                self._caught.__enter__()
                warnings.simplefilter("ignore")

    def end(self) -> None:
        with self._lock:
            self._threads.remove(threading.get_ident())
            self._lift()

    def after_fork(self) -> None:
        """Forget the threads that are not in this process."""
        self._lock = threading.Lock()
        before = self._threads
        self._threads = [one for one in before if one == threading.get_ident()]
        if before:
            self._lift()

    def _lift(self) -> None:
        if not self._threads:
            self._caught.__exit__(None, None, None)


_silence = _Silence()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence.after_fork)


@contextmanager
def silent() -> Iterator[None]:
    """Let no warning out of the block."""
    _silence.begin()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _silence.end()
