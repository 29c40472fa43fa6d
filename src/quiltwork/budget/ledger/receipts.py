"""Receipts and previews: what a ledger answers to a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from quiltwork.budget import Spending


class Answers(Protocol):
    """Where answers are kept."""

    def complete(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit."""


@dataclass(frozen=True)
class Receipt:
    """A granted debit.

    Attributes:
        dataset: whose budget was debited.
        number: of the entry in the log.
        spending: what was debited.
        stored: the answer stored under the same key earlier, byte for byte; None for a new debit.
        hash: of the entry, which covers all before it; "" if made by hand.
    """

    dataset: str
    number: int
    spending: Spending
    stored: str | None = None
    hash: str = ""
    _answers: Answers | None = field(default=None, repr=False, compare=False)

    def complete(self, answer: str) -> None:
        """Store the answer, once; only then may it be shown.

        Raises:
            StorageError: if it could not be stored; then do not show it.
        """
        if self._answers is not None:
            self._answers.complete(self, answer)


@dataclass(frozen=True)
class Preview:
    """What a debit would do, without making it.

    Attributes:
        dataset: whose budget it would be.
        before: the total now, rounded up.
        after: the total with it, rounded up; None where no theorem prices it.
        budget: the dataset's, rounded down.
        refusal: why it would be refused, in a sentence; None if it would be granted.
        composes_by: the theorem that combines it with the releases before.
    """

    dataset: str
    before: float
    after: float | None
    budget: float
    refusal: str | None
    composes_by: str

    @property
    def fits(self) -> bool:
        """Whether it would be granted."""
        return self.refusal is None
