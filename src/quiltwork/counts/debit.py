"""Pay before drawing: how a count is charged to a budget ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from quiltwork.releases.ledgers import BudgetLedger

Answer = TypeVar("Answer")


def draw_paid(
    ledger: BudgetLedger | None,
    dataset: str | None,
    key: str | None,
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
    if all(part is None for part in (ledger, dataset, key)):
        return draw()
    opened, name = _checked(ledger, dataset, key)
    receipt = opened.debit(name, record(), key)
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
    if any(part is not None for part in (ledger, dataset, key)):
        opened, name = _checked(ledger, dataset, key)
        opened.check(name, record())


def _checked(
    ledger: BudgetLedger | None, dataset: str | None, key: str | None
) -> tuple[BudgetLedger, str]:
    from quiltwork.releases.ledgers import check_ledger  # spares counts without a ledger NumPy

    return check_ledger(ledger, dataset, key)
