"""What a holdout owes a ledger: one debit per round, before the round's first question.

The transcript's first line names the ledger by its identity, 32 random digits that the ledger made
for itself, not by where it is: another ledger, whatever its URL and the names of its datasets, does
not pay. A ledger that was put back to an older state lacks the last round's debit, and is refused;
so is a copy that went on by itself since: its entry for that round, if any, has another hash.
A round is debited under its number, once for ever, so files that were put back to an older state
cannot begin a round again: as many rounds are used as the ledger has debits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quiltwork.budget.payment import pay, read_payer
from quiltwork.errors import InvalidInputError, NotPrivateError, StorageError

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Receipt
    from quiltwork.holdout.sealed_log import Secret
    from quiltwork.holdout.transcript import Transcript


def check_ledger(ledger: Any, dataset: Any) -> None:
    """Refuse a ledger without a dataset, a dataset without a ledger, and what is none."""
    if read_payer(ledger, dataset) is not None:
        from quiltwork.budget.ledger.amounts import identifier

        identifier(dataset, "dataset")


def identity_of(ledger: Ledger | None, dataset: str | None, rows: int) -> str | None:
    """Return the identity of the ledger that will pay for a holdout of so many rows."""
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
    """Refuse any ledger but the one that a holdout was created with, or an older copy of it."""
    if transcript.rounds.dataset != dataset:
        raise InvalidInputError(
            f"This holdout debits {_named(transcript.rounds.dataset)}, and {_named(dataset)} is "
            "given; resume it with the ledger it was created with."
        )
    if ledger is None or dataset is None:
        return
    found = ledger.checkpoint().ledger_id
    if transcript.rounds.ledger != found:
        raise StorageError(
            f"This holdout is paid for by ledger {transcript.rounds.ledger}, and ledger {found} is "
            "given: another one, or one that was begun anew in its place. Give the ledger it was "
            "created with, wherever it is now."
        )
    if secret.debit is not None and all(
        debit.key != secret.debit or secret.paid not in (None, debit.hash)
        for debit in ledger.history(dataset)
    ):
        raise StorageError(
            "The ledger lacks the debit of this holdout's last round: it is another ledger, or an "
            "older copy was put in its place. Give the latest one."
        )


def begin_round(
    ledger: Ledger | None,
    transcript: Transcript,
    secret: Secret,
    number: int,
    draw: Callable[[], int],
    keep: Callable[[Secret], None],
) -> Secret:
    """Pay for round `number`, from 0, then draw its threshold and keep it; return the secret."""
    key = f"{_prefix(transcript)}{number + 1}"
    payer = None if ledger is None else read_payer(ledger, transcript.rounds.dataset, key)

    def asked() -> dict[str, str]:
        return {
            "mechanism": "reusable-holdout",
            "dp_epsilon": str(transcript.rounds.settings.round_epsilon),
            "label": f"holdout {transcript.identity[:8]}, round {number + 1}",
        }

    def drawn(receipt: Receipt | None) -> Secret:
        found = replace(secret, round=number, threshold=draw())
        if receipt is None:
            return found
        return replace(found, debit=key, entry=receipt.number, paid=receipt.hash)

    def refuse(_: str) -> Secret:
        raise _behind(number + 1, number)

    try:
        return pay(payer, asked, drawn, lambda _, found: keep(found), refuse)
    except NotPrivateError:
        raise _behind(number + 1, number) from None


def lost_rounds(ledger: Ledger | None, transcript: Transcript, used: int) -> int:
    """Return how many rounds the ledger was debited for, if the files do not know the last; else 0.

    That happens if a process ends between the debit and what it writes next, and then nobody has
    seen anything of the round. `used` is how many rounds the files know of.
    """
    if ledger is None:
        return 0
    prefix, dataset = _prefix(transcript), str(transcript.rounds.dataset)
    keys = (debit.key or "" for debit in ledger.history(dataset))
    ours = {int(key.split()[2]): key for key in keys if key.startswith(prefix)}
    debited = max(ours, default=0)
    if debited <= used:
        return 0
    if debited > used + 1 or ledger.answer(dataset, ours[debited]) is not None:
        raise _behind(debited, used)
    return debited


def _prefix(transcript: Transcript) -> str:
    """What the keys of a holdout's debits begin with; the round's number follows."""
    return f"{transcript.identity} round "


def _behind(debited: int, used: int) -> StorageError:
    return StorageError(
        f"The ledger was debited for round {debited} of this holdout, and its files know of {used} "
        "only: an older copy was put in their place, or another process goes on with a copy. Put "
        "back the latest transcript and its secret; without them this holdout answers no more."
    )


def close_round(ledger: Ledger | None, transcript: Transcript, secret: Secret, over: int) -> None:
    """Let the ledger know that a round is over, so that older files cannot go on with it."""
    if ledger is None or secret.entry is None:
        return
    from quiltwork.budget import Receipt, Spending

    settings = transcript.rounds.settings
    spending = Spending.dp(settings.round_epsilon, 1, settings.rows)
    receipt = Receipt(str(transcript.rounds.dataset), secret.entry, spending)
    ledger.complete(receipt, f"round {over} is over")


def is_over(ledger: Ledger | None, transcript: Transcript, secret: Secret) -> bool:
    """Whether the ledger knows that the secret's round is over."""
    if ledger is None or secret.debit is None:
        return False
    return ledger.answer(str(transcript.rounds.dataset), secret.debit) is not None


def _named(dataset: str | None) -> str:
    return "no ledger" if dataset is None else f"the ledger's dataset {dataset!r}"
