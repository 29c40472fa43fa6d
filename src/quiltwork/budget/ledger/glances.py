"""A dataset by its own row alone: enough for most debits, whatever was debited before them.

The row says what everything is charged and the most that any time point is charged. A debit with
which one of these stays within the budget, or within the level that is safe, is granted without
looking at levels or at what others have debited. Only when it is not so clear the account is
added up and priced.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import bounded
from quiltwork.budget.ledger.account_rows import Kept, read_charge
from quiltwork.budget.ledger.ahead import Recent, can_wait, everything, highest
from quiltwork.budget.ledger.catching_up import EVERYBODY, read_safe
from quiltwork.budget.ledger.datasets import DatasetState
from quiltwork.budget.ledger.entries import Entry, Head
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.total_rows import read_body, sealed_body
from quiltwork.exact import float_up

Stored = tuple[str, str]
"""A row of totals: its text and its hash."""


@dataclass(frozen=True, eq=False)
class Glance:
    """What the row of dataset `name` says, which is its `body` and `stored` with entry `last`.

    All debits charge `total` for everything, and at most `peak` for any time point.
    """

    name: str
    last: Head
    stored: Stored
    body: Mapping[str, Any]
    budget: Fraction
    total: Fraction
    peak: Fraction
    safe: Fraction | None

    @property
    def created(self) -> int:
        """The number of the dataset's first entry."""
        return int(self.body["created"])

    @property
    def length(self) -> int:
        """The number of time points."""
        return int(self.body["length"])

    @property
    def retired(self) -> str | None:
        """Why the dataset is closed."""
        return None if self.body["retired"] is None else str(self.body["retired"])

    @property
    def waiting(self) -> int:
        """How many debits are not in the rows of levels."""
        return int(self.body["waiting"])

    @property
    def tells(self) -> bool:
        """Whether the row says enough: there are no analysts, and levels are all that counts."""
        body = self.body
        return (
            self.retired is None
            and not body["analysts"].strip("0")
            and body["latest"] in (None, "levels")
            and body["others"] == "0"
            and body["by_levels"] is True
        )

    def plus(self, spending: Spending) -> Glance | None:
        """With one more debit; None if it is not clear that it fits."""
        if spending.stop > self.length or not can_wait(spending) or not self.tells:
            return None
        total = bounded(self.total + everything(spending))
        peak = Fraction(float_up(self.peak + highest(spending)))
        if total > self.budget and (self.safe is None or peak > self.safe):
            return None
        return replace(self, total=total, peak=peak)

    def after(self, entry: Entry, **changes: Any) -> Glance:
        """With everything up to an entry, and other changes to the row."""
        body = {
            **self.body,
            "seq": entry.seq,
            "hash": entry.hash,
            "all": str(self.total),
            "most": str(self.peak),
            "found": None,
            **changes,
        }
        stored = sealed_body(self.name, body)
        return replace(self, last=Head(entry.seq, entry.hash), stored=stored, body=body)


def glanced(tables: Tables, name: str, known: Glance | None) -> Glance | None:
    """Look at a dataset's row; None if there is none that is bound to the dataset's last entry.

    `known` is what was seen before.
    """
    ends = tables.last_step_and_total(name)
    if ends is None:
        return None
    last, stored = ends
    if known is not None and known.stored == stored and known.last == last:
        return known
    body = read_body(name, stored)
    if body is None or stored is None:
        return None
    try:
        if (body["seq"], body["hash"]) != (last.count, last.hash):
            return None
        if known is None:
            tables.at(last.count)  # whose hash is checked
        budget, total, peak = (read_charge(body, n) for n in ("budget", "all", "most"))
        found = Glance(name, last, stored, body, budget, total, peak, read_safe(body))
        numbers = found.created, found.length, found.waiting, int(body["analysts"], 16)
        return found if min(numbers) >= 0 else None
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


def settling(state: DatasetState) -> Callable[[Tables], None]:
    """What writes the debits that wait in a state into rows, though others may have followed.

    Which rows that changes is found before the lock is taken, so that nobody waits for it.
    """
    name, account = state.name, state.account
    kept, row = Kept.of(account)

    def work(tables: Tables) -> None:
        body = read_body(name, tables.total(name))
        if body is None or (body.get("since"), body.get("length"), body.get("digest")) != (
            *(state.ahead.since, state.length),
            f"{state.kept.digest:064x}",
        ):
            return  # others have done it, or more
        later = [
            Recent.of(entry).spending
            for entry in tables.steps(name, state.last.count)
            if entry.kind == "debit"
        ]
        total = bounded(account.usage.total + sum(map(everything, later)))
        peak = kept.peak + sum(map(highest, later))
        changes = {"since": state.last.count, "waiting": len(later)}
        found = {**body, **kept.body(), **changes, "all": str(total), "most": str(peak)}
        tables.put_levels(name, EVERYBODY, row)
        tables.put_total(name, EVERYBODY, *sealed_body(name, found))

    return work
