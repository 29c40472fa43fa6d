"""Places for requests, and the pace at which a body must come: nobody keeps all others waiting.

One token holds at most half of the places, for questions and for files; what is more waits, and is
not read meanwhile. A body that stops coming, or drips, gives its place back.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import anyio

from quiltwork.service.problems import Problem
from quiltwork.service.settings import Limits

_SLOWEST = 20_000
"""Bytes a second, on average, from a body that is taken."""


class Turns:
    """Who may be at work at the same time; used by one event loop."""

    def __init__(self, limits: Limits) -> None:
        """Take how many requests, and how many files, are worked on at once."""
        self.threads = anyio.CapacityLimiter(math.inf)
        """For threads of those who have a place."""
        self._files = anyio.CapacityLimiter(limits.uploads)
        self._half = {False: max(1, limits.threads // 2), True: max(1, limits.uploads // 2)}
        self._own: WeakValueDictionary[tuple[str, bool], anyio.CapacityLimiter] = (
            WeakValueDictionary()
        )

    @asynccontextmanager
    async def of(self, token: str, *, file: bool) -> AsyncIterator[None]:
        """Wait for a place among those of one token, and with a file for one among all."""
        fresh = anyio.CapacityLimiter(self._half[file])
        async with self._own.setdefault((token, file), fresh):
            if not file:
                yield
                return
            async with self._files:
                yield


async def paced(
    stream: AsyncIterator[bytes], most: int, pause: float
) -> AsyncGenerator[bytes, None]:
    """Pass on a body; 408 if it stops for a `pause` or drips, 413 if it has over `most` bytes."""
    begun, size = time.monotonic(), 0
    while True:
        try:
            with anyio.fail_after(pause):
                part = await anext(stream, None)
        except TimeoutError:
            raise _too_slow() from None
        if part is None:
            return
        size += len(part)
        if size > most:
            raise too_large(most)
        if time.monotonic() - begun > pause + size / _SLOWEST:
            raise _too_slow()
        yield part


def too_large(most: int) -> Problem:
    """What is said of a body with more bytes than are taken."""
    return Problem(413, "too-large", f"A body may have {most:,} bytes here.")


def _too_slow() -> Problem:
    return Problem(408, "too-slow", "It comes too slowly, or stopped coming; send it again.")
