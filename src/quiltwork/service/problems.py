"""Errors in one format: problem details (RFC 9457), never an HTML page.

Messages of quiltwork's own errors are passed on, since they depend on public facts only: the
request, the beliefs, the ledger. An unexpected error is reported without its message, and its
traceback is not logged, as either might quote rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    QuiltworkError,
    StorageError,
    UnsupportedError,
)

MEDIA_TYPE = "application/problem+json"
NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_STORAGE = (
    "The database or the data directory failed; the cause is in the server's log. No answer was "
    "released. Retry with the same Idempotency-Key: a debit is never made twice."
)
_log = logging.getLogger("quiltwork.service")

_STATUS: tuple[tuple[type[QuiltworkError], str, int], ...] = (
    (BudgetExceeded, "budget-exceeded", 409),
    (NotPrivateError, "not-private", 409),
    (InvalidInputError, "invalid-input", 422),
    (UnsupportedError, "unsupported", 422),
    (StorageError, "storage", 503),
)
KINDS = {
    "bad-request": "The request cannot be read",
    "unauthenticated": "A valid token is needed",
    "forbidden": "Not allowed",
    "not-found": "Not found",
    "method-not-allowed": "Method not allowed",
    "conflict": "Conflict with the current state",
    "too-slow": "The body arrived too slowly",
    "too-large": "The body is too large",
    "unsupported-media": "Unsupported media type",
    "invalid-input": "The request has an invalid value",
    "unsupported": "No guarantee is proved for this",
    "budget-exceeded": "The budget does not allow it",
    "not-private": "The answer would not be private",
    "storage": "Storage is unavailable",
    "internal": "Internal error of the curator",
}


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error: `kind` is stable, `detail` is a sentence for people."""

    type: str
    title: str
    status: int
    kind: str
    detail: str


class Problem(Exception):  # noqa: N818  (the name of RFC 9457)
    """An error with its response; it can be raised anywhere within a request."""

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Take the status, a kind (a key of `KINDS`) and a sentence without values of the data."""
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = dict(headers or {})

    def details(self) -> ProblemDetails:
        """Return the body of the response."""
        return ProblemDetails(
            type=f"urn:quiltwork:problem:{self.kind}",
            title=KINDS[self.kind],
            status=self.status,
            kind=self.kind,
            detail=self.detail,
        )


def problem_of(error: BaseException) -> Problem:
    """Return the problem for an error; the details of an unexpected error are withheld."""
    if isinstance(error, Problem):
        return error
    for known, kind, status in _STATUS:
        if isinstance(error, known):
            if kind == "storage":
                _log.error("%s", error)  # for the operator only: it names files of this machine
                return Problem(status, kind, _STORAGE, {"Retry-After": "1"})
            return Problem(status, kind, str(error))
    return Problem(
        500,
        "internal",
        "Internal error. No answer was released. The operator finds its place in the server's log.",
    )


def not_found() -> Problem:
    """Return the refusal for an object that is missing, or hidden from the caller."""
    return Problem(404, "not-found", "No object of this name exists among those you may see.")


def problem_response(problem: Problem, headers: Mapping[str, str] = NO_STORE) -> Response:
    """Return the response that carries a problem."""
    sent = {"Content-Type": MEDIA_TYPE, **problem.headers, **headers}
    return Response(msgspec.json.encode(problem.details()), problem.status, sent)
