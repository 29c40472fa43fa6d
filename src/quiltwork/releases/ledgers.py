"""What a release needs from a ledger: a debit before the data are used, and a place to answer.

The ledger itself lives elsewhere; anything with these two methods will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Receipt(Protocol):
    """A granted debit."""

    @property
    def stored(self) -> str | None:
        """The answer stored earlier under the same key, byte for byte, or None."""

    def complete(self, answer: str) -> None:
        """Store the answer; called once, after it was computed and before it is shown."""


class BudgetLedger(Protocol):
    """Grants or refuses a release."""

    def debit(self, dataset: str, record: Mapping[str, Any], key: str | None) -> Receipt:
        """Debit a release before it is made.

        `record` is the release's document without value and noisy integers: what was asked, the
        exact noise scale, the level per substituted point, the beliefs' digest. A repeated `key`
        costs nothing and returns the stored answer.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
        """
