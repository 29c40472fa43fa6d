"""Debit first: how every system pays for an answer before it draws it.

    check → debit → draw → store → show

`pay` is the one place where this order is kept, for releases, counts, tables and holdouts. The
debit is durable before anything is drawn and is never taken back, whatever happens afterwards; the
answer is durable before anybody sees it. What is refused is refused by the ledger before the debit,
and by nothing that a private row could decide.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

if TYPE_CHECKING:
    from quiltwork.beliefs.secrets import SecretPairs
    from quiltwork.budget.ledger.records import Receipt, Status
    from quiltwork.budget.spending import Spending

Answer = TypeVar("Answer")


BEGINNING_OF = "beginning_of"
"""In a request's document: how long the dataset is, of which the data are only the beginning."""


@dataclass(frozen=True)
class Request:
    """What is asked of a ledger: what will be spent, by which mechanism, and what was asked.

    Two requests under one key are the same if all three are. The document is plain JSON; its
    `belief_digest` and `length`, if any, must be those of the dataset.
    """

    spending: Spending
    mechanism: str = "declared"
    document: Mapping[str, Any] | None = None

    @cached_property
    def body(self) -> dict[str, Any]:
        """Everything that makes two requests the same one."""
        return {
            "spending": self.spending.to_body(),
            "mechanism": self.mechanism,
            "request": dict(self.document or {}),
        }


Asked: TypeAlias = "Request | Spending | Mapping[str, Any]"
"""What a ledger debits; a mapping has `dp_epsilon`, for a mechanism on the dataset as a whole."""


@runtime_checkable
class PayingLedger(Protocol):
    """What a payment asks of a ledger; `Ledger` is one."""

    def debit(
        self,
        dataset: str,
        spending: Any,
        key: str | None = None,
        analyst: str | None = None,
        mark: str | None = None,
    ) -> Receipt:
        """Debit, durably."""

    def check(self, dataset: str, spending: Any) -> None:
        """Refuse what is not about the dataset."""

    def status(self, dataset: str) -> Status:
        """What the dataset is."""

    def registered(self, dataset: str) -> str | None:
        """The mark of its data."""


@dataclass(frozen=True)
class Payer:
    """Who pays for an answer: a dataset of a ledger, perhaps under a key and for an analyst."""

    ledger: PayingLedger
    dataset: str
    key: str | None = None
    analyst: str | None = None
    holds_rows: ClassVar[bool] = False
    """Whether the rows themselves are kept beside the ledger, so that none are registered."""

    mark: str | None = None
    """What is recorded with the debit, to recognize the request by (`Ledger.debit`)."""

    def check(self, asked: Asked) -> None:
        """Refuse what is not about the dataset, before any private cell is looked at."""
        self.ledger.check(self.dataset, asked)

    def secrets(self) -> tuple[SecretPairs | None, int]:
        """Return what the dataset hides: pairs of values (None: all) of how many time points."""
        status = self.ledger.status(self.dataset)
        return status.pairs, status.episode

    def debit(self, asked: Asked) -> Receipt:
        """Debit it, or find what its key stands for."""
        return self.ledger.debit(self.dataset, asked, self.key, self.analyst, self.mark)

    def store(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit; only then may it be shown."""
        receipt.complete(answer)


def read_payer(
    ledger: Any, dataset: Any = None, key: Any = None, analyst: Any = None
) -> Payer | None:
    """Read the arguments of a call that a ledger may pay for; None if all were left out.

    A payer in the place of a ledger names all of them itself.

    Raises:
        InvalidInputError: for what is no ledger or no name, and for one without the other.
    """
    if all(part is None for part in (ledger, dataset, key, analyst)):
        return None
    if isinstance(ledger, Payer):
        return ledger
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
    if not isinstance(ledger, PayingLedger):
        what = "a URL" if isinstance(ledger, str) else f"a {type(ledger).__name__}"
        raise InvalidInputError(
            f"ledger must be an open ledger, not {what}; write "
            "ledger=qw.Ledger.open('sqlite:///budget.db')."
        )
    return Payer(ledger, dataset, key, analyst)


def pay(
    payer: Payer | None,
    asked: Callable[[], Asked],
    draw: Callable[[Receipt | None], Answer],
    store: Callable[[Receipt | None, Answer], None],
    read: Callable[[str], Answer],
) -> Answer:
    """Debit, draw, store, and only then return; without a payer, draw and store.

    Args:
        payer: who pays.
        asked: describes the answer as plain data; called if somebody pays.
        draw: looks at private data and draws noise.
        store: makes the answer durable.
        read: turns what was stored under the same key earlier into the answer.

    Raises:
        BudgetExceeded: if it does not fit; nothing was recorded and nothing drawn.
        NotPrivateError: if the key was debited and its answer never stored.
        InvalidInputError: for a key of another request, and what is not about the dataset.

    Theorem: docs/theory/ledger.md
    """
    receipt = None
    if payer is not None:
        receipt = payer.debit(asked())
        if receipt.stored is not None:
            return read(receipt.stored)
    answer = draw(receipt)
    store(receipt, answer)
    return answer


def pay_and_keep(
    payer: Payer | None,
    asked: Callable[[], Asked],
    draw: Callable[[], Answer],
    write: Callable[[Answer], str],
    read: Callable[[str], Answer],
) -> Answer:
    """`pay` for an answer that the ledger itself keeps as text."""

    def store(receipt: Receipt | None, answer: Answer) -> None:
        if payer is not None and receipt is not None:
            payer.store(receipt, write(answer))

    return pay(payer, asked, lambda _: draw(), store, read)
