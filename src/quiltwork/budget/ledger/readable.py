"""What can be read of a ledger, by those who spend and by those who check.

Reading waits for nobody who writes.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

from quiltwork import files
from quiltwork.budget import Spending
from quiltwork.budget.ledger import backups, records
from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.checkpoints import Checkpoint, read_checkpoint
from quiltwork.budget.ledger.claims import AnyAccountant
from quiltwork.budget.ledger.debits import find_answer
from quiltwork.budget.ledger.entries import Entry
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.records import Debit, Note, Status, read_note, unknown
from quiltwork.budget.ledger.requests import read_request
from quiltwork.budget.ledger.snapshots import States
from quiltwork.budget.ledger.state import DatasetState
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.verification import verified, verified_since
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened

Result = TypeVar("Result")

_LAST = 2**63 - 1
"""No entry has a higher number: databases count no further."""


class ReadableLedger:
    """Everything a ledger tells; `Ledger` adds what is written to it."""

    def __init__(self, store: Store) -> None:
        """Use a store; `Ledger.open` makes one from a URL."""
        if not isinstance(store, Store):  # a URL may hold a password, so it is not shown
            raise InvalidInputError("Open a ledger by its URL: Ledger.open('sqlite:///budget.db').")
        self._store = store
        self._states = States()

    @property
    def url(self) -> str:
        """Where the ledger is, without a password; a file by its whole path."""
        return self._store.database.url

    @property
    def store(self) -> Store:
        """The transactions on its database, for tables that somebody keeps beside the ledger's."""
        return self._store

    def registered(self, dataset: str) -> str | None:
        """Return the mark that was noted last; None if none was."""
        return self._ask(dataset, lambda state: state.mark)

    def close(self) -> None:
        """Let go of the database; using the ledger again opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        """Use the ledger in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def notes(self, after: int = 0, limit: int | None = None) -> tuple[Note, ...]:
        """Return refusals and reads, oldest first, of the entries `after` a number."""
        start, most = _after(after), _limit(limit)
        return self._store.read(
            lambda log: tuple(read_note(entry) for entry in islice(log.notes(start), most))
        )

    def answer(self, dataset: str, key: str, analyst: str | None = None) -> str | None:
        """Return the answer stored under a key of an analyst, byte for byte; None without one."""
        name, used_key = identifier(dataset, "dataset"), identifier(key, "key")
        who = None if analyst is None else identifier(analyst, "analyst")
        return self._store.read(lambda log: find_answer(log, name, used_key, who))

    def kept(
        self, dataset: str, key: str, analyst: str | None = None
    ) -> tuple[Debit, str | None] | None:
        """Return the debit made under a key of an analyst and its answer; None without a debit."""
        name, used_key = identifier(dataset, "dataset"), identifier(key, "key")
        who = None if analyst is None else identifier(analyst, "analyst")

        def work(log: Log) -> tuple[Debit, str | None] | None:
            debit = log.with_key(name, used_key, who)
            return None if debit is None else _with_answer(log, debit)

        return self._store.read(work)

    def released(
        self, dataset: str, after: int = 0, limit: int | None = None
    ) -> tuple[tuple[Debit, str | None], ...]:
        """Return a page of debits as `history` does, each with its answer, None without one."""
        name, start, most = identifier(dataset, "dataset"), _after(after), _limit(limit)

        def work(log: Log) -> tuple[tuple[Debit, str | None], ...]:
            debits = (entry for entry in log.steps(name, start) if entry.kind == "debit")
            return tuple(_with_answer(log, one) for one in islice(debits, most))

        return self._store.read(work)

    def status(self, dataset: str) -> Status:
        """Return budget, total, shares and state of a dataset."""
        return self._ask(dataset, lambda state: state.status)

    def datasets(self) -> tuple[Status, ...]:
        """Return the status of every dataset, in the order of their creation."""
        return self._store.read(
            lambda log: tuple(self._states.found(log, name).status for name in log.datasets())
        )

    def history(self, dataset: str, after: int = 0, limit: int | None = None) -> tuple[Debit, ...]:
        """Return the granted debits of a dataset, oldest first.

        A page of it: at most `limit` debits whose number is above `after`, that of the last debit
        of the page before. Cost: what is returned.
        """
        name = identifier(dataset, "dataset")
        start, most = _after(after), _limit(limit)

        def work(log: Log) -> tuple[Debit, ...]:
            debits = (entry for entry in log.steps(name, start) if entry.kind == "debit")
            page = list(islice(debits, most))
            if not page and next(log.steps(name), None) is None:
                raise unknown(name, log.datasets())
            answered = log.answered(name, page[0].seq, page[-1].seq) if page else set()
            return tuple(records.read_debit(one, released=one.seq in answered) for one in page)

        return self._store.read(work)

    def log(self, after: int = 0, limit: int | None = None) -> tuple[Entry, ...]:
        """Return every entry, as it is stored; or a page, as `history` does."""
        start, most = _after(after), _limit(limit)
        return self._store.read(lambda log: tuple(islice(log.all_entries(start), most)))

    def checkpoint(self) -> Checkpoint:
        """Return where the log ends now; keep it elsewhere and give it to `verify` later."""
        return self._store.read(
            lambda log: Checkpoint(log.ledger_id, log.head.count, log.head.hash)
        )

    def verify(self, checkpoint: Checkpoint | None = None) -> Checkpoint:
        """Check everything: the chain of hashes, the database's own pages, then every debit again.

        The entries are added up from the beginning, and what they cost is compared with the bound
        that was recorded with them. With a checkpoint, also that the log still begins with what the
        checkpoint saw. Returns a new checkpoint. Cost: one SHA-256 per entry, and some dozen
        pricings of every dataset. For what was written since a checkpoint see `verify_since`.

        Raises:
            StorageError: at the first thing that is not as it was written, and for a dataset whose
                debits cost more than its budget, by a bound that was corrected since.

        Theorem: docs/theory/ledger.md
        """
        return verified(self._store, read_checkpoint(checkpoint))

    def verify_since(self, checkpoint: Checkpoint) -> Checkpoint:
        """Check what was written since a checkpoint that was verified; return a new checkpoint.

        The chain of hashes from there on, that each new entry is a step forward, and that every
        dataset touched is within its budget and its caps. What was before the checkpoint is bound
        by its hash, and read only as far as there is no snapshot. Cost: the new entries, and those
        of the datasets touched since their snapshots.

        Raises:
            StorageError: at the first thing that is not as it was written.
        """
        since = read_checkpoint(checkpoint)
        if since is None:
            raise InvalidInputError("verify_since needs a checkpoint; without one call verify().")
        return self._store.read(lambda log: verified_since(log, self._states, since))

    def backup(self, path: str | Path) -> Checkpoint:
        """Write the whole log to a file, for `Ledger.restore`; returns where it ends."""
        target = files.as_path(path)
        return self._store.read(lambda log: backups.write_backup(log, target))

    def check(self, dataset: str, spending: Any) -> None:
        """Refuse what is not about the dataset, as `debit` would; it prices nothing.

        Raises:
            InvalidInputError: for other beliefs than the dataset's, data of another length, and
                bad arguments.
            UnsupportedError: for a release without noise.
        """

        def question(state: DatasetState) -> None:
            read_request(spending, dataset, state.beliefs, state.length)

        self._ask(dataset, question)

    def ask(self, dataset: str, question: Callable[[AnyAccountant], Result]) -> Result:
        """Ask the accountant of a dataset something about all that was committed by now."""
        if not callable(question):
            raise InvalidInputError(f"A question is a function, not {shortened(question)}.")
        return self._ask(
            dataset, lambda state: question(state.accountant(self._releases_until(state)))
        )

    def _releases_until(self, state: DatasetState) -> Callable[[], tuple[Spending, ...]]:
        """What finds the releases of a dataset, in order."""

        def read(log: Log) -> tuple[Spending, ...]:
            return tuple(
                Spending.from_body(entry.content["spending"])
                for entry in log.steps(state.name)
                if entry.kind == "debit" and entry.seq <= state.head.count
            )

        return lambda: self._store.read(read)

    def _ask(self, dataset: str, question: Callable[[DatasetState], Result]) -> Result:
        name = identifier(dataset, "dataset")
        return self._store.read(lambda log: question(self._states.found(log, name)))


def _with_answer(log: Log, debit: Entry) -> tuple[Debit, str | None]:
    answer = log.answer_to(debit.seq)
    stored = None if answer is None else str(answer.content["answer"])
    return records.read_debit(debit, released=stored is not None), stored


def _after(number: int) -> int:
    return min(integer(number, "after", 0), _LAST)


def _limit(limit: int | None) -> int | None:
    return None if limit is None else min(integer(limit, "limit", 1), sys.maxsize)
