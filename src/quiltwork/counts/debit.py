"""Pay before drawing: how a count is charged to a budget ledger."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from quiltwork.errors import InvalidInputError


def debit(
    ledger: Any, dataset: str | None, key: str | None, dp_epsilon: Fraction, mechanism: str
) -> None:
    """Debit `dp_epsilon` (for substituting one person) from `dataset`, if there is a ledger.

    Raises:
        InvalidInputError: if a ledger comes without a dataset, or a dataset without a ledger.
        BudgetExceeded: from the ledger; nothing was recorded.
    """
    if ledger is None:
        if dataset is not None or key is not None:
            raise InvalidInputError("dataset=… and key=… name an entry of a ledger: give ledger=….")
        return
    if dataset is None:
        raise InvalidInputError("A ledger keeps one budget per dataset: say which, dataset=….")
    ledger.debit(dataset, dp_epsilon=dp_epsilon, key=key, mechanism=mechanism)
