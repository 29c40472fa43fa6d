"""Every error quiltwork raises on purpose: one base class and a small family.

Each class answers "what kind of trouble" and fixes the exit code of the command line; the message
says what is wrong, with the offending value, and what to do. Nothing here depends on data.
"""

from __future__ import annotations

from typing import ClassVar


class QuiltworkError(Exception):
    """Base of everything quiltwork raises on purpose; catch this to catch them all."""

    exit_code: ClassVar[int] = 3


class InvalidInputError(QuiltworkError, ValueError):
    """An argument, a file or a table is not what the function takes; nothing was spent."""

    exit_code: ClassVar[int] = 2


class BudgetExceeded(QuiltworkError):  # noqa: N818  (the public name is fixed)
    """The request would cost more than what remains; nothing was recorded or released."""

    exit_code: ClassVar[int] = 1


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
