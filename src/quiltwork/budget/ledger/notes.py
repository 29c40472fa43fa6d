"""Notes of what was refused and read: entries of the log that change no total.

A refusal is noted in the transaction that refuses. Who asks again and again
for what is refused must not fill the disk, so a process notes the first hundred refusals of an hour
for each dataset and analyst, of whom those without a share count as one; the last of them says so.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TypeAlias

from quiltwork.arguments import choice, instance
from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.entries import Draft, canonical
from quiltwork.budget.ledger.log import Log, now
from quiltwork.budget.ledger.records import NOTES
from quiltwork.budget.ledger.shares import NotAllottedError
from quiltwork.errors import BudgetExceeded, NotPrivateError

REFUSALS = (BudgetExceeded, NotPrivateError, NotAllottedError)
Refusal: TypeAlias = BudgetExceeded | NotPrivateError | NotAllottedError
"""A debit that is refused for what it would spend, or for whom."""

MOST_AN_HOUR = 100
_HOUR = 3600
_LONGEST = 1000


def noted(identity: str, kind: str, text: str, dataset: str | None, who: str) -> Draft:
    """Write an entry that says what somebody did; for arguments and errors see `Ledger.note`."""
    choice(kind, NOTES, "kind")
    name = "" if dataset is None else identifier(dataset, "dataset")
    by = identifier(who, "who") if who else ""
    said = instance(text, str, "text")[:_LONGEST]
    return Draft(identity, name, kind, canonical({"text": said, "who": by, "at": now()}))


def write_once(log: Log, draft: Draft) -> None:
    """Append an entry, though the connection was lost after an earlier attempt."""
    if log.with_id(draft.id) is None:
        log.append(draft)


class Refusals:
    """How many refusals were noted in this hour, by dataset and analyst."""

    def __init__(self) -> None:
        """None yet."""
        self._noted: dict[tuple[str, str], int] = {}
        self._hour = 0

    def draft(self, dataset: str, analyst: str | None) -> Noting:
        """Prepare to note a refusal, should there be one."""
        return Noting(self, dataset, analyst or "")

    def counted(self, dataset: str, who: str) -> int:
        """Count one more; return how many that makes."""
        hour = int(time.monotonic() // _HOUR)
        if hour != self._hour:
            self._noted, self._hour = {}, hour
        found = self._noted[dataset, who] = self._noted.get((dataset, who), 0) + 1
        return found


@dataclass
class Noting:
    """The note of one refusal, written once though it is tried often."""

    refusals: Refusals
    dataset: str
    who: str
    _draft: Draft | None = None

    def write(self, log: Log, refusal: Refusal) -> None:
        """Note a refusal in a transaction, unless there are many."""
        draft = self._draft or self._counted(refusal)
        if draft is not None:
            self._draft = draft
            write_once(log, draft)

    def _counted(self, refusal: Refusal) -> Draft | None:
        strange = isinstance(refusal, NotAllottedError)  # of such names there is no end
        known = "" if strange else self.who
        count, text = self.refusals.counted(self.dataset, known), _reason(refusal)
        if count > MOST_AN_HOUR:
            return None
        if count == MOST_AN_HOUR:
            text = f"{text[: _LONGEST - 80]} (Further refusals of this hour are not noted.)"
        return noted(secrets.token_hex(16), "refusal", text, self.dataset, self.who)


def _reason(refusal: Refusal) -> str:
    """Why, without what would fit: to find that takes longer than to refuse."""
    return refusal.reason if isinstance(refusal, BudgetExceeded) else str(refusal)
