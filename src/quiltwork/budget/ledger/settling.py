"""Waiting debits are written into the rows of levels, for many at once.

Which rows that changes is found before the lock is taken, so that nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable

from quiltwork.budget.accounting.account import bounded
from quiltwork.budget.ledger.account_rows import Kept
from quiltwork.budget.ledger.ahead import Recent, everything, highest
from quiltwork.budget.ledger.catching_up import EVERYBODY
from quiltwork.budget.ledger.datasets import DatasetState
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.total_rows import read_body, sealed_body


def settling(state: DatasetState) -> Callable[[Tables], None]:
    """What writes the debits that wait in a state into rows, though others may have followed."""
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
