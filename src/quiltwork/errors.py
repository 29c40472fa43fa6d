"""Every error quiltwork raises on purpose: one base class and a small family.

Each class answers "what kind of trouble" and fixes the exit code of the command line; the message
says what is wrong, with the offending value, and what to do. Nothing here depends on data, and no
message holds the password of a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

_IN_AUTHORITY = re.compile(r"(://[^\s:/?@]*):\S*@")
_IN_OPTIONS = re.compile(r"""(password=)('[^']*'|"[^"]*"|[^\s&'"]+)""", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Return a text fit for eyes and logs: URLs in it lose their passwords.

    >>> without_passwords("no ledger at 'postgresql://ana:secret@db/x?sslpassword=more'")
    "no ledger at 'postgresql://ana@db/x?sslpassword=…'"
    """
    return _IN_OPTIONS.sub(r"\1…", _IN_AUTHORITY.sub(r"\1@", text))


class QuiltworkError(Exception):
    """Base of everything quiltwork raises on purpose; catch this to catch them all."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str = "", *rest: object) -> None:
        """Keep the message without passwords: it may quote what somebody took for a file name."""
        super().__init__(without_passwords(message), *rest)


class InvalidInputError(QuiltworkError, ValueError):
    """An argument, a file or a table is not what the function takes; nothing was spent."""

    exit_code: ClassVar[int] = 2


class NotFound(InvalidInputError):  # noqa: N818
    """A curator has nothing of this name that the caller may see."""


class Forbidden(QuiltworkError):  # noqa: N818
    """The caller's role, or her token, does not allow this; somebody else may do it."""

    exit_code: ClassVar[int] = 1


class BudgetExceeded(QuiltworkError):  # noqa: N818  (the public name is fixed)
    """The request would cost more than what remains; nothing was recorded or released.

    Its sentence may end with what would fit. To find that takes several pricings, so it is found
    when the sentence is read: who only wants to know that it was refused pays for none.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", what_fits: Callable[[], str] | None = None) -> None:
        """Say why; `what_fits` says the rest."""
        super().__init__(message)
        self._what_fits = what_fits

    def __str__(self) -> str:
        """The whole sentence."""
        if self._what_fits is not None:
            self.args, self._what_fits = (f"{self.args[0]} {self._what_fits()}",), None
        return str(self.args[0])

    @property
    def reason(self) -> str:
        """The sentence as far as it is known."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the sentence."""
        return type(self), (str(self),)


class NotPrivateError(QuiltworkError):
    """What was asked for does not have, or cannot get, the guarantee that it needs."""

    exit_code: ClassVar[int] = 1


class UnsupportedError(QuiltworkError):
    """A combination with no proof or no implementation here; the message says which one has."""

    exit_code: ClassVar[int] = 2


class StorageError(QuiltworkError):
    """A file or database could not be read, written or trusted."""

    exit_code: ClassVar[int] = 3


class QuiltworkWarning(UserWarning):
    """Something is allowed but weakens or voids a guarantee; the message says how."""
