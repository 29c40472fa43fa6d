"""Pay before drawing: how a count is charged to a budget ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from quiltwork.errors import InvalidInputError

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
        InvalidInputError: if a ledger comes without a dataset, or a dataset without a ledger.
        BudgetExceeded: from the ledger; nothing was recorded and nothing drawn.
    """
    check_ledger(ledger, dataset, key)
    if ledger is None or dataset is None:
        return draw()
    receipt = ledger.debit(dataset, record(), key)
    if receipt.stored is not None:
        return read(receipt.stored)
    answer = draw()
    receipt.complete(write(answer))
    return answer


def check_ledger(ledger: object, dataset: object, key: object) -> None:
    """Refuse a ledger without a dataset, and names of entries without a ledger."""
    for name, text in (("dataset", dataset), ("key", key)):
        if text is not None and (not isinstance(text, str) or not text):
            raise InvalidInputError(f"{name} must be text that is not empty, not {text!r}.")
    if ledger is None and (dataset is not None or key is not None):
        raise InvalidInputError(
            "dataset and key belong to a ledger, and none is given: nothing would be debited. "
            "Pass ledger=, or leave them out."
        )
    if ledger is not None and dataset is None:
        raise InvalidInputError(
            "A ledger is given without dataset=, so it cannot know whose budget to debit."
        )
