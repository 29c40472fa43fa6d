"""What a release needs from a ledger: a debit before the data are used, and a place to answer.

The ledger itself lives elsewhere; anything with these methods will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened


class Receipt(Protocol):
    """A granted debit."""

    @property
    def stored(self) -> str | None:
        """The answer stored earlier under the same key, byte for byte, or None."""

    def complete(self, answer: str) -> None:
        """Store the answer; called once, after it was computed and before it is shown."""


class BudgetLedger(Protocol):
    """Grants or refuses a release."""

    def check(self, dataset: str, record: Mapping[str, Any]) -> None:
        """Refuse a release that is not about the dataset, before any cell is looked at.

        Otherwise a release under other beliefs could learn from an error which states occur.

        Raises:
            InvalidInputError: for other beliefs than the dataset's, or data of another length.
        """

    def debit(
        self, dataset: str, record: Mapping[str, Any], key: str | None, analyst: str | None
    ) -> Receipt:
        """Debit a release before it is made.

        `record` is the release's document without value and noisy integers: what was asked, the
        exact noise scale, the level per substituted point, the beliefs' digest. A repeated `key`
        costs nothing and returns the stored answer; `analyst` is for whom.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
        """


def check_ledger(ledger: Any, dataset: Any, key: Any, analyst: Any) -> tuple[BudgetLedger, str]:
    """Return the ledger and the dataset to debit, of arguments that were not all left out.

    Raises:
        InvalidInputError: for what is no ledger or no name, and for one without the other.
    """
    for name, text in (("dataset", dataset), ("key", key), ("analyst", analyst)):
        if text is not None and (not isinstance(text, str) or not text):
            raise InvalidInputError(
                f"{name} must be text that is not empty, not {shortened(text)}."
            )
    if ledger is None:
        raise InvalidInputError(
            "dataset, key and analyst belong to a ledger, and none is given: nothing would be "
            "debited. Pass ledger=, or leave them out."
        )
    if dataset is None:
        raise InvalidInputError(
            "A ledger is given without dataset=, so it cannot know whose budget to debit."
        )
    if not callable(getattr(ledger, "debit", None)):
        what = "a URL" if isinstance(ledger, str) else f"a {type(ledger).__name__}"
        raise InvalidInputError(
            f"ledger must be an open ledger, not {what}; write "
            "ledger=qw.Ledger.open('sqlite:///budget.db')."
        )
    return ledger, dataset
