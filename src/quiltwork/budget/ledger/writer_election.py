"""Writer election: of the processes waiting to write to one file, one polls the lock, others sleep.

A process is elected by binding an abstract local socket whose name stands for the file: only one
process can bind it, and the system frees it when the process ends in any way. A process writes
fastest while its data are still in the processor's cache, so the last elected process may be
elected again for a short while; then it sleeps before it tries, and others come in. Cost: three
system calls for each election.

Only speed depends on this: where abstract sockets do not exist (they are Linux's), or another
program holds the name, a process polls the lock without being elected.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STREAK = 0.03
"""Seconds for which a process may be elected repeatedly before it lets others in."""
_NAP, _NAP_SHARE = 0.003, 0.3
"""Seconds between two tries: at least this, and this share of the usual waiting time."""
_HAS_ABSTRACT_SOCKETS = sys.platform == "linux"


class WriterElection:
    """One process's part in the elections for one file."""

    def __init__(self) -> None:
        """Start without any election won."""
        self._streak_began = -_STREAK
        self._usual_wait = 0.0

    @contextmanager
    def elected(self, file: str, wait: float) -> Iterator[bool]:
        """Wait up to so many seconds to be elected, and stay elected meanwhile; False if not."""
        name = f"\0quiltwork-{os.geteuid()}-{file}" if _HAS_ABSTRACT_SOCKETS else ""
        bound = self._bind_within(name, wait) if name else None
        if bound is None:
            yield False
        else:
            with bound:
                yield True

    def _bind_within(self, name: str, wait: float) -> socket.socket | None:
        start, nap = time.monotonic(), max(_NAP, _NAP_SHARE * self._usual_wait)
        if _STREAK < start - self._streak_began < 2 * _STREAK:
            time.sleep(nap)
        while (bound := _bind(name)) is None and time.monotonic() < start + wait:
            time.sleep(nap)
        now = time.monotonic()
        if now - self._streak_began > _STREAK:
            self._streak_began = now
            self._usual_wait = 0.8 * self._usual_wait + 0.2 * (now - start)
        return bound


def _bind(name: str) -> socket.socket | None:
    """Bind a name until the socket is closed; None if another process has it."""
    try:
        bound = socket.socket(socket.AF_UNIX)
    except OSError:  # too many open files
        return None
    try:
        bound.bind(name)
    except OSError:
        bound.close()
        return None
    return bound
