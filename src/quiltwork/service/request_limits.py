"""Concurrency limits for requests, and size and time limits for their bodies.

One token holds at most half of the slots, for requests and for uploads; what exceeds that waits
unread. A body that stalls or trickles loses its slot, so one client cannot keep all others waiting.
Python runs one thread at a time, so more than a few worker threads would only take turns: few
requests are worked on at once, and reads do not queue behind questions.
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
SlotKind: TypeAlias = Literal["request", "file", "read", "change"]
_MIN_BYTES_PER_SECOND = 20_000
"""The average rate below which a body counts as trickling."""


class ConcurrencyLimiter:
    """Limits on how many requests run at the same time, in total and for each token.

    Used by one event loop.
    """

    def __init__(self, limits: Limits) -> None:
        """Read the number of slots of each kind."""
        self._sizes: dict[SlotKind, int] = {
            "request": limits.requests,
            "file": limits.uploads,
            "read": limits.reads,
            "change": limits.changes,
        }
        self._shared = {kind: anyio.CapacityLimiter(size) for kind, size in self._sizes.items()}
        self._unlimited = anyio.CapacityLimiter(math.inf)  # threads of uploads that have a slot
        # Weak values: the limiter of a token without requests in flight is dropped by itself.
        self._by_token: WeakValueDictionary[tuple[str, SlotKind], anyio.CapacityLimiter] = (
            WeakValueDictionary()
        )

    def _of_token(self, token: str, kind: SlotKind) -> anyio.CapacityLimiter:
        """Return the limiter for one token: half of all slots of a kind."""
        fresh = anyio.CapacityLimiter(max(1, self._sizes[kind] // 2))
        return self._by_token.setdefault((token, kind), fresh)

    @asynccontextmanager
    async def slot(self, token: str, *, file: bool) -> AsyncIterator[None]:
        """Wait for one of the token's slots, and for an upload also for a shared one."""
        if not file:
            async with self._of_token(token, "request"):
                yield
            return
        async with self._of_token(token, "file"), self._shared["file"]:
            yield

    async def run(
        self, work: Callable[[], Result], token: str, *, file: bool, reads: bool
    ) -> Result:
        """Run work in a thread as soon as the limits allow it."""
        if file:
            return await run_sync(work, limiter=self._unlimited)
        kind: SlotKind = "read" if reads else "change"
        async with self._of_token(token, kind):
            return await run_sync(work, limiter=self._shared[kind])


async def limited_body(
    stream: AsyncIterator[bytes], max_bytes: int, pause: float
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a body; 413 beyond `max_bytes`, 408 if it stalls or trickles.

    A body stalls when nothing arrives for `pause` seconds.
    """
    start, size = time.monotonic(), 0
    while True:
        try:
            with anyio.fail_after(pause):
                part = await anext(stream, None)
        except TimeoutError:
            raise _too_slow() from None
        if part is None:
            return
        size += len(part)
        if size > max_bytes:
            raise too_large(max_bytes)
        if time.monotonic() - start > pause + size / _MIN_BYTES_PER_SECOND:
            raise _too_slow()
        yield part


def media_type_of(request: Request) -> str:
    """Return the media type of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def too_large(max_bytes: int) -> Problem:
    """Return the refusal of an oversized body."""
    return Problem(413, "too-large", f"The body is too large: at most {max_bytes:,} bytes.")


def _too_slow() -> Problem:
    return Problem(408, "too-slow", "The body arrived too slowly or stopped. Send it again.")
