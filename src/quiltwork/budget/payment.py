"""Debit first: how every system pays for an answer before it draws the noise.

    check → debit → draw → store → show

`pay` is the only place that orders these steps, for releases, counts, tables and holdouts. The
debit is durable before anything is drawn and is never taken back, whatever happens afterwards; the
answer is durable before anybody sees it. A refusal comes from the ledger, before the debit, and
depends on no private row.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

if TYPE_CHECKING:
    from quiltwork.beliefs.secrets import SecretPairs
    from quiltwork.budget.ledger.ledger_records import Receipt, Status
    from quiltwork.budget.spending import Spending

Answer = TypeVar("Answer")


BEGINNING_OF = "beginning_of"
"""Field of a request's document: the dataset's length, if the data are only its beginning."""


@dataclass(frozen=True)
class Request:
    """A request for a debit: the spending, the mechanism, and a document that describes the query.

    Two requests under one idempotency key are the same if all three are equal. The document is
    plain JSON; its `belief_digest` and `length`, if any, must be those of the dataset.

    >>> from quiltwork.budget import Spending
    >>> Request(Spending.dp(0.1, 1, 10), "count").body["mechanism"]
    'count'
    """

    spending: Spending
    mechanism: str = "declared"
    document: Mapping[str, Any] | None = None

    @cached_property
    def body(self) -> dict[str, Any]:
        """All that must be equal in two requests under one key."""
        return {
            "spending": self.spending.to_body(),
            "mechanism": self.mechanism,
            "request": dict(self.document or {}),
        }


Debitable: TypeAlias = "Request | Spending | Mapping[str, Any]"
"""What a ledger can debit; a mapping has `dp_epsilon`, for a mechanism on the whole dataset."""


@runtime_checkable
class PayingLedger(Protocol):
    """The methods of a `Ledger` that a payment uses."""

    def debit(
        self,
        dataset: str,
        spending: Any,
        key: str | None = None,
        analyst: str | None = None,
        mark: str | None = None,
        certificate: str | None = None,
    ) -> Receipt:
        """Debit a release, durably."""

    def check(self, dataset: str, spending: Any) -> None:
        """Refuse a release that is not about the dataset."""

    def status(self, dataset: str) -> Status:
        """Return a summary of the dataset."""

    def registered(self, dataset: str) -> str | None:
        """Return the mark of the registered data."""


@dataclass(frozen=True)
class Payer:
    """The dataset of a ledger that pays for an answer, perhaps under a key and for an analyst."""

    ledger: PayingLedger
    dataset: str
    key: str | None = None
    analyst: str | None = None
    holds_rows: ClassVar[bool] = False
    """Whether the rows themselves are stored beside the ledger, so that none are registered."""

    mark: str | None = None
    """Recorded with the debit, to recognize the request by (`Ledger.debit`)."""
    certificate: str | None = field(default=None, kw_only=True)
    """Stored with the debit: the proof that the noise suffices."""

    def check(self, release: Debitable) -> None:
        """Refuse a release that is not about the dataset, before any private cell is read."""
        self.ledger.check(self.dataset, release)

    def debit(self, release: Debitable) -> Receipt:
        """Debit a release, or return the receipt that its key stands for."""
        return self.ledger.debit(
            self.dataset, release, self.key, self.analyst, self.mark, self.certificate
        )

    def secrets(self) -> tuple[SecretPairs | None, int]:
        """Return the protected pairs of values (None for all) and the length of an episode."""
        status = self.ledger.status(self.dataset)
        return status.pairs, status.episode

    def store(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit; only then may it be shown."""
        receipt.complete(answer)


def as_payer(
    ledger: Any, dataset: Any = None, key: Any = None, analyst: Any = None
) -> Payer | None:
    """Validate the ledger arguments of a call; None if all were left out.

    A `Payer` as `ledger` already contains the others.

    Raises:
        InvalidInputError: for other types, and for a ledger or a dataset without the other.
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
            "A ledger is given without dataset=: name the dataset whose budget is to be debited."
        )
    if not isinstance(ledger, PayingLedger):
        kind = "a URL" if isinstance(ledger, str) else f"a {type(ledger).__name__}"
        raise InvalidInputError(
            f"ledger must be an open ledger, not {kind}; write "
            "ledger=qw.Ledger.open('sqlite:///budget.db')."
        )
    return Payer(ledger, dataset, key, analyst)


def pay(
    payer: Payer | None,
    describe: Callable[[], Debitable],
    draw: Callable[[Receipt | None], Answer],
    store: Callable[[Receipt | None, Answer], None],
    read: Callable[[str], Answer],
) -> Answer:
    """Debit, draw, store, and only then return the answer; without a payer, draw and store.

    A retry under the same key returns the stored answer and draws nothing.

    Args:
        payer: whose budget pays; None for a release without a ledger.
        describe: returns the release as plain data; called if there is a payer.
        draw: reads private data and draws noise.
        store: makes the answer durable.
        read: turns the text stored under the same key earlier into the answer.

    Raises:
        BudgetExceeded: if it does not fit; nothing was recorded and nothing drawn.
        NotPrivateError: if the key was debited and its answer never stored.
        InvalidInputError: for a key of another request, and a release that is not about the
            dataset.

    Theorem: docs/theory/ledger.md
    """
    receipt = None
    if payer is not None:
        receipt = payer.debit(describe())
        if receipt.stored is not None:
            return read(receipt.stored)
    answer = draw(receipt)
    store(receipt, answer)
    return answer


def pay_and_store(
    payer: Payer | None,
    describe: Callable[[], Debitable],
    draw: Callable[[], Answer],
    write: Callable[[Answer], str],
    read: Callable[[str], Answer],
) -> Answer:
    """`pay` for an answer that is stored in the ledger itself, as text."""

    def store(receipt: Receipt | None, answer: Answer) -> None:
        if payer is not None and receipt is not None:
            payer.store(receipt, write(answer))

    return pay(payer, describe, lambda _: draw(), store, read)
