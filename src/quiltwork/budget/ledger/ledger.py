"""`Ledger`: the truth about many datasets' budgets, across processes, machines and crashes.

Every request is one transaction: take the lock, read what has been committed, price, refuse or
append, commit to the disk. A release is debited before its data are used and shown only after its
answer is stored, so what was released is always among what was debited. Cost of a debit: one
durable commit, and pricing one more release, some milliseconds after 10⁵ others under a chain of
few states.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from quiltwork import files
from quiltwork.arguments import instance, listed
from quiltwork.beliefs import Belief, Label, as_beliefs
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger import backups, records
from quiltwork.budget.ledger.amounts import allowance, amount, identifier, points
from quiltwork.budget.ledger.bounds import RecordedBound
from quiltwork.budget.ledger.checkpoints import Checkpoint, read_checkpoint
from quiltwork.budget.ledger.claims import Claim
from quiltwork.budget.ledger.debits import (
    debited,
    debited_together,
    previewed,
    read_keys,
    stored_answer,
)
from quiltwork.budget.ledger.entries import Draft, canonical
from quiltwork.budget.ledger.ledger_accountant import LedgerAccountant
from quiltwork.budget.ledger.log import Log, now
from quiltwork.budget.ledger.notes import REFUSALS, Refusal, Refusals, noted, write_once
from quiltwork.budget.ledger.readable import ReadableLedger
from quiltwork.budget.ledger.records import Quote, Receipt, Share, Status
from quiltwork.budget.ledger.shares import check_share
from quiltwork.budget.ledger.snapshots import append_step
from quiltwork.budget.ledger.state import DatasetState
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.urls import database_at
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, privacy_level

Result = TypeVar("Result")

_LONGEST_MARK = 5_000
"""Characters: a mark of registered files also has the options by which they are read."""


class Ledger(ReadableLedger):
    """Budgets of datasets in one database; open it with `Ledger.open(url)`.

    Safe to share between threads, and to use on both sides of a fork.

    >>> from tempfile import TemporaryDirectory
    >>> from quiltwork.beliefs import MarkovChain
    >>> folder = TemporaryDirectory()
    >>> ledger = Ledger.open(f"sqlite:///{folder.name}/budget.db")
    >>> status = ledger.create("coins", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 100, budget=1.0)
    >>> spending = ledger.accountant("coins").spend(dp_epsilon=0.1, start=1, stop=10)
    >>> ledger.status("coins").total, len(ledger.history("coins"))
    (0.1, 1)
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        """Use a store; `open` makes one from a URL."""
        super().__init__(store)
        self._refusals = Refusals()

    @classmethod
    def open(cls, url: str, *, timeout: float | None = None, read_only: bool = False) -> Ledger:
        """Name the database: `sqlite:///budget.db`, or `postgresql://user@host/database`.

        Nothing is created or connected to before it is needed; the first `create` makes the file
        or the tables.

        Args:
            url: where the ledger is.
            timeout: how many seconds a request waits for others who write; 60 if not given.
            read_only: for auditors: whatever would write is refused. The right to read is enough,
                with SQLite as long as somebody has the ledger open for writing.

        Raises:
            InvalidInputError: for any other URL.
            UnsupportedError: for PostgreSQL without psycopg.
        """
        return cls(Store(database_at(url, timeout=timeout, read_only=read_only)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the URL without its password, so that another process opens the same ledger.

        A password must reach that process as PostgreSQL's own programs get it: PGPASSWORD, .pgpass.
        """
        database = self._store.database
        return partial(Ledger.open, timeout=database.timeout, read_only=database.read_only), (
            self.url,
        )

    def create(
        self,
        dataset: str,
        beliefs: Belief | Sequence[Belief],
        length: int | None,
        budget: Number,
        episode: int = 1,
        delta: Number = 0,
        pure: Number = 0,
        pairs: Iterable[tuple[Label, Label]] | None = None,
    ) -> Status:
        """Begin a dataset: what an adversary may believe, how long it is, what may be spent.

        Its budget is fixed for ever and its name is never used again. With an `episode` the total
        bounds what is told about any so many time points in a row. Give the final length if it is
        known: every debit is priced for it then, while `extend` is refused where what was released
        would exceed the budget in a longer series.

        With a `delta` it accounts for (ε, δ): caps on the squares of Gaussian levels per time point
        are computed here, some f-sweeps, and recorded; `pure` is what pure levels may add up to
        beside them. Shares of analysts are then shares of the caps, from 0 to 1.

        With `pairs` only these values of a time point are kept apart, as in `calibrate`, in every
        release: `[("home", "away")]` hides whether somebody was at home, not in which room.

        Raises:
            InvalidInputError: for bad arguments, or if the dataset exists.
            UnsupportedError: with `delta` for beliefs without an order in time, and for `pairs`
                with `delta` or an episode.
        """
        name, members = identifier(dataset, "dataset"), as_beliefs(beliefs)
        size, stretch = None if length is None else points(length), integer(episode, "episode", 1)
        limit = privacy_level(amount(budget, "budget"), "budget")
        subjects = Secrets.read(members, size, stretch, pairs)
        claim = Claim.fixed(subjects, limit, delta, pure).to_body()
        body = records.create_body(members, subjects.length, claim, stretch, subjects.pairs)

        draft = Draft(secrets.token_hex(16), name, "create", canonical({**body, "at": now()}))

        def work(log: Log) -> None:
            if log.with_id(draft.id) is not None:
                return
            if next(log.steps(name), None) is not None:
                raise InvalidInputError(
                    f"Dataset {name!r} exists already, and a budget is set only once; use it, or "
                    "choose another name for other data."
                )
            log.append(draft)

        self._store.begin(work)
        return self.status(name)

    def extend(self, dataset: str, length: int) -> Status:
        """Let a dataset grow to `length` time points, if what was debited still fits.

        Under some beliefs the same releases tell more in a longer series, so it is priced like a
        debit, against the budget, what is reserved and the caps.

        Raises:
            BudgetExceeded: if it does not fit, with the longest length that does; then nothing
                was changed.
            InvalidInputError: if it would shrink.
            UnsupportedError: for beliefs about fixed rows.
        """
        size = points(length)

        def body(state: DatasetState) -> dict[str, Any]:
            longer = state.check_growth(size)
            bound = RecordedBound.of(longer, state.limit)
            return {"length": size, "bound": bound.to_body()}

        return self._change(dataset, "extend", body)

    def allot(
        self, dataset: str, analyst: str, cap: Number | None = None, reserved: Number | None = None
    ) -> Status:
        """Give an analyst a cap, a reserved share, or both; the last word counts.

        Args:
            dataset: whose budget.
            analyst: a name.
            cap: the most that may be debited for her, 0 for nothing more; None for no limit. For
                (ε, δ) a share of the squares that time points may spend, from 0 to 1.
            reserved: what others must leave for this analyst, in the same way; None for nothing.

        Raises:
            BudgetExceeded: if so much is no longer free; then nothing was changed.

        Theorem: docs/theory/ledger.md
        """
        name = identifier(analyst, "analyst")
        share = Share(
            None if cap is None else allowance(cap, "cap"),
            allowance(0 if reserved is None else reserved, "reserved"),
        )

        def body(state: DatasetState) -> dict[str, Any]:
            spent = state.account.spent
            check_share(name, share, state.shares, state.charged, state.claim, spent)
            return records.share_body(name, share)

        return self._change(dataset, "allot", body)

    def retire(self, dataset: str, reason: str = "no longer used") -> Status:
        """Close a dataset for good: nothing more is granted; history and answers stay."""
        body = {"reason": identifier(reason, "reason")}
        return self._change(dataset, "retire", lambda _: body)

    def register(self, dataset: str, mark: str) -> Status:
        """Note by a mark which data the dataset is, once their rows were checked."""
        body = {"mark": identifier(mark, "mark", _LONGEST_MARK)}
        return self._change(dataset, "register", lambda _: body)

    def debit(
        self,
        dataset: str,
        spending: Any,
        key: str | None = None,
        analyst: str | None = None,
        mark: str | None = None,
    ) -> Receipt:
        """Debit a release before it is made, durably; the receipt takes its answer afterwards.

        Args:
            dataset: whose budget.
            spending: a `Spending`, a release, or a release's description of itself.
            key: repeating a request under the same key costs nothing and returns the stored
                answer, for as long as the ledger lives.
            analyst: for whom.
            mark: recorded with the request, as its `asked`: a digest of what somebody typed, say,
                by which a service recognizes the request of a key without describing it again.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            NotPrivateError: if the key was debited but its answer never stored: it may have been
                seen, and drawing noise again would be a second release.
            InvalidInputError: for bad arguments, and for a key of another request.
            UnsupportedError: if no theorem combines it with what was released before.
            StorageError: if it could not be stored.

        Theorem: docs/theory/ledger.md
        """
        name = identifier(dataset, "dataset")
        used_key = None if key is None else identifier(key, "key")
        who = None if analyst is None else identifier(analyst, "analyst")
        used_mark = None if mark is None else identifier(mark, "mark")
        named = name, secrets.token_hex(16), spending, used_key, who, used_mark
        found = self._granted(name, who, lambda log: debited(log, self._states, *named))
        return replace(found, _store=self.complete)

    def _granted(self, dataset: str, analyst: str | None, debit: Callable[[Log], Result]) -> Result:
        """Make debits in a transaction, or note in it why they are refused."""
        noting = self._refusals.draft(dataset, analyst)

        def work(log: Log) -> Result | Refusal:
            try:
                return debit(log)
            except REFUSALS as refusal:  # nothing was written
                noting.write(log, refusal)
                return refusal

        found = self._store.write_together(work)
        if isinstance(found, REFUSALS):
            raise found
        return found

    def debit_all(
        self,
        dataset: str,
        spendings: Iterable[Any],
        analyst: str | None = None,
        keys: Iterable[str] | None = None,
    ) -> tuple[Receipt, ...]:
        """Debit several releases together, or none of them; as `debit`.

        With `keys`, one for each, asking again makes no second debit and returns the receipts of
        the first, also of those that have no answer yet: releases that are paid for before their
        data are there. Cost: one pricing for all, and one more each where there are analysts; the
        rest grows with what is added, not with the history.
        """
        name = identifier(dataset, "dataset")
        who = None if analyst is None else identifier(analyst, "analyst")
        asked = [(secrets.token_hex(16), one) for one in listed(spendings, "spendings")]
        marks = read_keys(keys, len(asked))

        def work(log: Log) -> list[Receipt]:
            return debited_together(log, self._states, name, asked, marks, who)

        found = self._granted(name, who, work)
        return tuple(replace(receipt, _store=self.complete) for receipt in found)

    def note(self, kind: str, text: str, dataset: str | None = None, who: str = "") -> None:
        """Write down that somebody did something, among the entries and chained like them.

        A refused debit is noted by the ledger itself, the first hundred of an hour for each dataset
        and analyst. Who merely reads leaves no trace; a service that reads for others notes it.

        Args:
            kind: "refusal", "read", or "act" for anything else that was done.
            text: what was done; never a value from the data.
            dataset: of which dataset; None for none.
            who: by whom.

        Raises:
            InvalidInputError: for another kind, and names that are none.
            StorageError: if it could not be stored.
        """
        draft = noted(secrets.token_hex(16), kind, text, dataset, who)
        self._store.write_together(lambda log: write_once(log, draft))

    def complete(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit, once; `receipt.complete(answer)` is the same.

        Raises:
            InvalidInputError: for what is no receipt or no text, and if there is an answer already.
            StorageError: if the debit is not in the ledger, or the answer could not be stored.
        """
        instance(receipt, Receipt, "receipt")
        instance(answer, str, "answer")
        identity = secrets.token_hex(16)
        self._store.write_together(lambda log: stored_answer(log, receipt, identity, answer))

    def preview(self, dataset: str, spending: Any, analyst: str | None = None) -> Quote:
        """Say what a debit would cost and whether it would be granted, without making it."""
        who = None if analyst is None else identifier(analyst, "analyst")
        return self._ask(dataset, lambda state: previewed(state, spending, who))

    def accountant(self, dataset: str, analyst: str | None = None) -> LedgerAccountant:
        """Return an accountant whose every `spend` and `add` is a durable debit here."""
        who = None if analyst is None else identifier(analyst, "analyst")
        self._ask(dataset, lambda state: None)
        return LedgerAccountant(self, dataset, who)

    def last_backup(self, path: str | Path) -> Checkpoint:
        """Retire every dataset, and write the whole log to a file; returns where it ends.

        So a ledger goes to another place: nothing is granted here any more, and `restore` opens
        there what was open here. If it fails in between, do it again. Restore the file once only: a
        second copy would be a second budget.

        Raises:
            InvalidInputError: if there was a last backup, and something was begun since.
            StorageError: if the ledger or the file cannot be written.
        """
        target = files.as_path(path)
        self._store.write_together(lambda log: backups.close_all(log, self._states))
        return self._store.read(lambda log: backups.write_backup(log, target, last=True))

    @classmethod
    def restore(
        cls,
        path: str | Path,
        url: str,
        checkpoint: Checkpoint | None = None,
        lost: Mapping[str, Iterable[Any]] | None = None,
    ) -> Ledger:
        """Begin a ledger from a backup, after the ledger itself was lost.

        Debits that followed the backup are not in it, and nothing in it tells whether there were
        any. So every dataset comes back retired: its history and stored answers can be read, but
        nothing more is granted. Only its owner can say what is lost. After a `last_backup` nothing
        followed, and every dataset that it retired is open again; restore such a file once only.

        Args:
            path: of the backup.
            url: where there is no ledger yet.
            checkpoint: the newest one known, which tells whether the backup lacks entries.
            lost: by dataset, the spendings or releases that may have followed the backup; they
                are debited, and the dataset stays open. An empty list says that there were none
                of it, and is refused if the checkpoint saw more entries than the backup has.

        Raises:
            BudgetExceeded: if what was lost does not fit; then nothing was restored.
            InvalidInputError: if the file is no backup, or there is a ledger at the URL, or a
                dataset that is named in `lost` is not in the backup.
            StorageError: if the backup is damaged, not of the checkpoint's ledger, or lacks
                entries while nothing is said to be lost of a dataset.
        """
        found = backups.read_lost(lost)
        backup = backups.read_backup(files.as_path(path), read_checkpoint(checkpoint), found)
        ledger = cls.open(url)
        ledger._store.begin(lambda log: backup.insert(log, ledger._states, found), backup.ledger_id)
        return ledger

    def _change(
        self, dataset: str, kind: str, body: Callable[[DatasetState], dict[str, Any]]
    ) -> Status:
        """Append an entry, if its `body` is not refused; once, though tried often."""
        name, identity = identifier(dataset, "dataset"), secrets.token_hex(16)

        def work(log: Log) -> None:
            if log.with_id(identity) is None:
                state = self._states.found(log, name)
                if kind != "retire":
                    state.refuse_closed()
                append_step(log, self._states, state, kind, body(state), identity)

        self._store.write_together(work)
        return self.status(name)
