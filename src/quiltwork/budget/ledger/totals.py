"""The totals of every dataset, kept as rows beside the log, so that nobody reads it twice.

Each dataset has a row that names the last entry it includes, by number and hash, and binds
everything else by digests: a row per analyst, and per account the times at which its levels change
(`account_rows.py`). They are written in the transaction of the entry. Rows that are missing,
damaged, or not those of the dataset's last entry grant nothing: the entries are added up again,
outside the write lock, and the rows are written anew. `verify` adds them up in any case.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from quiltwork.beliefs import Belief
from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import DIGESTS, Kept, digest
from quiltwork.budget.ledger.ahead import (
    MOST,
    Ahead,
    Recent,
    can_wait,
)
from quiltwork.budget.ledger.catching_up import (
    EVERYBODY,
    Overtaken,
    Unusable,
    added_up,
    as_begun,
    caught_up,
    loaded,
    settled_account,
)
from quiltwork.budget.ledger.datasets import Analyst, DatasetState, Grant
from quiltwork.budget.ledger.entries import Draft, Entry, Head
from quiltwork.budget.ledger.glances import Glance, glanced, settling
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.records import unknown
from quiltwork.budget.ledger.refusing import Exceeding, exceeding_near, refuse_alone
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.total_rows import analyst_text, check_log_is_whole, sealed
from quiltwork.errors import BudgetExceeded, StorageError
from quiltwork.exact import float_up

Result = TypeVar("Result")

_ATTEMPTS = 3
_SHORT, _LONG, _TOO_LONG = 0.0004, 0.002, 0.05
"""Seconds of pricing for which others should not have to wait: if they keep writing, if not, and
even if it has to be done again."""
_LATELY = 1.0


@dataclass(frozen=True)
class _Known:
    """A state, the row it was found beside, and whether its rows may be added to."""

    stored: tuple[str, str] | None
    state: DatasetState
    usable: bool = True


class Totals:
    """The totals in a store; what was read last is remembered for as long as the rows say so.

    Threads share what is remembered: it is always compared with the rows before it is used.
    """

    def __init__(self, store: Store) -> None:
        """Know nothing yet."""
        self.store = store
        self._known: dict[str, _Known] = {}
        self._settled: dict[tuple[str, str], tuple[Kept, Account]] = {}
        self._glances: dict[str, Glance] = {}
        self._begun: dict[str, DatasetState] = {}
        self.dear: set[str] = set()  # of which the row alone did not do for a debit
        self._exceeding: dict[str, Exceeding] = {}
        self._seconds: dict[str, float] = {}
        self._others: dict[str, float] = {}

    def found(self, tables: Tables, name: str) -> DatasetState:
        """Return a dataset's state with everything that has been committed. Cost: its rows, once.

        Raises:
            InvalidInputError: if there is no such dataset; it lists those there are.
            Unusable: if the rows have to be set right before anything is written.
            StorageError: if they have to be, and an entry is damaged.
        """
        ends = tables.last_step_and_total(name)
        if ends is None:
            raise unknown(name, tables.datasets())
        last, stored = ends
        known = self._known.get(name)
        if known is None or known.stored != stored or known.state.last != last:
            if known is not None:
                self._others[name] = time.monotonic()
            state = self._read(tables, name, last, stored, None if known is None else known.state)
            if state is not None:
                known = _Known(stored, state)
            elif tables.writes:
                raise Unusable(name)
            else:
                known = _Known(stored, self._added_up(tables, name), usable=False)
            self._known[name] = known
        if tables.writes and not known.usable:
            raise Unusable(name)
        return known.state

    def glanced(self, tables: Tables, name: str) -> Glance | None:
        """Look at a dataset's own row only; None if it cannot be used. Cost: that row."""
        found = glanced(tables, name, self._glances.get(name))
        if found is not None:
            self._glances[name] = found
        return found

    def beliefs(self, tables: Tables, glance: Glance) -> tuple[Belief, ...]:
        """What an adversary may believe about a dataset. Cost: reading its first entry, once."""
        return self._as_begun(tables, glance).beliefs

    def _as_begun(self, tables: Tables, glance: Glance) -> DatasetState:
        name, known = glance.name, self._known.get(glance.name)
        state = self._begun.get(name) if known is None else known.state
        self._begun[name] = as_begun(tables, name, glance.body, state) or self.found(tables, name)
        return self._begun[name]

    def refuse_early(self, tables: Tables, state: Glance | DatasetState, asked: Spending) -> None:
        """Refuse what asks for as much as a debit that was refused, or for too much by itself."""
        if state.tells:
            if state.name in self._exceeding:
                self._exceeding[state.name].refuse(state, asked)
            begun = self._as_begun(tables, state) if isinstance(state, Glance) else state
            refuse_alone(state, begun.base.secrets, asked)

    def debited_at_once(self, tables: Tables, after: Glance, entry: Entry) -> None:
        """Keep a debit in the dataset's own row alone. Cost: that row."""
        found = after.after(entry, waiting=after.waiting + 1)
        tables.put_total(found.name, EVERYBODY, *found.stored)
        self._glances[found.name] = found

    def settle(self, name: str) -> None:
        """Write waiting debits into the rows of levels, if it is time; nobody waits meanwhile.

        Which rows that changes is found before the lock is taken. If it fails the debits wait on.
        """
        known = self._glances.get(name)
        if known is None or not known.waiting or known.waiting % (MOST + 1):
            return
        with suppress(StorageError):
            state = self.store.look(lambda tables: self.found(tables, name))
            if not state.analysts:  # whose own rows the next debit writes with these
                self._kept(lambda: self.store.write(settling(state)))

    def alone(self, tables: Tables, state: DatasetState, analyst: str) -> Account:
        """Return the account of one analyst's releases alone. Cost: her rows, and what waits.

        Raises:
            Unusable: if its rows have to be set right before anything is written.
        """
        try:
            return self._settled_account(tables, state, analyst).plus(state.ahead.of(analyst))
        except (ArithmeticError, ValueError):
            if state.name in self._known:  # whoever writes next sets them right
                self._known[state.name] = replace(self._known[state.name], usable=False)
        alone = added_up(state.name, tables.steps(state.name))[1]
        return alone.get(analyst, Account(state.base.secrets))

    def _settled_account(self, tables: Tables, state: DatasetState, analyst: str) -> Account:
        """`settled_account`, which is read once: what is kept binds it."""
        place, kept = (state.name, analyst), state.analysts.get(analyst, Analyst()).kept
        if place not in self._settled or self._settled[place][0] != kept:
            try:
                self._settled[place] = kept, settled_account(tables, state, analyst)
            except (ArithmeticError, ValueError):
                if tables.writes:
                    raise Unusable(state.name) from None
                raise
        account, secrets = self._settled[place][1], state.base.secrets
        return account if account.secrets is secrets else account.seen_by(secrets)

    def granted(
        self,
        tables: Tables,
        state: DatasetState,
        spending: Spending,
        analyst: str | None,
        *,
        checked: bool = False,
        earlier: Grant | None = None,
    ) -> Grant:
        """Price a debit and check that it fits, as `DatasetState.grant` does, and time it.

        What an `earlier` grant has looked at is not looked at again, if it still holds.

        Raises:
            Overtaken: if it does not hold, and pricing takes so long that nobody should wait.
            Unusable: if rows have to be set right before anything is written.
        """
        if earlier is not None and earlier.given.last == state.last:
            return earlier
        at_once = None if analyst else state.granted_at_once(spending, checked=checked)
        if at_once is not None:
            self._seconds[state.name] = 0.0
            if state.are_clear([spending]):
                self.dear.discard(state.name)
            return at_once
        if not checked and earlier is None:
            self.refuse_early(tables, state, spending)
            found = exceeding_near(state, spending)
            if found is not None:
                self._remember(state, found, analyst)
                found.refuse(state, spending)
        start = time.perf_counter()
        alone = None if analyst is None else partial(self.alone, tables, state, analyst)
        account = state.account.plus([spending])
        if earlier is not None and earlier.account is not None:
            account.as_priced(state.account, earlier.given.account, earlier.account)
            if account.known is None and self._seconds.get(state.name, 0.0) > _TOO_LONG:
                raise Overtaken
        carried = account.known is not None
        try:
            return state.grant(spending, analyst, alone, checked=checked, account=account)
        except BudgetExceeded:
            if not checked and state.retired is None:
                total = float_up(account.total)
                self._remember(state, Exceeding.of(state, spending, total), analyst)
            raise
        finally:
            if not carried:
                self._seconds[state.name] = time.perf_counter() - start

    def _remember(self, state: DatasetState, found: Exceeding, analyst: str | None) -> None:
        """Remember a debit that exceeds the budget, where nobody has a share of it."""
        if analyst is None and not state.analysts:
            self._exceeding[state.name] = found

    def price_first(self, name: str) -> bool:
        """Whether to price a debit before the lock is taken, so that others need not wait for it.

        If pricing takes long, and also if it does not while others keep writing.
        """
        shared = time.monotonic() - self._others.get(name, -math.inf) < _LATELY
        return self._seconds.get(name, _LONG) >= (_SHORT if shared else _LONG)

    def begun(self, tables: Tables, name: str) -> DatasetState:
        """Add up the entries of a dataset that has no totals yet, and keep them."""
        state, alone = added_up(name, tables.steps(name))
        self._write_all(tables, state, alone)
        return self._known[name].state

    def changed(self, tables: Tables, state: DatasetState, entry: Entry, **changes: Any) -> None:
        """Keep what an entry changes beside the releases."""
        self._write(tables, state, replace(state, last=Head(entry.seq, entry.hash), **changes))

    def changing(self, **changes: Any) -> Callable[[Tables, DatasetState, Draft], None]:
        """What appends an entry and keeps the changes that are always those."""
        return lambda t, state, draft: self.changed(t, state, t.append(draft), **changes)

    def extended(self, tables: Tables, state: DatasetState, entry: Entry, account: Account) -> None:
        """Keep the releases in a longer series."""
        base = state.base.seen_by(account.secrets)
        self.changed(tables, state, entry, base=base, safe=None, found=None)

    def _in_rows(self, tables: Tables, state: DatasetState) -> DatasetState:
        """Write the latest debits into the rows of levels."""
        account, analysts = state.account, dict(state.analysts)
        for who in {debit.analyst for debit in state.ahead.debits if debit.analyst is not None}:
            settled = self._settled_account(tables, state, who)
            own, row = Kept.of(settled.plus(state.ahead.of(who)))
            tables.put_levels(state.name, who, row)
            analysts[who] = replace(analysts[who], kept=own)
        kept, row = Kept.of(account)
        tables.put_levels(state.name, EVERYBODY, row)
        ahead = Ahead(state.last.count, account.usage.total, kept.peak)
        after = replace(state, base=account, ahead=ahead, kept=kept, analysts=analysts)
        return after.with_account(account)

    def debited(
        self, tables: Tables, state: DatasetState, entry: Entry, grant: Grant, *, keep: bool = True
    ) -> None:
        """Keep the totals with a debit, or leave that to `keep`. Cost: a few rows."""
        analysts = state.analysts
        if grant.analyst is not None:
            known = analysts.get(grant.analyst, Analyst())
            charged = known.charged + (grant.charge or Fraction(0))
            analysts = {**analysts, grant.analyst: replace(known, charged=charged)}
        debit = Recent(entry.seq, grant.analyst, grant.spending)
        earlier = self._earlier(state.name, entry.seq)
        after = replace(
            state,
            last=Head(entry.seq, entry.hash),
            ahead=state.ahead.plus(debit, grant.peak),
            analysts=analysts,
            safe=grant.safe,
            found=None if grant.account is None else grant.account.known,
            earlier=earlier,
        )
        if grant.account is not None:
            after.with_account(grant.account.kept(earlier))
        if len(after.ahead.debits) > MOST or not can_wait(grant.spending):
            after = self._in_rows(tables, after)
        if keep:
            self._write(tables, state, after)
        else:
            tables.pending = after

    def debited_together(
        self, tables: Tables, state: DatasetState, entries: Sequence[Entry], account: Account | None
    ) -> None:
        """Keep the totals with several debits for nobody in particular.

        `account` has them all; None if nobody needed it, and then a few wait as single ones do.
        """
        new, last = [Recent.of(entry) for entry in entries], Head(entries[-1].seq, entries[-1].hash)
        earlier = self._earlier(state.name, last.count)
        found = None if account is None else account.known
        ahead = state.ahead.plus_all(new)
        after = replace(state, last=last, ahead=ahead, found=found, earlier=earlier)
        if account is not None:
            after.with_account(account.kept(earlier))
        if account is not None or len(ahead.debits) > MOST:
            after = self._in_rows(tables, after)
        self._write(tables, state, after)

    def latest(self, tables: Tables, before: DatasetState) -> DatasetState:
        """The state after the last of several debits, of which nobody outside them knows yet."""
        return before if tables.pending is None else tables.pending

    def keep(self, tables: Tables, before: DatasetState) -> None:
        """Keep the totals with several debits."""
        after = self.latest(tables, before)
        if after.last != before.last:
            self._write(tables, before, after)

    def set_right(self, name: str) -> None:
        """Add up a dataset's entries and write its rows anew; reading holds nobody up.

        If others have written in between they have set the rows right themselves.
        """

        def add_up(tables: Tables) -> tuple[DatasetState, dict[str, Account]]:
            check_log_is_whole(tables, name)
            return added_up(name, tables.steps(name))

        state, alone = self.store.look(add_up)

        def write(tables: Tables) -> None:
            if tables.last_step(name) == state.last:
                tables.drop_totals(name)
                self._write_all(tables, state, alone)

        self._kept(lambda: self.store.write(write))

    def write(self, work: Callable[[Tables], Result], about: str | None = None) -> Result:
        """Do `work` as the store does, after setting rows right if need be."""
        tried: Counter[str] = Counter()
        while True:
            try:
                return self._kept(lambda: self.store.write(work, about))
            except Unusable as unusable:
                name = unusable.name
            tried[name] += 1
            if tried[name] > _ATTEMPTS:
                break
            self.set_right(name)
        raise StorageError(
            f"The totals of {name!r} are changed by somebody as fast as they are set right. "
            "Nothing was granted; find out who writes to the ledger's tables."
        )

    def begin(self, work: Callable[[Tables], Result], ledger_id: str | None = None) -> Result:
        """Do `work` as the store does, in a new ledger if there is none."""
        return self._kept(lambda: self.store.begin(work, ledger_id))

    def _kept(self, attempt: Callable[[], Result]) -> Result:
        """Do something, and remember only what was known before if it was not committed."""
        before = dict(self._known), dict(self._glances), dict(self._begun)
        try:
            return attempt()
        except BaseException:
            self._known, self._glances, self._begun = before
            raise

    def _read(
        self,
        tables: Tables,
        name: str,
        last: Head,
        stored: tuple[str, str] | None,
        known: DatasetState | None,
    ) -> DatasetState | None:
        """A state from what is known and the entries since, or from rows; None if from neither."""
        earlier = self._earlier(name, last.count)
        found = None if known is None else caught_up(tables, known, last, stored, earlier)
        return found or loaded(tables, name, last, stored, known, earlier)

    def _added_up(self, tables: Tables, name: str) -> DatasetState:
        state, _ = added_up(name, tables.steps(name))
        return replace(state, earlier=self._earlier(name, state.last.count))

    def _earlier(self, name: str, last: int) -> Callable[[], tuple[Spending, ...]]:
        def read(tables: Tables) -> tuple[Spending, ...]:
            return tuple(
                Spending.from_body(entry.content["spending"])
                for entry in tables.steps(name)
                if entry.kind == "debit" and entry.seq <= last
            )

        store = self.store  # not self, which keeps the account that keeps this
        return lambda: store.read(read)

    def _write_all(self, tables: Tables, state: DatasetState, alone: Mapping[str, Account]) -> None:
        for analyst, account in {EVERYBODY: state.base, **alone}.items():
            tables.put_levels(state.name, analyst, Kept.of(account)[1])
        self._write(tables, replace(state, analysts={}, digest=0), state)

    def _write(self, tables: Tables, before: DatasetState, after: DatasetState) -> None:
        """Write the rows of analysts that changed, and the dataset's own, which binds them all."""
        bound = before.digest
        for name, analyst in after.analysts.items():
            known = before.analysts.get(name)
            if analyst is not known:
                text = analyst_text(analyst)
                tables.put_total(after.name, name, text, "")
                bound += digest({name: text})
                bound -= 0 if known is None else digest({name: analyst_text(known)})
        state = replace(after, digest=bound % DIGESTS)
        if "account" in after.__dict__:
            state.with_account(after.account)
        row = sealed(state)
        tables.put_total(state.name, EVERYBODY, *row)
        self._known[state.name] = _Known(row, state)
