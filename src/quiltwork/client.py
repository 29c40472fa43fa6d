"""`Curator`: a curator as Python objects, over HTTP, with the standard library alone.

Everything that may be asked twice without harm is retried when the connection breaks or the
curator is restarting; a question is, because its key answers it once.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from quiltwork import files
from quiltwork.arguments import instance
from quiltwork.beliefs import Belief, as_beliefs, beliefs_to_json
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    QuiltworkError,
    StorageError,
    UnsupportedError,
)
from quiltwork.exact import Number, positive_fraction
from quiltwork.queries.base import Query
from quiltwork.queries.document import to_document

Kind = TypeVar("Kind")

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
_BUSY = (502, 503, 504)
_ERRORS: dict[str, type[QuiltworkError]] = {
    "budget-exceeded": BudgetExceeded,
    "not-private": NotPrivateError,
    "unsupported": UnsupportedError,
    "storage": StorageError,
    "internal": StorageError,
}
_MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".pq": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class Dataset:
    """A dataset as its curator shows it; `shares` of others are for its owner and auditors."""

    name: str
    kind: str
    owner: str
    created: str
    budget: float
    spent: float
    remaining: float
    releases: int
    length: int | None
    episode: int
    states: list[Any] | None
    columns: dict[str, list[str]] | None
    retired: str | None
    deleted: str | None
    share: dict[str, Any] | None
    shares: list[dict[str, Any]] | None


@dataclass(frozen=True)
class Preview:
    """What an answer would cost, and how far off it would be."""

    dataset: str
    granted: bool
    refusal: str | None
    spent_before: float
    spent_after: float | None
    budget: float
    cells: int
    scale: float
    expected_error: float
    half_width: float
    half_width_of_all: float
    confidence: float
    verdict: str | None
    reason: str | None
    example: dict[str, Any] | None


@dataclass(frozen=True)
class Answer:
    """What was released: a value and an interval for each cell."""

    number: int
    dataset: str
    at: str
    analyst: str | None
    kind: str
    query: dict[str, Any]
    epsilon: float
    protects: str
    cells: list[Any]
    values: list[Any]
    intervals: list[list[float]] | None
    confidence: float
    text: str
    document: dict[str, Any]

    @property
    def result(self) -> Any:
        """The release itself: a `Release` of a series, a `CountTable` of counts."""
        text = json.dumps(self.document)
        if self.document["schema"] == "quiltwork/count-table":
            from quiltwork.counts import CountTable

            return CountTable.from_json(text)
        from quiltwork.series import Release

        return Release.from_json(text)


@dataclass(frozen=True)
class Verification:
    """Whether the chain is intact, and where it ends."""

    intact: bool
    detail: str
    ledger: str | None
    entries: int | None
    hash: str | None


class Curator:
    """A curator at a URL, for one token.

    Args:
        url: such as "https://curator.example.org"; http only for this machine.
        token: as its owner handed it out.
        timeout: seconds to wait for an answer.

    Raises:
        InvalidInputError: for another URL, and what is no token.
    """

    def __init__(self, url: str, token: str, timeout: float = 60.0) -> None:
        """Connect to nothing yet."""
        parts = urlsplit(instance(url, str, "url"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInputError("A curator's URL is written as https://curator.example.org.")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise InvalidInputError(
                "Over http the token could be read by anybody on the way; use https."
            )
        self.url, self._parts = url.rstrip("/"), parts
        self._token, self._timeout = instance(token, str, "token").strip(), timeout
        if not self._token.isascii() or not self._token.isprintable():
            raise InvalidInputError("This is no token of a curator.")

    def __repr__(self) -> str:
        """Show where it is, and no token."""
        return f"Curator({self.url!r})"

    def me(self) -> dict[str, Any]:
        """Say who the token is for, and what it allows."""
        return dict(self._told("GET", "/v1/me"))

    def datasets(self) -> list[Dataset]:
        """Return the datasets that the token may use."""
        return [_as(Dataset, one) for one in self._pages("/v1/datasets")]

    def dataset(self, name: str) -> Dataset:
        """Return one dataset."""
        return _as(Dataset, self._told("GET", _path("datasets", name)))

    def register_series(
        self,
        name: str,
        beliefs: Belief | Sequence[Belief],
        budget: Number,
        value: str,
        *,
        text: str = "",
        **reading: Any,
    ) -> Dataset:
        """Register a series: `value` is the column of states; for `reading` see the API's page."""
        believed = json.loads(beliefs_to_json(as_beliefs(beliefs)))
        about = {"belief": believed, "value": value, **reading}
        body = {"name": name, "budget": _number(budget), "series": about, "text": text}
        return _as(Dataset, self._told("POST", "/v1/datasets", body))

    def register_counts(
        self,
        name: str,
        columns: Mapping[str, Sequence[str]],
        budget: Number,
        *,
        text: str = "",
        **about: Any,
    ) -> Dataset:
        """Register people in public categories: columns, each with all its values."""
        listed = {column: list(labels) for column, labels in columns.items()}
        counts = {"columns": listed, **about}
        body = {"name": name, "budget": _number(budget), "counts": counts, "text": text}
        return _as(Dataset, self._told("POST", "/v1/datasets", body))

    def add_rows(self, dataset: str, path: str | Path) -> dict[str, Any]:
        """Send a CSV or Parquet file; a series grows by its rows."""
        kind = _MEDIA_TYPES.get(Path(path).suffix, "text/csv")
        sent = _path("datasets", dataset, "rows")
        return dict(self._told("POST", sent, files.contents(path), media_type=kind))

    def share(
        self,
        dataset: str,
        member: str,
        cap: Number | None = None,
        reserved: Number | None = None,
    ) -> Dataset:
        """Let a member use a dataset; an analyst up to a cap, or with a reserved share."""
        given = {"cap": cap, "reserved": reserved}
        body = {name: _number(part) for name, part in given.items() if part is not None}
        path = _path("datasets", dataset, "access", member)
        return _as(Dataset, self._told("PUT", path, body, again=True))

    def preview(self, dataset: str, query: Query | Mapping[str, Any], epsilon: Number) -> Preview:
        """Say what an answer would cost and how far off it would be; nothing is spent."""
        body = {"query": _document(query), "epsilon": _number(epsilon)}
        path = _path("datasets", dataset, "preview")
        return _as(Preview, self._told("POST", path, body, again=True))

    def ask(
        self,
        dataset: str,
        query: Query | Mapping[str, Any],
        epsilon: Number,
        key: str | None = None,
    ) -> Answer:
        """Ask a question; under one key it is answered, and paid, once.

        Raises:
            BudgetExceeded: if it does not fit; nothing was spent.
        """
        body = {"query": _document(query), "epsilon": _number(epsilon)}
        path, used = _path("datasets", dataset, "releases"), key or secrets.token_hex(16)
        return _as(Answer, self._told("POST", path, body, key=used, again=True))

    def releases(self, dataset: str) -> Iterator[Answer]:
        """Go through what was released, oldest first."""
        return (_as(Answer, one) for one in self._pages(_path("datasets", dataset, "releases")))

    def ledger(self, dataset: str) -> Iterator[dict[str, Any]]:
        """Go through what was debited, oldest first."""
        return self._pages(_path("datasets", dataset, "ledger"))

    def plan(
        self,
        dataset: str,
        questions: Sequence[Mapping[str, Any]],
        budget: Number | None = None,
    ) -> dict[str, Any]:
        """Find the noise with which questions to come cost a budget together."""
        listed = [{**one, "query": _document(one["query"])} for one in questions]
        body: dict[str, Any] = {"questions": listed}
        if budget is not None:
            body["budget"] = _number(budget)
        return dict(self._told("POST", _path("datasets", dataset, "plan"), body, again=True))

    def delete_rows(self, dataset: str) -> None:
        """Delete all rows of a dataset; its ledger and releases stay."""
        self._told("DELETE", _path("datasets", dataset, "rows"), again=True)

    def invite(
        self, member: str, role: Literal["owner", "provider", "analyst", "auditor"]
    ) -> dict[str, Any]:
        """Invite somebody."""
        return dict(self._told("POST", "/v1/members", {"name": member, "role": role}))

    def make_token(self, member: str, **narrowed: Any) -> str:
        """Make a token for somebody, perhaps for some datasets, actions and days; shown once."""
        made = self._told("POST", _path("members", member, "tokens"), narrowed)
        return str(made["secret"])

    def revoke_token(self, member: str, token: str) -> None:
        """Revoke a token by its identity."""
        self._told("DELETE", _path("members", member, "tokens", token), again=True)

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through the audit log, oldest first."""
        return self._pages("/v1/log")

    def verify(self) -> Verification:
        """Let the curator check its chain of hashes and every total."""
        return _as(Verification, self._told("POST", "/v1/log/verification", again=True))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        after: str | None = None
        while True:
            query = "" if after is None else f"?{urlencode({'after': after})}"
            page = self._told("GET", f"{path}{query}")
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def _told(
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
        for pause in (*_PAUSES, None) if again or method == "GET" else (None,):
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
    raise _ERRORS.get(kind, InvalidInputError)(str(detail))


def _as(kind: type[Kind], body: Mapping[str, Any]) -> Kind:
    """Read a document; what a newer curator tells beyond it is left out."""
    return kind(**{one.name: body.get(one.name) for one in fields(kind)})  # type: ignore[arg-type]


def _path(*parts: str) -> str:
    return "/".join(["/v1", *(quote(instance(one, str, "A name"), safe="") for one in parts)])


def _number(value: Number) -> str:
    return str(positive_fraction(value, "number"))


def _document(query: Query | Mapping[str, Any]) -> dict[str, Any]:
    return to_document(query) if isinstance(query, Query) else dict(query)
