"""The HTTP connection to a curator: one request at a time, with retries for idempotent requests.

Idempotent requests are retried when the connection breaks or the curator restarts. Questions are
among them, since their Idempotency-Key is answered and debited once.
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
    """Requests to one curator with one token."""

    def __init__(
        self,
        url: str,
        token: str,
        timeout: float = 60.0,
        pauses: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0),
    ) -> None:
        """Check the URL and the token; nothing is sent yet."""
        parts = urlsplit(instance(url, str, "url"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInputError(
                f"{url!r} is not the URL of a curator. Write it as https://curator.example.org."
            )
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise InvalidInputError(
                "Over http anybody on the network could read the token. Use https."
            )
        self._pauses = pauses
        self.url, self._parts = url.rstrip("/"), parts
        self._token, self._timeout = instance(token, str, "token").strip(), timeout
        if not self._token.isascii() or not self._token.isprintable():
            raise InvalidInputError("The token holds characters that no curator's token has.")

    def __repr__(self) -> str:
        """Return the URL, without the token."""
        return f"Curator({self.url!r})"

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield all items of a list route, fetching its pages as needed."""
        after: str | None = None
        while True:
            query = "" if after is None else f"?{urlencode({'after': after})}"
            page = self.request("GET", f"{path}{query}")
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        media_type: str = "application/json",
        retry: bool = False,
    ) -> Any:
        """Send one request and return its parsed answer; GET and `retry` repeat it on failures."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = media_type
        if key is not None:
            headers["Idempotency-Key"] = key
        failure = StorageError(f"The curator at {self.url} cannot be reached.")
        for pause in (*self._pauses, None) if retry or method == "GET" else (None,):
            try:
                status, text = self._send(method, path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                failure = StorageError(f"The curator at {self.url} cannot be reached ({error}).")
            else:
                if status not in _BUSY or pause is None:
                    return _parse(status, text)
            if pause is not None:
                time.sleep(pause)
        raise failure

    def _send(
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
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def _parse(status: int, text: bytes) -> Any:
    """Return the document of a successful answer; raise the error that a problem stands for."""
    if status == 204:
        return None
    try:
        document = json.loads(text)
    except ValueError:
        raise StorageError(
            f"The server answered with status {status} and no JSON: it is not a curator."
        ) from None
    if 200 <= status < 300:
        return document
    kind = document.get("kind", "")
    detail = document.get("detail", f"The curator refused the request with status {status}.")
    if kind == "unauthenticated":
        detail = "The curator did not accept the token: it is wrong, expired or revoked."
    raise _ERRORS.get(kind, InvalidInputError)(str(detail))


def path(*parts: str) -> str:
    """Return the path of the API with these parts, each escaped."""
    return "/".join(["/v1", *(quote(instance(part, str, "A name"), safe="") for part in parts)])
