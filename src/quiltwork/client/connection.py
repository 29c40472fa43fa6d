"""How a curator is reached: one request after the other, retried where that does no harm.

Everything that may be asked twice is asked again when the connection breaks or the curator is
restarting; a question is, because its key answers it once.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from quiltwork.arguments import instance
from quiltwork.errors import (
    BudgetExceeded,
    Forbidden,
    InvalidInputError,
    NotFound,
    NotPrivateError,
    QuiltworkError,
    StorageError,
    UnsupportedError,
)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BUSY = (502, 503, 504)
_ERRORS: dict[str, type[QuiltworkError]] = {
    "forbidden": Forbidden,
    "not-found": NotFound,
    "budget-exceeded": BudgetExceeded,
    "not-private": NotPrivateError,
    "unsupported": UnsupportedError,
    "storage": StorageError,
    "internal": StorageError,
}


class CuratorConnection:
    """The way to a curator, for one token."""

    def __init__(
        self,
        url: str,
        token: str,
        timeout: float = 60.0,
        pauses: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0),
    ) -> None:
        """Connect to nothing yet."""
        parts = urlsplit(instance(url, str, "url"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInputError("A curator's URL is written as https://curator.example.org.")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise InvalidInputError(
                "Over http the token could be read by anybody on the way; use https."
            )
        self._pauses = pauses
        self.url, self._parts = url.rstrip("/"), parts
        self._token, self._timeout = instance(token, str, "token").strip(), timeout
        if not self._token.isascii() or not self._token.isprintable():
            raise InvalidInputError("This is no token of a curator.")

    def __repr__(self) -> str:
        """Show where it is, and no token."""
        return f"Curator({self.url!r})"

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Go through a list, page after page."""
        after: str | None = None
        while True:
            query = "" if after is None else f"?{urlencode({'after': after})}"
            page = self.told("GET", f"{path}{query}")
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def told(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        media_type: str = "application/json",
        again: bool = False,
    ) -> Any:
        """Send one request, `again` where that does no harm; return what is told."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = media_type
        if key is not None:
            headers["Idempotency-Key"] = key
        last = StorageError(f"The curator at {self.url} cannot be reached.")
        for pause in (*self._pauses, None) if again or method == "GET" else (None,):
            try:
                status, text = self._sent(method, path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                last = StorageError(f"The curator at {self.url} cannot be reached ({error}).")
            else:
                if status not in _BUSY or pause is None:
                    return _read(status, text)
            if pause is not None:
                time.sleep(pause)
        raise last

    def _sent(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        host, port = str(self._parts.hostname), self._parts.port
        connection: http.client.HTTPConnection
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        try:
            connection.request(method, f"{self._parts.path.rstrip('/')}{path}", content, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _read(status: int, text: bytes) -> Any:
    if status == 204:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        raise StorageError(f"Something that is no curator answered with {status}.") from None
    if 200 <= status < 300:
        return found
    kind, detail = found.get("kind", ""), found.get("detail", f"Refused with {status}.")
    if kind == "unauthenticated":
        detail = "The curator did not accept the token that was given: it is wrong, old or revoked."
    raise _ERRORS.get(kind, InvalidInputError)(str(detail))


def path(*parts: str) -> str:
    """Return the path of something in the API."""
    return "/".join(["/v1", *(quote(instance(one, str, "A name"), safe="") for one in parts)])
