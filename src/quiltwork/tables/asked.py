"""Reading what every question of this room is asked with: a table, m, a progress callback."""

from __future__ import annotations

from typing import Any

from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import integer, shortened
from quiltwork.tables.constraints.base import MOST
from quiltwork.tables.table import Table


def read_table(value: Any) -> Table:
    """Return the table.

    Raises:
        InvalidInputError: for anything else, such as a frame without roles.
    """
    if not isinstance(value, Table):
        raise InvalidInputError(
            f"Give a Table, not a {type(value).__name__}: Table(frame, provider, "
            "quasi_identifiers, sensitive) says which column is what."
        )
    return value


def check_publication(value: Any) -> None:
    """Refuse what is no publication made on this machine.

    Raises:
        InvalidInputError: for anything without boxes, such as a Table or a Spark publication.
    """
    if not hasattr(value, "boxes") or not hasattr(value, "source"):
        raise InvalidInputError(
            f"Give what anonymize returned on this machine, not a {type(value).__name__}."
        )


def read_m(value: Any) -> int:
    """Return how many providers collude.

    Raises:
        InvalidInputError: unless it is a whole number from 0 on, below 2^31.
    """
    return integer(value, "m", 0, MOST)


def no_group(rows: int, m: int, constraint: object) -> NotPrivateError:
    """Return the refusal of a table that is not private even as one group.

    >>> str(no_group(80, 0, "99-anonymity"))[:58]
    'Even one group of all 80 rows does not fulfil 99-anonymity'
    """
    what = f"fulfil {constraint}"
    if m:
        who = f"{m} colluding providers" if m > 1 else "a single provider"
        what = f"withstand {who} under {constraint}"
    everyone = f"all {rows:,} rows" if rows > 1 else "the only row"
    return NotPrivateError(
        f"Even one group of {everyone} does not {what}; "
        "ask for less (a smaller m, k or l) or add records."
    )


def check_progress(value: Any) -> None:
    """Refuse a progress callback that cannot be called."""
    if value is not None and not callable(value):
        raise InvalidInputError(
            f"progress must be a function of rows done and rows in all, not {shortened(value)}."
        )
