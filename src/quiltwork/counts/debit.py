"""Pay before drawing: how a count is charged to a budget ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from quiltwork.errors import InvalidInputError
from quiltwork.exact import unseen_integer

if TYPE_CHECKING:
    from quiltwork.series.releases.ledgers import BudgetLedger

Answer = TypeVar("Answer")


def read_count(count: object, n: int, ledger: BudgetLedger | None) -> int:
    """Return a private count as an integer in 0..n, never showing it.

    Where a ledger pays, one above n counts as n: an error would tell about it for free.

    Raises:
        InvalidInputError: if it is no integer from 0 on, or without a ledger above n.
    """
    value = unseen_integer(count, "count")
    if value > n and ledger is None:
        raise InvalidInputError(f"count must lie in 0..n = 0..{n}; is n right?")
    return min(value, n)


def draw_paid(
    ledger: BudgetLedger | None,
    dataset: str | None,
    key: str | None,
    analyst: str | None,
    record: Callable[[], Mapping[str, Any]],
    draw: Callable[[], Answer],
    write: Callable[[Answer], str],
    read: Callable[[str], Answer],
) -> Answer:
    """Debit `record()` from `dataset` if there is a ledger, and only then draw.

    A key that the ledger has seen costs nothing and gives the answer stored then.

    Raises:
        InvalidInputError: for a ledger without a dataset, a dataset without a ledger, and what is
            no ledger.
        BudgetExceeded: from the ledger; nothing was recorded and nothing drawn.
    """
    if all(part is None for part in (ledger, dataset, key, analyst)):
        return draw()
    opened, name = _checked(ledger, dataset, key, analyst)
    receipt = opened.debit(name, record(), key, analyst)
    if receipt.stored is not None:
        return read(receipt.stored)
    answer = draw()
    receipt.complete(write(answer))
    return answer


def check_about(
    ledger: BudgetLedger | None,
    dataset: str | None,
    key: str | None,
    record: Callable[[], Mapping[str, Any]],
) -> None:
    """Let the ledger, if there is one, refuse what is not about its dataset."""
    if ledger is not None:
        opened, name = _checked(ledger, dataset, key)
        opened.check(name, record())


def _checked(
    ledger: BudgetLedger | None, dataset: str | None, key: str | None, analyst: str | None = None
) -> tuple[BudgetLedger, str]:
    from quiltwork.series.releases.ledgers import (
        check_ledger,  # spares counts without a ledger NumPy
    )

    return check_ledger(ledger, dataset, key, analyst)
