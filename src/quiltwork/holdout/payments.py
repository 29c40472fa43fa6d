"""Ledger debits of a holdout: one per round, before the round's first question.

The transcript names its ledger by the ledger's own random identity, not by a URL, so no other
ledger can pay. An older copy of the ledger lacks the last round's debit and is refused; so is a
copy that continued separately, because its entry for that round has another hash. A round's number
is the idempotency key of its debit: restoring older files cannot begin a round again, and the
number of used rounds is the number of debits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quiltwork.budget.payment import as_payer, pay
from quiltwork.errors import InvalidInputError, NotPrivateError, StorageError

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Receipt
    from quiltwork.holdout.sealed_log import Secret
    from quiltwork.holdout.transcript import Transcript


def check_ledger(ledger: Any, dataset: Any) -> None:
    """Validate a ledger and its dataset, which must be given together."""
    if as_payer(ledger, dataset) is not None:
        from quiltwork.budget.ledger.requests import parse_name

        parse_name(dataset, "dataset")


def identity_of(ledger: Ledger | None, dataset: str | None, rows: int) -> str | None:
    """Return the identity of the ledger that will pay for a holdout of `rows` rows."""
    if ledger is None or dataset is None:
        return None
    length = ledger.status(dataset).length
    if length is not None and length < rows:
        raise InvalidInputError(
            f"The ledger's dataset {dataset!r} has {length:,} rows and the holdout {rows:,}: give "
            "the dataset that these rows belong to."
        )
    return ledger.checkpoint().ledger_id


def check_same_ledger(
    ledger: Ledger | None, dataset: str | None, transcript: Transcript, secret: Secret
) -> None:
    """Refuse any ledger but the one the holdout was created with, and older copies of it."""
    if transcript.rounds.dataset != dataset:
        raise InvalidInputError(
            f"This holdout debits {_dataset_text(transcript.rounds.dataset)}, but "
            f"{_dataset_text(dataset)} was given. Resume it with the ledger it was created with."
        )
    if ledger is None or dataset is None:
        return
    identity = ledger.checkpoint().ledger_id
    if transcript.rounds.ledger != identity:
        raise StorageError(
            f"This holdout is paid for by ledger {transcript.rounds.ledger}, but ledger {identity} "
            "was given: another ledger, or a new one in its place. Give the ledger it was created "
            "with, wherever it is now."
        )
    if secret.debit is not None and all(
        debit.key != secret.debit or secret.paid not in (None, debit.hash)
        for debit in ledger.history(dataset)
    ):
        raise StorageError(
            "The ledger lacks the debit of this holdout's last round: it is another ledger, or an "
            "older copy. Give the latest one."
        )


def begin_round(
    ledger: Ledger | None,
    transcript: Transcript,
    secret: Secret,
    number: int,
    draw: Callable[[], int],
    keep: Callable[[Secret], None],
) -> Secret:
    """Pay for round `number`, from 0, then draw its threshold and store it; return the secret."""
    key = f"{_prefix(transcript)}{number + 1}"
    payer = None if ledger is None else as_payer(ledger, transcript.rounds.dataset, key)

    def debit_record() -> dict[str, str]:
        return {
            "mechanism": "reusable-holdout",
            "dp_epsilon": str(transcript.rounds.settings.round_epsilon),
            "label": f"holdout {transcript.identity[:8]}, round {number + 1}",
        }

    def draw_threshold(receipt: Receipt | None) -> Secret:
        updated = replace(secret, round=number, threshold=draw())
        if receipt is None:
            return updated
        return replace(updated, debit=key, entry=receipt.number, paid=receipt.hash)

    def refuse(_: str) -> Secret:
        raise _behind(number + 1, number)

    # The debit first: a threshold that was drawn but not paid for could be drawn again.
    try:
        return pay(payer, debit_record, draw_threshold, lambda _, updated: keep(updated), refuse)
    except NotPrivateError:
        raise _behind(number + 1, number) from None


def lost_rounds(ledger: Ledger | None, transcript: Transcript, used: int) -> int:
    """Return the last debited round if the files do not have it, else 0.

    That happens when a process stops between the debit and its next write; nobody has then seen any
    answer of the round. `used` is the number of rounds in the files.
    """
    if ledger is None:
        return 0
    prefix, dataset = _prefix(transcript), str(transcript.rounds.dataset)
    keys = (debit.key or "" for debit in ledger.history(dataset))
    keys_by_round = {int(key.split()[2]): key for key in keys if key.startswith(prefix)}
    debited = max(keys_by_round, default=0)
    if debited <= used:
        return 0
    if debited > used + 1 or ledger.answer(dataset, keys_by_round[debited]) is not None:
        raise _behind(debited, used)
    return debited


def _prefix(transcript: Transcript) -> str:
    """The common prefix of a holdout's idempotency keys; the round's number follows."""
    return f"{transcript.identity} round "


def _behind(debited: int, used: int) -> StorageError:
    return StorageError(
        f"The ledger was debited for round {debited} of this holdout, but its files contain only "
        f"{used} rounds: they are an older copy, or another process continues with a copy. Restore "
        "the latest transcript and its secret; without them this holdout gives no more answers."
    )


def close_round(ledger: Ledger | None, transcript: Transcript, secret: Secret, over: int) -> None:
    """Record in the ledger that a round is over, so that older files cannot continue it."""
    if ledger is None or secret.entry is None:
        return
    from quiltwork.budget import Receipt, Spending

    settings = transcript.rounds.settings
    spending = Spending.dp(settings.round_epsilon, 1, settings.rows)
    receipt = Receipt(str(transcript.rounds.dataset), secret.entry, spending)
    ledger.complete(receipt, f"round {over} is over")


def is_over(ledger: Ledger | None, transcript: Transcript, secret: Secret) -> bool:
    """Whether the ledger has recorded that the secret's round is over."""
    if ledger is None or secret.debit is None:
        return False
    return ledger.answer(str(transcript.rounds.dataset), secret.debit) is not None


def _dataset_text(dataset: str | None) -> str:
    return "no ledger" if dataset is None else f"the ledger's dataset {dataset!r}"
