"""The errors that quiltwork raises on purpose: one base class and a small family.

The class says which kind of error it is and fixes the exit code of the command line; the message
says what is wrong and what to do. Messages never contain the password of a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

_IN_AUTHORITY = re.compile(r"(://[^\s:/?@]*):\S*@")
_IN_OPTIONS = re.compile(r"""(password=)('[^']*'|"[^"]*"|[^\s&'"]+)""", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Return a text without the passwords of the URLs in it, fit for screens and logs.

    >>> without_passwords("no ledger at 'postgresql://ana:secret@db/x?sslpassword=more'")
    "no ledger at 'postgresql://ana@db/x?sslpassword=…'"
    """
    return _IN_OPTIONS.sub(r"\1…", _IN_AUTHORITY.sub(r"\1@", text))


class QuiltworkError(Exception):
    """The base class of all errors of quiltwork; catch it to catch them all."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str = "", *rest: object) -> None:
        """Store the message without passwords, since it may quote a URL given as a file name."""
        super().__init__(without_passwords(message), *rest)


class InvalidInputError(QuiltworkError, ValueError):
    """An argument, a file or a table is invalid; nothing was spent."""

    exit_code: ClassVar[int] = 2


class NotFound(InvalidInputError):  # noqa: N818
    """A curator has nothing of this name that the caller may see."""


class Forbidden(QuiltworkError):  # noqa: N818
    """The caller's role or token does not permit this; another role may."""

    exit_code: ClassVar[int] = 1


class BudgetExceeded(QuiltworkError):  # noqa: N818  (the public name is fixed)
    """The request would cost more than what remains; nothing was recorded or released.

    The message may end with what would fit. That takes several pricings, so it is computed when the
    message is read: a caller who only tests for the refusal does not pay for it.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", what_fits: Callable[[], str] | None = None) -> None:
        """Store the reason; `what_fits` computes the end of the message."""
        super().__init__(message)
        self._what_fits = what_fits

    def __str__(self) -> str:
        """The whole message."""
        if self._what_fits is not None:
            self.args, self._what_fits = (f"{self.args[0]} {self._what_fits()}",), None
        return str(self.args[0])

    @property
    def reason(self) -> str:
        """The message as far as it is computed."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the message."""
        return type(self), (str(self),)


class NotPrivateError(QuiltworkError):
    """The result does not have the required guarantee, or cannot get it."""

    exit_code: ClassVar[int] = 1


class UnsupportedError(QuiltworkError):
    """A combination without a proof or an implementation; the message names one that has both."""

    exit_code: ClassVar[int] = 2


class StorageError(QuiltworkError):
    """A file or database could not be read, written or trusted."""

    exit_code: ClassVar[int] = 3


class QuiltworkWarning(UserWarning):
    """Something permitted weakens or voids a guarantee; the message says how."""
