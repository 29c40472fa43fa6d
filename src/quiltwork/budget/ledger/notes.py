"""Notes of refusals, reads and acts: entries of the log that change no total.

A refused debit is noted in the transaction that refuses it. To keep repeated refusals from filling
the disk, a process notes at most a hundred an hour for each dataset and analyst (analysts without a
share count as one); the last of them says so.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TypeAlias

from quiltwork.arguments import choice, instance
from quiltwork.budget.ledger.entries import Draft, canonical, now
from quiltwork.budget.ledger.ledger_records import NOTES
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.requests import parse_name
from quiltwork.budget.ledger.shares import NotAllottedError
from quiltwork.errors import BudgetExceeded, NotPrivateError

REFUSALS = (BudgetExceeded, NotPrivateError, NotAllottedError)
Refusal: TypeAlias = BudgetExceeded | NotPrivateError | NotAllottedError
"""A debit refused for what it would spend, or for whom."""

MOST_AN_HOUR = 100
_HOUR = 3600
_LONGEST = 1000


def note_draft(identity: str, kind: str, text: str, dataset: str | None, who: str) -> Draft:
    """Return the entry of a note; for arguments and errors see `Ledger.note`."""
    choice(kind, NOTES, "kind")
    name = "" if dataset is None else parse_name(dataset, "dataset")
    author = parse_name(who, "who") if who else ""
    text = instance(text, str, "text")[:_LONGEST]
    return Draft(identity, name, kind, canonical({"text": text, "who": author, "at": now()}))


def append_once(log: Log, draft: Draft) -> None:
    """Append an entry, unless an attempt before a lost connection did."""
    if log.with_id(draft.id) is None:
        log.append(draft)


class RefusalCounter:
    """The rate limit on notes: refusals of the current hour, by dataset and analyst."""

    def __init__(self) -> None:
        """Start with no refusals."""
        self._counts: dict[tuple[str, str], int] = {}
        self._hour = 0

    def note(self, dataset: str, analyst: str | None) -> RefusalNote:
        """Return a note to write if a debit is refused."""
        return RefusalNote(self, dataset, analyst or "")

    def increment(self, dataset: str, who: str) -> int:
        """Count one more refusal and return how many this hour had."""
        hour = int(time.monotonic() // _HOUR)
        if hour != self._hour:
            self._counts, self._hour = {}, hour
        count = self._counts[dataset, who] = self._counts.get((dataset, who), 0) + 1
        return count


@dataclass
class RefusalNote:
    """The note of one refusal, written once although its transaction may be retried."""

    counter: RefusalCounter
    dataset: str
    who: str
    _draft: Draft | None = None

    def write(self, log: Log, refusal: Refusal) -> None:
        """Append the note, unless the hour has too many."""
        draft = self._draft or self._new_draft(refusal)
        if draft is not None:
            self._draft = draft
            append_once(log, draft)

    def _new_draft(self, refusal: Refusal) -> Draft | None:
        # Names without a share are unlimited in number, so all of them share one counter.
        counted_as = "" if isinstance(refusal, NotAllottedError) else self.who
        count = self.counter.increment(self.dataset, counted_as)
        # Not str(): that appends what would fit, which takes longer to find than to refuse.
        text = refusal.reason if isinstance(refusal, BudgetExceeded) else str(refusal)
        if count > MOST_AN_HOUR:
            return None
        if count == MOST_AN_HOUR:
            text = f"{text[: _LONGEST - 80]} (Further refusals of this hour are not noted.)"
        return note_draft(secrets.token_hex(16), "refusal", text, self.dataset, self.who)
