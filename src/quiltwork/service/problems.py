"""Refusals and failures in one shape: problem details (RFC 9457), never a page.

The sentences of quiltwork's own errors are told as they are, since they depend on public things
alone: the request, the beliefs, the ledger. Everything unexpected is opaque; its traceback might
quote rows, so it goes nowhere.
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
    "The database or the data directory failed; its log says how. Nothing was told. Ask again with "
    "the same key: what was debited is not debited twice."
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
    "forbidden": "Not yours to do",
    "not-found": "There is no such thing here",
    "method-not-allowed": "Not done in this way",
    "conflict": "Something else is there already",
    "too-slow": "The body stopped coming",
    "too-large": "Too large",
    "unsupported-media": "Not a format that is taken here",
    "invalid-input": "Something in the request is wrong",
    "unsupported": "There is no proof for this",
    "budget-exceeded": "The budget does not allow it",
    "not-private": "It would not be private",
    "storage": "The curator's storage cannot be used now",
    "internal": "A fault of the curator",
}


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What is told: `kind` is stable, `detail` is a sentence for people."""

    type: str
    title: str
    status: int
    kind: str
    detail: str


class Problem(Exception):  # noqa: N818  (the name of RFC 9457)
    """A refusal that has its answer: raise it anywhere within a request."""

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Take status, kind (a key of the titles) and a sentence without values from the data."""
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = dict(headers or {})

    def details(self) -> ProblemDetails:
        """Return what is told."""
        return ProblemDetails(
            type=f"urn:quiltwork:problem:{self.kind}",
            title=KINDS[self.kind],
            status=self.status,
            kind=self.kind,
            detail=self.detail,
        )


def problem_of(error: BaseException) -> Problem:
    """Return what is told of an error; what is not known is opaque."""
    if isinstance(error, Problem):
        return error
    for known, kind, status in _STATUS:
        if isinstance(error, known):
            if kind == "storage":
                _log.error("%s", error)  # it names files of this machine
                return Problem(status, kind, _STORAGE, {"Retry-After": "1"})
            return Problem(status, kind, str(error))
    return Problem(500, "internal", "Nothing was told to anybody; tell whoever runs the curator.")


def not_found() -> Problem:
    """What is said of everything that a caller may not know to exist."""
    return Problem(404, "not-found", "There is nothing of this name that you may see.")


def problem_response(problem: Problem, headers: Mapping[str, str] = NO_STORE) -> Response:
    """Return a problem as the answer to a request."""
    told = {"Content-Type": MEDIA_TYPE, **problem.headers, **headers}
    return Response(msgspec.json.encode(problem.details()), problem.status, told)
