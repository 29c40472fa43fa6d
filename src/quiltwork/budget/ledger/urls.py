"""A ledger's URL: `sqlite:///FILE`, or `postgresql://…`."""

from __future__ import annotations

from pathlib import Path

from quiltwork.budget.ledger.databases import Database
from quiltwork.errors import InvalidInputError
from quiltwork.exact import positive_fraction, shortened

_LONGEST_WAIT = 86_400


def database_at(url: str, *, timeout: float | None = None, read_only: bool = False) -> Database:
    """Parse a ledger's URL; nothing is opened or created yet.

    Raises:
        InvalidInputError: for anything but `sqlite:///FILE` and `postgresql://…`, and a timeout
            that is no positive number of seconds, or more than a day.
    """
    database = _parse(url)
    if timeout is not None:
        seconds = positive_fraction(timeout, "timeout")
        if seconds > _LONGEST_WAIT:
            raise InvalidInputError(
                f"timeout is {shortened(timeout)}; a request waits at most a day, "
                f"{_LONGEST_WAIT} seconds."
            )
        database.timeout = float(seconds)
    database.read_only = read_only
    return database


def _parse(url: str) -> Database:
    if not isinstance(url, str):
        raise InvalidInputError(
            f"A ledger's URL must be text, not {type(url).__name__}; write 'sqlite:///budget.db' "
            "or 'postgresql://…'."
        )
    if url.startswith("sqlite:///"):
        from quiltwork.budget.ledger.sqlite import SqliteDatabase

        return SqliteDatabase(_sqlite_path(url))
    if url.startswith(("postgresql://", "postgres://")):
        from quiltwork.budget.ledger.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise InvalidInputError(  # without the URL, which may contain a password
        "This is not a ledger's URL; write 'sqlite:///budget.db' (four slashes for an absolute "
        "path) or 'postgresql://user@host/database'."
    )


def _sqlite_path(url: str) -> Path:
    name = url.removeprefix("sqlite:///")
    if not name or name == ":memory:":
        raise InvalidInputError(
            f"{url!r} names no file, and a ledger must outlive its process; write "
            "'sqlite:///budget.db'."
        )
    if "?" in name or "\0" in name:
        raise InvalidInputError(
            "A ledger's path may not have the characters '?' and NUL; options after '?' are not "
            "taken."
        )
    path = Path(name).absolute()
    problem = _problem(path)
    if problem is not None:
        raise InvalidInputError(f"The ledger's file {shortened(str(path))} {problem}; name a file.")
    return path


def _problem(path: Path) -> str | None:
    """Return why a path cannot be a ledger's file; None if it can."""
    try:
        if path.is_dir():
            return "is a folder"
        return None if path.parent.is_dir() else "is in a folder that does not exist"
    except (OSError, ValueError) as error:  # no permission to search a folder, a name too long
        return f"cannot be accessed ({getattr(error, 'strerror', None) or error})"
