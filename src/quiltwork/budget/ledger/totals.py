"""The totals of every dataset, kept as rows beside the log, so that nobody reads it twice.

Each dataset has a row that names the last entry it includes, by number and hash, and binds
everything else by digests: a row per analyst, and per account the times at which its levels change
(`account_rows.py`). They are written in the transaction of the entry. Rows that are missing,
damaged, or not those of the dataset's last entry grant nothing: the entries are added up again,
outside the write lock, and the rows are written anew. `verify` adds them up in any case.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import DIGESTS, Kept, digest
from quiltwork.budget.ledger.datasets import Analyst, Dataset, Grant, replayed
from quiltwork.budget.ledger.entries import Entry, Head, reading
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.tables import Tables
from quiltwork.budget.ledger.total_rows import (
    analyst_text,
    check_log_reaches,
    read_analyst,
    seal,
    sealed,
    texts,
)
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import integer

Result = TypeVar("Result")

_ATTEMPTS = 3
_FEW = 256
"""So many entries of others are rather added to what is known than the rows read again."""
_LONG = 0.002
"""Seconds of pricing for which others should not have to wait."""
EVERYBODY = ""
"""In the place of an analyst: the account of all releases."""


class Overtaken(Exception):  # noqa: N818  (no error: it is always answered)
    """Others have written to the dataset since the debit was priced."""


class Unusable(Exception):  # noqa: N818  (no error: it is always answered)
    """The rows of the dataset `name` cannot be added to before they are set right."""

    def __init__(self, name: str) -> None:
        """Say which dataset."""
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class _Known:
    """A state, the row it was found beside, and whether its rows may be added to."""

    stored: tuple[str, str] | None
    state: Dataset
    usable: bool = True


class _Alone(NamedTuple):
    """The account of one analyst with everything up to entry number `last`."""

    kept: Kept
    account: Account
    last: int


class Totals:
    """The totals in a store; what was read last is remembered for as long as the rows say so.

    Threads share what is remembered: it is always compared with the rows before it is used.
    """

    def __init__(self, store: Store) -> None:
        """Know nothing yet."""
        self.store = store
        self._known: dict[str, _Known] = {}
        self._alone: dict[tuple[str, str], _Alone] = {}
        self._seconds: dict[str, float] = {}

    def found(self, tables: Tables, name: str) -> Dataset:
        """Return a dataset's state with everything that has been committed. Cost: its rows, once.

        Raises:
            InvalidInputError: if there is no such dataset; it lists those there are.
            Unusable: if the rows have to be set right before anything is written.
            StorageError: if they have to be, and an entry is damaged.
        """
        last = tables.last_step(name)
        if last is None:
            raise unknown(name, tables.datasets())
        stored = tables.total(name)
        known = self._known.get(name)
        if known is None or known.stored != stored or known.state.last != last:
            state = None if known is None else self._caught_up(tables, known.state, last, stored)
            if state is None:
                state = self._loaded(tables, name, last, stored)
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

    def alone(self, tables: Tables, state: Dataset, analyst: str) -> Account:
        """Return the account of one analyst's releases alone.

        Raises:
            Unusable: if its rows have to be set right before anything is written.
        """
        kept, secrets = state.analysts.get(analyst, Analyst()).kept, state.account.secrets
        known = self._alone.get((state.name, analyst))
        if known is not None and known.kept != kept:
            known = self._alone_caught_up(tables, state, analyst, known)
        if known is None or known.kept != kept:
            try:
                account = kept.account(tables.levels(state.name, analyst), secrets)
                known = _Alone(kept, account, state.last.count)
            except (ArithmeticError, ValueError):
                if tables.writes:
                    raise Unusable(state.name) from None
                self._added_up(tables, state.name)
                if state.name in self._known:  # whoever writes next sets them right
                    unusable = replace(self._known[state.name], usable=False)
                    self._known[state.name] = unusable
                known = self._alone[state.name, analyst]
            self._alone[state.name, analyst] = known
        account = known.account
        return account if account.secrets is secrets else account.seen_by(secrets)

    def granted(
        self,
        tables: Tables,
        state: Dataset,
        spending: Spending,
        analyst: str | None,
        *,
        checked: bool = False,
    ) -> Grant:
        """Price a debit and check that it fits, as `Dataset.grant` does, and note how long it took.

        Raises:
            Unusable: if rows have to be set right before anything is written.
        """
        start = time.perf_counter()
        try:
            alone = None if analyst is None else self.alone(tables, state, analyst)
            return state.grant(spending, analyst, alone, checked=checked)
        finally:
            self._seconds[state.name] = time.perf_counter() - start

    def is_slow(self, name: str) -> bool:
        """Whether pricing a debit of this dataset may take so long that others should not wait."""
        return self._seconds.get(name, _LONG) >= _LONG

    def begun(self, tables: Tables, name: str) -> Dataset:
        """Add up the entries of a dataset that has no totals yet, and keep them."""
        state, alone = _summed(name, tables.steps(name))
        self._write_all(tables, state, alone)
        return self._known[name].state

    def changed(self, tables: Tables, state: Dataset, entry: Entry, **changes: Any) -> None:
        """Keep what an entry changes beside the releases."""
        self._write(tables, state, replace(state, last=Head(entry.seq, entry.hash), **changes))

    def debited(self, tables: Tables, state: Dataset, entry: Entry, grant: Grant) -> None:
        """Keep the totals with a debit that was granted. Cost: a few rows."""
        kept, rows = state.kept.plus(state.account, grant.account, grant.spending)
        tables.put_levels(state.name, EVERYBODY, rows)
        analysts = state.analysts
        if grant.analyst is not None and grant.alone is not None:
            known = analysts.get(grant.analyst, Analyst())
            before = self.alone(tables, state, grant.analyst)
            own, rows = known.kept.plus(before, grant.alone, grant.spending)
            tables.put_levels(state.name, grant.analyst, rows)
            self._alone[state.name, grant.analyst] = _Alone(own, grant.alone, entry.seq)
            charged = known.charged + (grant.charge or Fraction(0))
            analysts = {**analysts, grant.analyst: replace(known, charged=charged, kept=own)}
        account = grant.account.kept(self._earlier(state.name, entry.seq))
        self.changed(tables, state, entry, account=account, kept=kept, analysts=analysts)

    def set_right(self, name: str) -> None:
        """Add up a dataset's entries and write its rows anew; reading holds nobody up.

        If others have written in between they have set the rows right themselves.
        """

        def add_up(tables: Tables) -> tuple[Dataset, dict[str, Account]]:
            return _summed(name, tables.steps(name))

        state, alone = self.store.read(add_up)

        def write(tables: Tables) -> None:
            if tables.last_step(name) == state.last:
                tables.drop_totals(name)
                self._write_all(tables, state, alone)

        self._kept(lambda: self.store.write(write))

    def write(self, work: Callable[[Tables], Result]) -> Result:
        """Do `work` as the store does, after setting rows right if need be."""
        tried: Counter[str] = Counter()
        while True:
            try:
                return self._kept(lambda: self.store.write(work))
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
        known, alone = dict(self._known), dict(self._alone)
        try:
            return attempt()
        except BaseException:
            self._known, self._alone = known, alone
            raise

    def check(self, tables: Tables, name: str) -> bool:
        """Add up a dataset's entries, check its budget, and say whether its rows are right.

        Totals that were never written, or not since an older version, are not wrong.

        Raises:
            StorageError: if an entry is damaged, or the debits exceed the budget.
        """
        expected, _ = _summed(name, tables.steps(name))
        expected.check_budget()
        stored = tables.total(name)
        if stored is None:
            return True
        if stored[1] == seal(name, stored[0]):
            check_log_reaches(tables, name, stored[0])
        kept = {EVERYBODY: expected.kept, **{n: a.kept for n, a in expected.analysts.items()}}
        return (
            stored == sealed(expected)
            and tables.totals_of_analysts(name) == texts(expected.analysts)
            and all(digest(tables.levels(name, n)) == one.digest for n, one in kept.items())
        )

    def are_bound(self, tables: Tables, name: str) -> bool:
        """Whether a dataset's rows are bound to its last entry, or were never written.

        Cost: its rows. That they are what all entries add up to is for `check`.
        """
        stored, last = tables.total(name), tables.last_step(name)
        if stored is None or last is None:
            return True
        state = self._loaded(tables, name, last, stored)
        if state is None:
            return False
        found = state.analysts.items()
        return all(digest(tables.levels(name, who)) == one.kept.digest for who, one in found)

    def _added_up(self, tables: Tables, name: str) -> Dataset:
        state, alone = _summed(name, tables.steps(name))
        for analyst, account in alone.items():
            kept = state.analysts[analyst].kept
            self._alone[name, analyst] = _Alone(kept, account, state.last.count)
        account = state.account.kept(self._earlier(name, state.last.count))
        return replace(state, account=account)

    def _earlier(self, name: str, last: int) -> Callable[[], tuple[Spending, ...]]:
        def read(tables: Tables) -> tuple[Spending, ...]:
            return tuple(
                Spending.from_body(entry.content["spending"])
                for entry in tables.steps(name)
                if entry.kind == "debit" and entry.seq <= last
            )

        store = self.store  # not self, which keeps the account that keeps this
        return lambda: store.read(read)

    def _caught_up(
        self, tables: Tables, known: Dataset, last: Head, stored: tuple[str, str] | None
    ) -> Dataset | None:
        """Add what others have written since to a state; None if that is much, or not the rows.

        Cost: the new entries, whatever came before them.
        """
        if stored is None or tables.hash_at(known.last.count) != known.last.hash:
            return None
        entries = list(islice(tables.steps(known.name, known.last.count), _FEW + 1))
        if len(entries) > _FEW:
            return None
        retired, length, spendings = known.retired, known.length, []
        for entry in entries:
            body = entry.content
            with reading(entry):
                match entry.kind:
                    case "debit":
                        spendings.append(Spending.from_body(body["spending"]))
                    case "extend":
                        length = integer(body["length"], "length", 1)
                    case "retire":
                        retired = str(body["reason"])
        before = known.account if length == known.length else known.longer(length)
        account = before.plus(spendings) if spendings else before
        others = tables.totals_of_analysts(known.name)
        try:
            found = replace(
                known,
                last=last,
                account=account.kept(self._earlier(known.name, last.count)),
                kept=known.kept.plus(before, account, *spendings)[0],
                analysts={who: read_analyst(json.loads(text)) for who, text in others.items()},
                digest=digest(others),
                retired=retired,
            )
        except (ArithmeticError, KeyError, TypeError, ValueError):
            return None
        return found if sealed(found) == stored else None

    def _alone_caught_up(
        self, tables: Tables, state: Dataset, analyst: str, known: _Alone
    ) -> _Alone | None:
        """Add an analyst's debits that others have written since to her account."""
        entries = list(islice(tables.steps(state.name, known.last), _FEW + 1))
        if len(entries) > _FEW:
            return None
        debits = [entry for entry in entries if entry.kind == "debit"]
        own = [entry for entry in debits if entry.content.get("analyst") == analyst]
        spendings = [Spending.from_body(entry.content["spending"]) for entry in own]
        before = known.account.seen_by(state.account.secrets)
        after = before.plus(spendings)
        return _Alone(known.kept.plus(before, after, *spendings)[0], after, state.last.count)

    def _loaded(
        self, tables: Tables, name: str, last: Head, stored: tuple[str, str] | None
    ) -> Dataset | None:
        """Read a dataset's state from its rows; None if they are not what was written."""
        if stored is None or stored[1] != seal(name, stored[0]):
            return None
        check_log_reaches(tables, name, stored[0])
        others = tables.totals_of_analysts(name)
        try:
            body = json.loads(stored[0])
            if (body["seq"], body["hash"]) != (last.count, last.hash):
                return None
            if int(body["analysts"], 16) != digest(others):
                return None
            return self._read(tables, name, last, body, others)
        except (ArithmeticError, KeyError, TypeError, ValueError):
            return None

    def _read(
        self,
        tables: Tables,
        name: str,
        last: Head,
        body: Mapping[str, Any],
        others: Mapping[str, str],
    ) -> Dataset | None:
        """The state that rows describe; its first entry, if not known, says what it is about."""
        known = self._known.get(name)
        if known is not None and known.state.created == body["created"]:
            begun = known.state
        else:
            created = tables.at(body["created"])
            if created is None or (created.dataset, created.kind) != (name, "create"):
                return None
            begun, _ = replayed(name, [created])
        if begun.length != body["length"]:
            begun = replace(begun, account=begun.longer(body["length"]))
        kept = Kept.from_body(body)
        account = kept.account(tables.levels(name, EVERYBODY), begun.account.secrets)
        return replace(
            begun,
            last=last,
            account=account.kept(self._earlier(name, last.count)),
            kept=kept,
            analysts={who: read_analyst(json.loads(text)) for who, text in others.items()},
            digest=int(body["analysts"], 16),
            retired=body["retired"],
        )

    def _write_all(self, tables: Tables, state: Dataset, alone: Mapping[str, Account]) -> None:
        for analyst, account in {EVERYBODY: state.account, **alone}.items():
            tables.put_levels(state.name, analyst, Kept.of(account)[1])
        self._write(tables, replace(state, analysts={}, digest=0), state)

    def _write(self, tables: Tables, before: Dataset, after: Dataset) -> None:
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
        row = sealed(state)
        tables.put_total(state.name, EVERYBODY, *row)
        self._known[state.name] = _Known(row, state)


def _summed(name: str, entries: Iterable[Entry]) -> tuple[Dataset, dict[str, Account]]:
    state, alone = replayed(name, entries)
    return replace(state, digest=digest(texts(state.analysts))), alone


def unknown(dataset: str, known: list[str]) -> InvalidInputError:
    """The error for a dataset that a ledger does not have."""
    shown = ", ".join(map(repr, known[:5])) + (", …" if len(known) > 5 else "")
    there = f"there are {shown}" if known else "there are none yet"
    return InvalidInputError(
        f"The ledger has no dataset {dataset!r}; {there}. Begin one with create(dataset, beliefs, "
        "length, budget)."
    )
