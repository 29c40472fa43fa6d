"""How much at once, and how fast: places for those who ask, and bodies within limits.

One token holds at most half of the places, for questions and for files; what is more waits, and is
not read meanwhile. A body that stops coming, or drips, gives its place back, so that nobody keeps
all others waiting. Python computes in one thread at a time: threads beyond two or three only take
turns, so few questions are worked on at once, and who reads does not wait behind those who ask.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request

from quiltwork.service.problems import Problem
from quiltwork.service.settings import Limits

Result = TypeVar("Result")
Kind: TypeAlias = Literal["place", "file", "read", "change"]
_SLOWEST = 20_000
"""Bytes a second, on average, from a body that is taken."""


class ConcurrencyLimiter:
    """How many requests are worked on at the same time; used by one event loop."""

    def __init__(self, limits: Limits) -> None:
        """Take how many requests of each kind are worked on at once."""
        self._most: dict[Kind, int] = {
            "place": limits.requests,
            "file": limits.uploads,
            "read": limits.reads,
            "change": limits.changes,
        }
        self._all = {kind: anyio.CapacityLimiter(most) for kind, most in self._most.items()}
        self._unlimited = anyio.CapacityLimiter(math.inf)  # threads of those with a file's place
        self._own: WeakValueDictionary[tuple[str, Kind], anyio.CapacityLimiter] = (
            WeakValueDictionary()
        )

    def _of(self, token: str, kind: Kind) -> anyio.CapacityLimiter:
        """Half of the places of a kind, for one token."""
        fresh = anyio.CapacityLimiter(max(1, self._most[kind] // 2))
        return self._own.setdefault((token, kind), fresh)

    @asynccontextmanager
    async def place(self, token: str, *, file: bool) -> AsyncIterator[None]:
        """Wait for a place among those of one token, and with a file for one among all."""
        if not file:
            async with self._of(token, "place"):
                yield
            return
        async with self._of(token, "file"), self._all["file"]:
            yield

    async def run(
        self, work: Callable[[], Result], token: str, *, file: bool, reads: bool
    ) -> Result:
        """Do some work in a thread, once its turn has come."""
        if file:
            return await run_sync(work, limiter=self._unlimited)
        kind: Kind = "read" if reads else "change"
        async with self._of(token, kind):
            return await run_sync(work, limiter=self._all[kind])


async def limited_body(
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


def media_type_of(request: Request) -> str:
    """Return what kind of body a request says it has."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def too_large(most: int) -> Problem:
    """What is said of a body with more bytes than are taken."""
    return Problem(413, "too-large", f"A body may have {most:,} bytes here.")


def _too_slow() -> Problem:
    return Problem(408, "too-slow", "It comes too slowly, or stopped coming; send it again.")
