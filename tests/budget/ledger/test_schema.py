"""One version of the tables; any other is refused with a sentence."""

from __future__ import annotations

import pytest

from evidence.faults.raw import raw
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.schema import VERSION
from quiltwork.errors import StorageError


@pytest.mark.parametrize("version", [1, 6, 9])
def test_a_ledger_of_a_checkout_before_the_first_release_is_refused(
    ledger, url, independent, version
):
    ledger.create("d", independent, 3, 1)
    with raw(url) as connection:
        connection.execute(f"UPDATE quiltwork_ledger SET version = {version}")  # noqa: S608
    for one in (ledger, Ledger.open(url), Ledger.open(url, read_only=True)):
        with pytest.raises(StorageError, match=rf"version {version}, of a checkout .* {VERSION} "):
            one.status("d")


def test_datasets_are_found_without_looking_at_all_entries(sqlite_url, independent):
    """As SQLite plans its statement."""
    asked = []

    def look(log):
        log._connection.set_trace_callback(asked.append)
        log.datasets()
        next(log.steps("d"))
        log._connection.set_trace_callback(None)

    with Ledger.open(sqlite_url) as ledger, raw(sqlite_url) as connection:
        ledger.create("d", independent, 3, 1)
        ledger._store.read(look)
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in asked]
    assert len(plans) == 2
    assert "quiltwork_datasets" in plans[0][0][3]
    assert "quiltwork_by_dataset" in plans[1][0][3]


def test_a_ledger_from_the_future_is_refused(ledger, url, independent):
    ledger.create("d", independent, 3, 1)
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_ledger SET version = version + 1")
    for one in (ledger, Ledger.open(url)):
        with pytest.raises(StorageError, match="newer quiltwork"):
            one.debit("d", Spending.dp(0.1, 1, 3))
