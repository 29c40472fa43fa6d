"""Processes that wait to write to one file: one is next and looks for the lock, the others sleep.

A process is quickest while its data are still in the processor, so one that has just written may be
next again for a while, before those who sleep; then it goes to the end of the line. The line is a
local socket under a name that stands for the file. Its first process opens it, the others connect
to it and sleep. The first hands the socket itself on, with all others still connected to it, to
the one that has waited longest; when its process ends in any way, the system closes the socket, and
those who wait begin again. Cost: some ten calls to the system for each place in the line.

Only speed rests on it: where there are no such sockets (they are Linux's), or somebody keeps one, a
process looks for the lock without being next.
"""

from __future__ import annotations

import array
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STREAK = 0.02
"""Seconds for which a process that came from the line may be next again at once."""
_LOOK = 0.002
"""Seconds after which the first of the line looks again whether it can be next."""
_AGAIN = 0.0005
"""Seconds after which a process asks again that met the end of another one's place."""
_MOST = 1024
"""So many processes wait in line."""


class WaitingLine:
    """The processes of one user that wait for one file, as one of them sees it."""

    def __init__(self) -> None:
        """Have had no turn."""
        self._streak_ends = 0.0

    @contextmanager
    def next(self, file: str, wait: float) -> Iterator[bool]:
        """Wait so many seconds to be the next, and be that meanwhile; False if one is not."""
        place = None
        with suppress(OSError):  # of a process with too many files
            place = self._place(file, time.monotonic() + wait)
        if place is None:
            yield False
        else:
            with place:
                yield True

    def _place(self, file: str, until: float) -> socket.socket | None:
        if sys.platform != "linux":
            return None
        name = f"\0quiltwork-{os.geteuid()}-{file}"
        place = _taken(f"{name}-next") if time.monotonic() < self._streak_ends else None
        if place is not None:
            return place
        first = _first_of(f"{name}-line", until)
        if first is None:
            return None
        try:
            while (place := _taken(f"{name}-next")) is None and time.monotonic() < until:
                time.sleep(_LOOK)
        finally:
            _hand_on(first)
        self._streak_ends = time.monotonic() + _STREAK
        return place


def _taken(name: str) -> socket.socket | None:
    """Take a name, until the socket is closed; None if another process has it."""
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        place.bind(name)
    except OSError:
        place.close()
        return None
    return place


def _first_of(name: str, until: float) -> socket.socket | None:
    """Wait until one is the first of a line; None if one is not by then, or it is another's."""
    while time.monotonic() < until:
        line = _taken(name)
        if line is not None:
            line.listen(_MOST)
            line.setblocking(False)
            return line
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting:
            try:
                waiting.settimeout(max(until - time.monotonic(), _AGAIN))
                waiting.connect(name)
                if _user_of(waiting) != os.geteuid():
                    return None
                size = socket.CMSG_LEN(array.array("i").itemsize)
                _, given, *_ = waiting.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
            except OSError:  # the first has just come, or gone
                time.sleep(_AGAIN)
                continue
        for *_, data in given:  # nothing, if the first has gone
            return socket.socket(fileno=array.array("i", data)[0])
    return None


def _hand_on(line: socket.socket) -> None:
    """Make the one who has waited longest the first."""
    with line, suppress(OSError):  # which says that nobody waits
        while True:
            waiting, _ = line.accept()
            with waiting, suppress(OSError):  # which says that this one waits no more
                socket.send_fds(waiting, [b"\0"], [line.fileno()])
                return


def _user_of(other: socket.socket) -> int:
    """Who is at the other end, as the system says."""
    form = "3i"  # process, user, group
    found = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(form))
    return int(struct.unpack(form, found)[1])
