"""`Ledger`: budgets of many datasets, durable across processes, machines and crashes.

Every debit is one transaction: take the lock, read what was committed, price, refuse or append,
commit to the disk. A release is debited before its data are used and shown only after its answer is
stored, so everything released was debited. Reading waits for no writer. Cost of a debit: one
durable commit, and pricing one more release, some milliseconds after 10⁵ others under a chain of
few states.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from quiltwork import files
from quiltwork.arguments import instance, listed
from quiltwork.beliefs import Belief, Label, as_beliefs
from quiltwork.budget import Spending
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger import backups, ledger_records
from quiltwork.budget.ledger.checkpoints import Checkpoint, as_checkpoint
from quiltwork.budget.ledger.claims import AnyAccountant, Claim, RecordedBound
from quiltwork.budget.ledger.debit_certificates import (
    check_debit_certificate,
    check_stored_certificates,
)
from quiltwork.budget.ledger.debits import (
    answer_for_key,
    append_answer,
    append_debit,
    append_debits,
    parse_keys,
    quote_debit,
)
from quiltwork.budget.ledger.entries import Draft, Entry, canonical, now
from quiltwork.budget.ledger.ledger_accountant import LedgerAccountant
from quiltwork.budget.ledger.ledger_records import (
    Debit,
    Note,
    Quote,
    Receipt,
    Share,
    Status,
    read_debit,
    read_note,
    unknown_dataset,
)
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.notes import (
    REFUSALS,
    Refusal,
    RefusalCounter,
    append_once,
    note_draft,
)
from quiltwork.budget.ledger.requests import (
    parse_allowance,
    parse_amount,
    parse_length,
    parse_name,
    parse_request,
)
from quiltwork.budget.ledger.shares import check_share
from quiltwork.budget.ledger.snapshots import StateCache, append_change
from quiltwork.budget.ledger.state import DatasetState
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.urls import database_at
from quiltwork.budget.ledger.verification import verified, verified_since
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, privacy_level, shortened

Result = TypeVar("Result")

_LONGEST_MARK = 5_000
"""Characters: a mark of registered files also contains the options for reading them."""
_LARGEST_NUMBER = 2**63 - 1
"""The largest entry number that databases can count to."""


class Ledger:
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
        if not isinstance(store, Store):  # a URL may hold a password, so it is not shown
            raise InvalidInputError("Open a ledger by its URL: Ledger.open('sqlite:///budget.db').")
        self._store = store
        self._states = StateCache()
        self._refusals = RefusalCounter()

    @classmethod
    def open(cls, url: str, *, timeout: float | None = None, read_only: bool = False) -> Ledger:
        """Name the database: `sqlite:///budget.db`, or `postgresql://user@host/database`.

        Nothing is created or connected to before it is needed; the first `create` makes the file
        or the tables.

        Args:
            url: where the ledger is.
            timeout: how many seconds a request waits for other writers; 60 by default.
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

    @property
    def url(self) -> str:
        """The URL without a password; a file by its whole path."""
        return self._store.database.url

    @property
    def store(self) -> Store:
        """The transactions on its database, for tables that a service keeps beside the ledger's."""
        return self._store

    def close(self) -> None:
        """Close the database connections; the next use opens new ones."""
        self._store.close()

    def __enter__(self) -> Self:
        """Use the ledger in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

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
        """Create a dataset: what an adversary may believe, how long it is, what may be spent.

        Its budget is fixed for ever and its name is never used again. With an `episode` the total
        bounds what is revealed about any so many time points in a row. Give the final length if it
        is known: every debit is priced for it then, while `extend` is refused where the releases
        made so far would exceed the budget in a longer series.

        With a `delta` it accounts for (ε, δ): caps on the squares of Gaussian levels per time point
        are computed now, by some f-sweeps, and recorded; `pure` is what pure levels may add up to
        beside them. Shares of analysts are then shares of the caps, from 0 to 1.

        With `pairs` only these values of a time point are kept apart, as in `calibrate`, in every
        release: `[("home", "away")]` hides whether somebody was at home, not in which room.

        Raises:
            InvalidInputError: for bad arguments, or if the dataset exists.
            UnsupportedError: with `delta` for beliefs without an order in time, and for `pairs`
                with `delta` or an episode.
        """
        name, members = parse_name(dataset, "dataset"), as_beliefs(beliefs)
        points = None if length is None else parse_length(length)
        window = integer(episode, "episode", 1)
        limit = privacy_level(parse_amount(budget, "budget"), "budget")
        protected = Secrets.read(members, points, window, pairs)
        claim = Claim.compute(protected, limit, delta, pure).to_body()
        body = ledger_records.create_body(members, protected.length, claim, window, protected.pairs)
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
        """Let a dataset grow to `length` time points, if its debits still fit.

        Under some beliefs the same releases reveal more in a longer series, so growing is priced
        like a debit, against the budget, reserved parts and caps.

        Raises:
            BudgetExceeded: if they do not fit, with the longest length that does; then nothing
                was changed.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows.
        """
        points = parse_length(length)

        def body(state: DatasetState) -> dict[str, Any]:
            bound = RecordedBound.of(state.account_if_extended(points), state.limit)
            return {"length": points, "bound": bound.to_body()}

        return self._change(dataset, "extend", body)

    def allot(
        self,
        dataset: str,
        analyst: str,
        cap: Number | Literal["keep"] | None = "keep",
        reserved: Number | Literal["keep"] | None = "keep",
    ) -> Status:
        """Give an analyst a cap, a reserved part, or both; what is left out stays as it was.

        Args:
            dataset: whose budget.
            analyst: a name.
            cap: the most that may be debited for her, at most the budget, 0 for nothing more; None
                for no limit. For (ε, δ) a share of the squares that time points may spend, from 0
                to 1.
            reserved: what others must leave for this analyst, in the same unit; None for nothing.

        Raises:
            InvalidInputError: if the cap is above the budget, or below the reserved part.
            BudgetExceeded: if so much is no longer free; then nothing was changed.

        Theorem: docs/theory/ledger.md
        """
        name = parse_name(analyst, "analyst")
        changes: dict[str, Any] = {}
        if cap != "keep":
            changes["cap"] = None if cap is None else parse_allowance(cap, "cap")
        if reserved != "keep":
            amount = 0 if reserved is None else reserved
            changes["reserved"] = parse_allowance(amount, "reserved")

        def body(state: DatasetState) -> dict[str, Any]:
            share = replace(state.shares.get(name, Share()), **changes)
            spent = state.account.spent
            check_share(name, share, state.shares, state.charged, state.claim, spent)
            return ledger_records.share_body(name, share)

        return self._change(dataset, "allot", body)

    def retire(self, dataset: str, reason: str = "no longer used") -> Status:
        """Close a dataset for good: nothing more is granted; history and answers stay."""
        body = {"reason": parse_name(reason, "reason")}
        return self._change(dataset, "retire", lambda _: body)

    def register(self, dataset: str, mark: str) -> Status:
        """Record a mark that identifies the dataset's data, once their rows were checked."""
        body = {"mark": parse_name(mark, "mark", _LONGEST_MARK)}
        return self._change(dataset, "register", lambda _: body)

    def registered(self, dataset: str) -> str | None:
        """Return the mark that was recorded last; None without one."""
        return self._ask(dataset, lambda state: state.mark)

    def debit(
        self,
        dataset: str,
        spending: Any,
        key: str | None = None,
        analyst: str | None = None,
        mark: str | None = None,
        certificate: str | None = None,
    ) -> Receipt:
        """Debit a release before it is made, durably; the receipt takes its answer afterwards.

        Args:
            dataset: whose budget.
            spending: a `Spending`, a release, or a release's description of itself.
            key: an idempotency key: repeating a request under the same key costs nothing and
                returns the stored answer, for as long as the ledger lives.
            analyst: for whom.
            mark: recorded with the request, as its `asked`: a digest of what somebody typed, say,
                by which a service recognizes the request of a key without describing it again.
            certificate: the proof that the noise suffices, by `qw.influence.certificate`; checked
                here and stored with the debit. A retry keeps the certificate of the first time.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            NotPrivateError: if the key was debited but its answer never stored: it may have been
                seen, and drawing noise again would be a second release. Also if the certificate
                does not hold; then nothing was recorded.
            InvalidInputError: for bad arguments, and for a key of another request.
            UnsupportedError: if no theorem combines it with the releases before.
            StorageError: if it could not be stored.

        Theorem: docs/theory/ledger.md
        """
        name = parse_name(dataset, "dataset")
        request_key, who = _optional_name(key, "key"), _optional_name(analyst, "analyst")
        request_mark = _optional_name(mark, "mark")
        if certificate is not None:
            instance(certificate, str, "certificate")
            self._check_certificate(name, spending, certificate)
        identity = secrets.token_hex(16)
        arguments = name, identity, spending, request_key, who, request_mark, certificate
        receipt = self._granted(name, who, lambda log: append_debit(log, self._states, *arguments))
        return replace(receipt, _store=self.complete)

    def _check_certificate(self, dataset: str, release: Any, certificate: str) -> None:
        """Check a certificate outside of the transaction: the checker may take seconds."""
        beliefs, spending = self._ask(
            dataset,
            lambda state: (
                state.beliefs,
                parse_request(release, dataset, state.beliefs, state.length).spending,
            ),
        )
        check_debit_certificate(certificate, spending, beliefs)

    def certificate(self, dataset: str, number: int) -> str | None:
        """Return the certificate stored with a debit; None without one.

        Raises:
            InvalidInputError: if the entry of this number is no debit of the dataset.
        """
        name, seq = parse_name(dataset, "dataset"), integer(number, "number", 1)
        entry = self._store.read(lambda log: log.at(min(seq, _LARGEST_NUMBER)))
        if entry is None or (entry.dataset, entry.kind) != (name, "debit"):
            raise InvalidInputError(
                f"Entry {number} is no debit of dataset {name!r}; its history lists them."
            )
        text = entry.content.get("certificate")
        return None if text is None else str(text)

    def debit_all(
        self,
        dataset: str,
        spendings: Iterable[Any],
        analyst: str | None = None,
        keys: Iterable[str] | None = None,
    ) -> tuple[Receipt, ...]:
        """Debit several releases together, or none of them; as `debit`.

        With `keys`, one for each, a retry makes no second debit and returns the receipts of the
        first call, also of releases without an answer yet: they may be paid for before their data
        exist. Cost: one pricing for all, and one more each where there are analysts; the rest
        grows with what is added, not with the history.
        """
        name = parse_name(dataset, "dataset")
        who = _optional_name(analyst, "analyst")
        releases = [(secrets.token_hex(16), release) for release in listed(spendings, "spendings")]
        request_keys = parse_keys(keys, len(releases))

        def work(log: Log) -> list[Receipt]:
            return append_debits(log, self._states, name, releases, request_keys, who)

        receipts = self._granted(name, who, work)
        return tuple(replace(receipt, _store=self.complete) for receipt in receipts)

    def _granted(self, dataset: str, analyst: str | None, debit: Callable[[Log], Result]) -> Result:
        """Make debits in a transaction; a refusal is noted in the same transaction."""
        note = self._refusals.note(dataset, analyst)

        def work(log: Log) -> Result | Refusal:
            try:
                return debit(log)
            except REFUSALS as refusal:  # nothing was written: the note is the whole transaction
                note.write(log, refusal)
                return refusal

        outcome = self._store.write_batched(work)
        if isinstance(outcome, REFUSALS):
            raise outcome
        return outcome

    def complete(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a debit, once; `receipt.complete(answer)` is the same.

        Raises:
            InvalidInputError: for other types, and if there is an answer already.
            StorageError: if the debit is not in the ledger, or the answer could not be stored.
        """
        instance(receipt, Receipt, "receipt")
        instance(answer, str, "answer")
        identity = secrets.token_hex(16)
        self._store.write_batched(lambda log: append_answer(log, receipt, identity, answer))

    def check(self, dataset: str, spending: Any) -> None:
        """Refuse a release that is not about the dataset, as `debit` would; prices nothing.

        Raises:
            InvalidInputError: for other beliefs than the dataset's, data of another length, and
                bad arguments.
            UnsupportedError: for a release without noise.
        """

        def check(state: DatasetState) -> None:
            parse_request(spending, dataset, state.beliefs, state.length)

        self._ask(dataset, check)

    def preview(self, dataset: str, spending: Any, analyst: str | None = None) -> Quote:
        """Return what a debit would cost and whether it would be granted, without making it."""
        who = _optional_name(analyst, "analyst")
        return self._ask(dataset, lambda state: quote_debit(state, spending, who))

    def accountant(self, dataset: str, analyst: str | None = None) -> LedgerAccountant:
        """Return an accountant whose every `spend` and `add` is a durable debit here."""
        who = _optional_name(analyst, "analyst")
        self._ask(dataset, lambda state: None)
        return LedgerAccountant(self, dataset, who)

    def note(self, kind: str, text: str, dataset: str | None = None, who: str = "") -> None:
        """Append a note that somebody did something, chained like every entry.

        A refused debit is noted by the ledger itself, the first hundred of an hour for each dataset
        and analyst. Reading a ledger leaves no trace; a service that reads for others notes it.

        Args:
            kind: "refusal", "read", or "act" for anything else that was done.
            text: what was done; never a value from the data.
            dataset: of which dataset; None for none.
            who: by whom.

        Raises:
            InvalidInputError: for another kind, and invalid names.
            StorageError: if it could not be stored.
        """
        draft = note_draft(secrets.token_hex(16), kind, text, dataset, who)
        self._store.write_batched(lambda log: append_once(log, draft))

    def notes(self, after: int = 0, limit: int | None = None) -> tuple[Note, ...]:
        """Return a page of notes, oldest first: those of the entries `after` a number."""
        start, most = _after(after), _limit(limit)
        return self._store.read(
            lambda log: tuple(read_note(entry) for entry in islice(log.notes(start), most))
        )

    def status(self, dataset: str) -> Status:
        """Return budget, total, shares and state of a dataset."""
        return self._ask(dataset, lambda state: state.status)

    def datasets(self) -> tuple[Status, ...]:
        """Return the status of every dataset, in the order of their creation."""
        return self._store.read(
            lambda log: tuple(self._states.latest(log, name).status for name in log.datasets())
        )

    def history(self, dataset: str, after: int = 0, limit: int | None = None) -> tuple[Debit, ...]:
        """Return the granted debits of a dataset, oldest first.

        For paging: at most `limit` debits whose number is above `after`, that of the last debit of
        the page before. Cost: the debits returned.
        """
        name, start, most = parse_name(dataset, "dataset"), _after(after), _limit(limit)

        def work(log: Log) -> tuple[Debit, ...]:
            page = list(islice(_debit_entries(log, name, start), most))
            if not page and next(log.steps(name), None) is None:
                raise unknown_dataset(name, log.datasets())
            answered = log.answered(name, page[0].seq, page[-1].seq) if page else set()
            return tuple(read_debit(entry, released=entry.seq in answered) for entry in page)

        return self._store.read(work)

    def debits_with_answers(
        self, dataset: str, after: int = 0, limit: int | None = None
    ) -> tuple[tuple[Debit, str | None], ...]:
        """Return a page of debits as `history` does, each with its answer, None without one."""
        name, start, most = parse_name(dataset, "dataset"), _after(after), _limit(limit)

        def work(log: Log) -> tuple[tuple[Debit, str | None], ...]:
            page = islice(_debit_entries(log, name, start), most)
            return tuple(_with_answer(log, entry) for entry in page)

        return self._store.read(work)

    def debit_with_answer(
        self, dataset: str, key: str, analyst: str | None = None
    ) -> tuple[Debit, str | None] | None:
        """Return the debit made under an analyst's key and its answer; None without a debit."""
        name, request_key = parse_name(dataset, "dataset"), parse_name(key, "key")
        who = _optional_name(analyst, "analyst")

        def work(log: Log) -> tuple[Debit, str | None] | None:
            entry = log.with_key(name, request_key, who)
            return None if entry is None else _with_answer(log, entry)

        return self._store.read(work)

    def answer(self, dataset: str, key: str, analyst: str | None = None) -> str | None:
        """Return the answer stored under an analyst's key, byte for byte; None without one."""
        name, request_key = parse_name(dataset, "dataset"), parse_name(key, "key")
        who = _optional_name(analyst, "analyst")
        return self._store.read(lambda log: answer_for_key(log, name, request_key, who))

    def log(self, after: int = 0, limit: int | None = None) -> tuple[Entry, ...]:
        """Return every entry as it is stored, or a page of them as `history` does."""
        start, most = _after(after), _limit(limit)
        return self._store.read(lambda log: tuple(islice(log.all_entries(start), most)))

    def checkpoint(self) -> Checkpoint:
        """Return where the log ends now; keep it elsewhere and give it to `verify` later."""
        return self._store.read(
            lambda log: Checkpoint(log.ledger_id, log.head.count, log.head.hash)
        )

    def verify(
        self, checkpoint: Checkpoint | None = None, *, certificates: bool = False
    ) -> Checkpoint:
        """Verify everything: the chain of hashes, the database's own pages, then every debit again.

        The entries are folded from the beginning, and their cost is compared with the bound that
        was recorded with them. With a checkpoint, also that the log still begins with what the
        checkpoint saw. Returns a new checkpoint. Cost: one SHA-256 per entry, and some dozen
        pricings of every dataset. For entries since a checkpoint see `verify_since`.

        Args:
            checkpoint: one kept elsewhere.
            certificates: also check every certificate stored with a debit, in exact fractions, and
                that it proves the levels of its debit; each takes up to some seconds.

        Raises:
            StorageError: at the first thing that is not as it was written, for a dataset whose
                debits cost more than its budget, by a bound that was corrected since, and for a
                certificate that does not prove its debit.

        Theorem: docs/theory/ledger.md
        """
        instance(certificates, bool, "certificates")
        end = verified(self._store, as_checkpoint(checkpoint))
        if certificates:
            self._store.read(lambda log: check_stored_certificates(log, log.datasets()))
        return end

    def verify_since(self, checkpoint: Checkpoint) -> Checkpoint:
        """Verify the entries since a checkpoint that was verified; return a new checkpoint.

        Checks the chain of hashes from there on, that each new entry may follow those before, and
        that every dataset touched is within its budget and its caps. Earlier entries are bound by
        the checkpoint's hash, and read only as far as there is no snapshot. Cost: the new entries,
        and those of the datasets touched since their snapshots.

        Raises:
            StorageError: at the first thing that is not as it was written.
        """
        since = as_checkpoint(checkpoint)
        if since is None:
            raise InvalidInputError("verify_since needs a checkpoint; without one call verify().")
        return self._store.read(lambda log: verified_since(log, self._states, since))

    def backup(self, path: str | Path) -> Checkpoint:
        """Write the whole log to a file, for `Ledger.restore`; return where it ends."""
        target = files.as_path(path)
        return self._store.read(lambda log: backups.write_backup(log, target))

    def last_backup(self, path: str | Path) -> Checkpoint:
        """Retire every dataset, and write the whole log to a file; return where it ends.

        This moves a ledger: nothing more is granted here, and `restore` opens there what was open
        here. If it fails in between, do it again. Restore the file once only: a second copy would
        be a second budget.

        Raises:
            InvalidInputError: if there was a last backup, and a dataset was created since.
            StorageError: if the ledger or the file cannot be written.
        """
        target = files.as_path(path)
        self._store.write_batched(lambda log: backups.close_all(log, self._states))
        return self._store.read(lambda log: backups.write_backup(log, target, last=True))

    @classmethod
    def restore(
        cls,
        path: str | Path,
        url: str,
        checkpoint: Checkpoint | None = None,
        lost: Mapping[str, Iterable[Any]] | None = None,
    ) -> Ledger:
        """Restore a ledger from a backup, after the ledger itself was lost.

        A backup cannot show whether debits followed it. So every dataset comes back retired: its
        history and stored answers can be read, but nothing more is granted, unless its owner says
        what may be lost. After a `last_backup` nothing followed, and every dataset that it retired
        is open again; restore such a file once only.

        Args:
            path: of the backup.
            url: where there is no ledger yet.
            checkpoint: the newest one known, which shows whether the backup lacks entries.
            lost: by dataset, the spendings or releases that may have followed the backup; they
                are debited, and the dataset stays open. An empty list states that there were none,
                and is refused if the checkpoint saw more entries than the backup has.

        Raises:
            BudgetExceeded: if the lost releases do not fit; then nothing was restored.
            InvalidInputError: if the file is no backup, or there is a ledger at the URL, or a
                dataset that is named in `lost` is not in the backup.
            StorageError: if the backup is damaged, not of the checkpoint's ledger, or lacks
                entries while a dataset is stated to have lost none.
        """
        lost_releases = backups.parse_lost(lost)
        backup = backups.read_backup(files.as_path(path), as_checkpoint(checkpoint), lost_releases)
        ledger = cls.open(url)
        ledger._store.begin(
            lambda log: backup.insert(log, ledger._states, lost_releases), backup.ledger_id
        )
        return ledger

    def ask(self, dataset: str, question: Callable[[AnyAccountant], Result]) -> Result:
        """Call `question` with the dataset's accountant of all debits committed so far."""
        if not callable(question):
            raise InvalidInputError(f"A question is a function, not {shortened(question)}.")

        def with_accountant(state: DatasetState) -> Result:
            def read_history(log: Log) -> tuple[Spending, ...]:
                return tuple(
                    Spending.from_body(entry.content["spending"])
                    for entry in _debit_entries(log, state.name)
                    if entry.seq <= state.head.count
                )

            return question(state.accountant(lambda: self._store.read(read_history)))

        return self._ask(dataset, with_accountant)

    def _ask(self, dataset: str, question: Callable[[DatasetState], Result]) -> Result:
        name = parse_name(dataset, "dataset")
        return self._store.read(lambda log: question(self._states.latest(log, name)))

    def _change(
        self, dataset: str, kind: str, body: Callable[[DatasetState], dict[str, Any]]
    ) -> Status:
        """Append an entry unless `body` refuses; once, although the transaction may be retried."""
        name, identity = parse_name(dataset, "dataset"), secrets.token_hex(16)

        def work(log: Log) -> None:
            if log.with_id(identity) is None:
                state = self._states.latest(log, name)
                if kind != "retire":
                    state.refuse_closed()
                append_change(log, self._states, state, kind, body(state), identity)

        self._store.write_batched(work)
        return self.status(name)


def _debit_entries(log: Log, dataset: str, after: int = 0) -> Iterable[Entry]:
    return (entry for entry in log.steps(dataset, after) if entry.kind == "debit")


def _with_answer(log: Log, debit: Entry) -> tuple[Debit, str | None]:
    answer = log.answer_to(debit.seq)
    stored = None if answer is None else str(answer.content["answer"])
    return read_debit(debit, released=stored is not None), stored


def _optional_name(value: str | None, name: str) -> str | None:
    return None if value is None else parse_name(value, name)


def _after(number: int) -> int:
    return min(integer(number, "after", 0), _LARGEST_NUMBER)


def _limit(limit: int | None) -> int | None:
    return None if limit is None else min(integer(limit, "limit", 1), sys.maxsize)
