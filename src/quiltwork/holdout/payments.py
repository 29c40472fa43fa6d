"""What a holdout owes a ledger: one debit per round, before the round's first question.

The transcript's first line names the ledger by its identity, 32 random digits that the ledger made
for itself, not by where it is: another ledger, whatever its URL and the names of its datasets, does
not pay. A ledger that was put back to an older state lacks the last round's debit, and is refused.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from quiltwork.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from quiltwork.holdout.storage import Secret
    from quiltwork.holdout.transcript import Transcript
    from quiltwork.ledger import Ledger


def check_ledger(ledger: Any, dataset: Any) -> None:
    """Refuse a ledger without a dataset, a dataset without a ledger, and what is none.

    Raises:
        InvalidInputError: if they do not go together.
    """
    if (ledger is None) != (dataset is None):
        raise InvalidInputError(
            "Give ledger= and dataset= together, so that it is known whose budget to debit."
        )
    if ledger is None:
        return
    from quiltwork.ledger import Ledger
    from quiltwork.ledger.numbers import identifier

    identifier(dataset, "dataset")
    if not isinstance(ledger, Ledger):
        raise InvalidInputError(
            f"ledger must be a Ledger, not {type(ledger).__name__}; open one with "
            "Ledger.open('sqlite:///budget.db')."
        )


def identity_of(ledger: Ledger | None, dataset: str | None, rows: int) -> str | None:
    """Return the identity of the ledger that will pay for a holdout of so many rows.

    Raises:
        InvalidInputError: if it has no such dataset, or one of fewer rows.
        StorageError: if there is no ledger.
    """
    if ledger is None or dataset is None:
        return None
    length = ledger.status(dataset).length
    if length is not None and length < rows:
        raise InvalidInputError(
            f"The ledger's dataset {dataset!r} has {length:,} rows and the holdout {rows:,}; "
            "debit the dataset that these rows belong to."
        )
    return ledger.checkpoint().ledger_id


def check_same_ledger(
    ledger: Ledger | None, dataset: str | None, transcript: Transcript, secret: Secret
) -> None:
    """Refuse any ledger but the one that a holdout was created with, or an older copy of it.

    Raises:
        InvalidInputError: if another dataset is given, or the transcript cannot tell.
        StorageError: if it is another ledger, or lacks the last debit.
    """
    if transcript.dataset != dataset:
        raise InvalidInputError(
            f"This holdout debits {_named(transcript.dataset)}, and {_named(dataset)} is "
            "given; resume it with the ledger it was created with."
        )
    if ledger is None or dataset is None:
        return
    found = ledger.checkpoint().ledger_id
    if transcript.ledger not in (None, found):
        raise StorageError(
            f"This holdout is paid for by ledger {transcript.ledger}, and ledger {found} is "
            "given: another one, or one that was begun anew in its place. Give the ledger it was "
            "created with, wherever it is now."
        )
    if secret.debit is None and transcript.ledger is None:
        raise InvalidInputError(
            "This holdout was begun by an older quiltwork, which did not note whose ledger pays, "
            "and nothing was debited yet that could tell. Nothing is lost by creating it anew."
        )
    if secret.debit is not None and all(
        debit.key != secret.debit for debit in ledger.history(dataset)
    ):
        raise StorageError(
            "The ledger lacks the debit of this holdout's last round: it is another ledger, or an "
            "older copy was put in its place. Give the latest one."
        )


def debit_round(
    ledger: Ledger | None, transcript: Transcript, number: int
) -> tuple[str | None, int | None]:
    """Debit round `number`, from 0; return the debit's key and its entry in the ledger.

    Raises:
        BudgetExceeded: if it does not fit; then nothing was recorded.
    """
    if ledger is None:
        return None, None
    key = f"{transcript.identity} round {number + 1} {secrets.token_hex(8)}"
    record = {
        "mechanism": "reusable-holdout",
        "dp_epsilon": str(transcript.settings.round_epsilon),
        "label": f"holdout {transcript.identity[:8]}, round {number + 1}",
    }
    return key, ledger.debit(str(transcript.dataset), record, key).number


def close_round(ledger: Ledger | None, transcript: Transcript, secret: Secret, over: int) -> None:
    """Let the ledger know that a round is over, so that older files cannot go on with it."""
    if ledger is None or secret.entry is None:
        return
    from quiltwork.accounting import Spending
    from quiltwork.ledger.receipts import Receipt

    settings = transcript.settings
    spending = Spending.dp(settings.round_epsilon, 1, settings.rows)
    receipt = Receipt(str(transcript.dataset), secret.entry, spending)
    ledger.complete(receipt, f"round {over} is over")


def is_over(ledger: Ledger | None, transcript: Transcript, secret: Secret) -> bool:
    """Whether the ledger knows that the secret's round is over."""
    if ledger is None or secret.debit is None:
        return False
    return ledger.answer(str(transcript.dataset), secret.debit) is not None


def _named(dataset: str | None) -> str:
    return "no ledger" if dataset is None else f"the ledger's dataset {dataset!r}"
