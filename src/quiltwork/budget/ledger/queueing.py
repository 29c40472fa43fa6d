"""Processes that wait to write to one file: one is next and looks for the lock, the others sleep.

Who is next has taken a name that stands for the file, as that of a local socket: one process can
have it, and the system takes it back when the process ends in any way. A process is quickest while
its data are still in the processor, so one that has just been next may be so again for a while;
then it sleeps before it asks, and others come in. Cost: three calls to the system for each time.

Only speed rests on it: where there are no such names (they are Linux's), or somebody keeps one, a
process looks for the lock without being next.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STREAK = 0.03
"""Seconds for which a process may be next again at once, and after which others come first."""
_NAP, _SHARE = 0.003, 0.3
"""Seconds after which a process asks again, at least, and as a share of what it usually waits."""


class TurnsOfProcesses:
    """The processes that wait for one file, as one of them sees it."""

    def __init__(self) -> None:
        """Have had no turn."""
        self._began = -_STREAK
        self._usual = 0.0

    @contextmanager
    def next(self, file: str, wait: float) -> Iterator[bool]:
        """Wait so many seconds to be the next, and be that meanwhile; False if one is not."""
        place = self._taken(f"\0quiltwork-{os.geteuid()}-{file}", wait) if _NAMED else None
        if place is None:
            yield False
        else:
            with place:
                yield True

    def _taken(self, name: str, wait: float) -> socket.socket | None:
        start, nap = time.monotonic(), max(_NAP, _SHARE * self._usual)
        if _STREAK < start - self._began < 2 * _STREAK:
            time.sleep(nap)
        while (place := _named(name)) is None and time.monotonic() < start + wait:
            time.sleep(nap)
        now = time.monotonic()
        if now - self._began > _STREAK:
            self._began, self._usual = now, 0.8 * self._usual + 0.2 * (now - start)
        return place


_NAMED = sys.platform == "linux"


def _named(name: str) -> socket.socket | None:
    """Take a name until the socket is closed; None if it cannot be had."""
    try:
        place = socket.socket(socket.AF_UNIX)
    except OSError:  # too many files
        return None
    try:
        place.bind(name)
    except OSError:
        place.close()
        return None
    return place
