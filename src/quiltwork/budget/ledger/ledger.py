"""`Ledger`: the truth about many datasets' budgets, across processes, machines and crashes.

Every request is one transaction: look at what has been committed, price, refuse or append, commit
to the disk. A release is debited before its data are used and shown only after its answer is
stored, so what was released is always among what was debited. Cost of a debit: one durable commit
(about a millisecond) plus pricing, which does not grow with the history (`totals.py`), in a new
process neither.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.arguments import instance, listed
from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.budget import Accountant
from quiltwork.budget.ledger import backups, records
from quiltwork.budget.ledger.amounts import allowance, amount, identifier, points
from quiltwork.budget.ledger.catching_up import Overtaken
from quiltwork.budget.ledger.checkpoints import Checkpoint, read_checkpoint
from quiltwork.budget.ledger.databases import database_at
from quiltwork.budget.ledger.datasets import Analyst, DatasetState, Grant
from quiltwork.budget.ledger.debits import (
    debited,
    debited_at_once,
    debited_together,
    made_before,
    previewed,
    priced,
    read_keys,
    ready_draft,
    stored_answer,
)
from quiltwork.budget.ledger.entries import Draft, canonical
from quiltwork.budget.ledger.ledger_accountant import LedgerAccountant
from quiltwork.budget.ledger.log_tables import Tables, now
from quiltwork.budget.ledger.moving import begin_from, move, own_reason, refuse_moving
from quiltwork.budget.ledger.notes import REFUSALS, Refusal, Refusals, noted, write_once
from quiltwork.budget.ledger.readable import ReadableLedger
from quiltwork.budget.ledger.records import Quote, Receipt, Share, Status
from quiltwork.budget.ledger.requests import prepared
from quiltwork.budget.ledger.shares import check_named, check_share
from quiltwork.budget.ledger.store import Store
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number

_ATTEMPTS = 3
"""How often a debit is priced before the lock is taken, while others are quicker."""


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
    ) -> Status:
        """Begin a dataset: what an adversary may believe, how long it is, what may be spent.

        Its budget is fixed for ever and its name is never used again. With an `episode` the total
        bounds what is told about any so many time points in a row. Give the final length if it is
        known: every debit is priced for it then, while `extend` is refused where what was released
        would exceed the budget in a longer series.

        Raises:
            InvalidInputError: for bad arguments, or if the dataset exists.
        """
        name, limit = identifier(dataset, "dataset"), amount(budget, "budget")
        members = as_beliefs(beliefs)
        size = None if length is None else points(length)
        account = Accountant(members, size, limit, episode)
        body = records.create_body(members, account.length, limit, account.episode)

        draft = Draft(secrets.token_hex(16), name, "create", canonical({**body, "at": now()}))

        def work(tables: Tables) -> None:
            if tables.with_id(draft.id) is not None:
                return
            refuse_moving(tables)
            if tables.last_step(name) is not None:
                raise InvalidInputError(
                    f"Dataset {name!r} exists already, and a budget is set only once; use it, or "
                    "choose another name for other data."
                )
            tables.append(draft)
            self._totals.begun(tables, name)

        self._totals.begin(work)
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
        named, size = identifier(dataset, "dataset"), points(length)

        def keep(tables: Tables, state: DatasetState, draft: Draft) -> None:
            alone = partial(self._totals.alone, tables, state)
            longer = state.check_growth(size, alone)
            self._totals.extended(tables, state, tables.append(draft), longer)

        self._append(named, "extend", {"length": size}, keep)
        return self.status(named)

    def allot(
        self, dataset: str, analyst: str, cap: Number | None = None, reserved: Number | None = None
    ) -> Status:
        """Give an analyst a cap, a reserved share, or both; the last word counts.

        Args:
            dataset: whose budget.
            analyst: a name.
            cap: the most that may be debited for her, 0 for nothing more; None for no limit.
            reserved: what others must leave for this analyst; None for nothing.

        Raises:
            BudgetExceeded: if so much is no longer free; then nothing was changed.

        Theorem: docs/theory/ledger.md
        """
        named, name = identifier(dataset, "dataset"), identifier(analyst, "analyst")
        share = Share(
            None if cap is None else allowance(cap, "cap"),
            allowance(0 if reserved is None else reserved, "reserved"),
        )

        def keep(tables: Tables, state: DatasetState, draft: Draft) -> None:
            total = state.account.total
            check_share(name, share, state.shares, state.charged, state.budget, total)
            known = state.analysts.get(name, Analyst())
            analysts = {**state.analysts, name: replace(known, share=share)}
            self._totals.changed(tables, state, tables.append(draft), analysts=analysts)

        self._append(named, "allot", records.share_body(name, share), keep)
        return self.status(named)

    def retire(self, dataset: str, reason: str = "no longer used") -> Status:
        """Close a dataset for good: nothing more is granted; history and answers stay."""
        named, text = identifier(dataset, "dataset"), own_reason(reason)
        self._append(named, "retire", {"reason": text}, self._totals.changing(retired=text))
        return self.status(named)

    def register(self, dataset: str, mark: str) -> Status:
        """Note by a mark which data the dataset is, once their rows were checked."""
        named, text = identifier(dataset, "dataset"), identifier(mark, "mark")
        self._append(named, "register", {"mark": text}, self._totals.changing())
        return self.status(named)

    def debit(
        self, dataset: str, spending: Any, key: str | None = None, analyst: str | None = None
    ) -> Receipt:
        """Debit a release before it is made, durably; the receipt takes its answer afterwards.

        Args:
            dataset: whose budget.
            spending: a `Spending`, a release, or a release's description of itself.
            key: repeating a request under the same key costs nothing and returns the stored
                answer, for as long as the ledger lives.
            analyst: for whom.

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
        identity, asked = secrets.token_hex(16), prepared(spending)
        ready = ready_draft(name, identity, asked, used_key)
        noting = self._refusals.draft(name, who)

        def price(tables: Tables) -> Grant | Receipt:
            state = self._spent_by(tables, name, who)
            return priced(tables, self._totals, state, asked, used_key, who)

        def work(tables: Tables, grant: Grant | None = None) -> Receipt | Refusal:
            try:
                state = self._spent_by(tables, name, who)
                return debited(
                    tables, self._totals, state, identity, asked, used_key, who, grant=grant
                )
            except REFUSALS as refusal:  # nothing was written: it is noted instead, while it can be
                noting.write(tables, refusal)
                return refusal

        def at_once(tables: Tables) -> Receipt | Refusal | None:
            glance = self._totals.glanced(tables, name)
            if glance is None:
                return None
            try:
                return debited_at_once(tables, self._totals, glance, ready, asked, used_key)
            except REFUSALS as refusal:
                noting.write(tables, refusal)
                return refusal

        def granted() -> Receipt | Refusal:
            if who is not None or name in self._totals.dear:
                return priced_first()
            found = self._totals.write(at_once, name)
            if isinstance(found, Receipt):
                self._totals.settle(name)
            elif found is None:
                found = priced_first()
                if isinstance(found, Receipt):
                    self._totals.dear.add(name)
            return found

        def priced_first() -> Receipt | Refusal:
            for _ in range(_ATTEMPTS):
                if not self._totals.price_first(name):
                    break
                try:
                    offer = self._store.look(price)
                except REFUSALS as refusal:
                    noting.store(self._store, refusal)
                    return refusal
                if isinstance(offer, Receipt):
                    break  # which is told once it is on the disk
                with suppress(Overtaken):
                    return self._totals.write(partial(work, grant=offer), name)
            return self._totals.write(work, name)

        found = granted()
        if isinstance(found, Receipt):
            return replace(found, _ledger=self)
        raise found

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

        def work(tables: Tables) -> list[Receipt]:
            before = self._spent_by(tables, name, who)
            found = made_before(tables, before, asked, marks, who)
            if found is not None:
                return found
            return debited_together(tables, self._totals, before, asked, marks, who)

        try:
            granted = self._totals.write(work)
        except REFUSALS as refusal:
            self._refusals.draft(name, who).store(self._store, refusal)
            raise
        return tuple(replace(receipt, _ledger=self) for receipt in granted)

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
        self._store.write(lambda tables: write_once(tables, draft))

    def complete(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit, once; `receipt.complete(answer)` is the same.

        Raises:
            InvalidInputError: for what is no receipt or no text, and if there is an answer already.
            StorageError: if the debit is not in the ledger, or the answer could not be stored.
        """
        instance(receipt, Receipt, "receipt")
        instance(answer, str, "answer")
        identity = secrets.token_hex(16)
        self._store.write(lambda tables: stored_answer(tables, receipt, identity, answer))

    def preview(self, dataset: str, spending: Any, analyst: str | None = None) -> Quote:
        """Say what a debit would cost and whether it would be granted, without making it."""
        who = None if analyst is None else identifier(analyst, "analyst")
        name = identifier(dataset, "dataset")

        def work(tables: Tables) -> Quote:
            state = self._spent_by(tables, name, who)
            return previewed(tables, self._totals, state, spending, who)

        return self._store.read(work)

    def accountant(self, dataset: str, analyst: str | None = None) -> LedgerAccountant:
        """Return an accountant whose every `spend` and `add` is a durable debit here."""
        who = None if analyst is None else identifier(analyst, "analyst")
        self._ask(dataset, lambda state: None)
        return LedgerAccountant(self, dataset, who)

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
        nothing more is granted. Only its owner can say what is lost. To take a ledger elsewhere
        while it is still there use `move`, which loses nothing.

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
        backup = backups.read_backup(files.named(path), read_checkpoint(checkpoint), found)
        ledger = cls.open(url)
        begin_from(ledger._totals, backup, found)
        return ledger

    def move(self, url: str) -> Ledger:
        """Take the ledger to another database: all goes on there, and nothing more here.

        Every dataset is retired here before anything is written there, so there is one budget at
        any moment. If it fails in between, move to the same URL again. For errors see `moving`.
        """
        target = Ledger.open(url)
        move(self._totals, target._totals)
        return target

    def _spent_by(self, tables: Tables, name: str, analyst: str | None) -> DatasetState:
        """The state of a dataset of which this analyst may spend."""
        state = self._totals.found(tables, name)
        check_named(name, state.shares, analyst)
        return state

    def _append(
        self,
        dataset: str,
        kind: str,
        body: dict[str, Any],
        keep: Callable[[Tables, DatasetState, Draft], None],
    ) -> None:
        """Append an entry and what it changes, if that is not refused; once, though tried often."""
        draft = Draft(secrets.token_hex(16), dataset, kind, canonical({**body, "at": now()}))

        def work(tables: Tables) -> None:
            if tables.with_id(draft.id) is None:
                state = self._totals.found(tables, dataset)
                if state.retired is not None and kind != "retire":
                    raise InvalidInputError(
                        f"Dataset {dataset!r} is retired ({state.retired}), and nothing more is "
                        "granted from it: there is nothing to extend or to share out."
                    )
                keep(tables, state, draft)

        self._totals.write(work)
