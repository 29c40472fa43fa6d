"""A ledger of an older version is brought up to date, with everything in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from quiltwork.budget import Checkpoint, Ledger, Spending
from quiltwork.budget.ledger.schema import VERSION
from quiltwork.errors import BudgetExceeded, StorageError
from tests.budget.ledger.raw import raw


@pytest.fixture
def older(ledger, url, independent):
    """A ledger whose totals are as another version wrote them."""
    ledger.create("d", independent, 3, 1)
    for number in range(3):
        ledger.debit("d", Spending.dp(0.1, 1, 3), key=f"k{number}").complete(f"answer {number}")
    ledger.debit("d", Spending.dp(0.1, 1, 3), key="unanswered")
    ledger.close()
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_ledger SET version = 6")
        connection.execute("UPDATE quiltwork_totals SET body = '{}', hash = 'of another name'")
        connection.execute("INSERT INTO quiltwork_levels VALUES ('d', '', 9, '9 0 0 0')")


@pytest.fixture
def version_6(tmp_path):
    """A ledger that the release before wrote: answers, growth, analysts, a refusal, an end."""
    path = tmp_path / "six.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version6.sql").read_text())
    return f"sqlite:///{path}"


def test_a_ledger_of_the_release_before_goes_on_as_it_was(version_6):
    then = Checkpoint(
        "f8c6e1709a6a358836ca2212f562eb57",
        23,
        "7473fe17cfc2361fbc199aea66f1e6da713694fff9b73211e0afe580e89e5065",
    )
    with pytest.raises(StorageError, match="schema version 6"):
        Ledger.open(version_6, read_only=True).status("alone")
    ledger = Ledger.open(version_6)
    assert ledger.verify(then) == then
    assert stored_version(version_6) == VERSION
    totals = {one.dataset: one.total for one in ledger.datasets()}
    assert totals == pytest.approx({"alone": 0.31198794, "shared": 0.98023513, "closed": 0})
    charged = ledger.status("shared").charged
    assert charged == pytest.approx({"ana": 0.311987905, "ben": 0.668247222})
    assert ledger.answer("alone", "k3") == "answer 3"
    assert [ledger.answer("shared", "k0", who) for who in ("ana", "ben")] == ["hers", "his"]
    assert len(ledger.notes()) == 1
    with pytest.raises(BudgetExceeded, match="cap"):
        ledger.debit("shared", Spending.dp(0.1, 1, 50), analyst="ana")
    with pytest.raises(BudgetExceeded, match="retired"):
        ledger.debit("closed", Spending.dp(0.1, 1, 5))
    with pytest.raises(BudgetExceeded, match=r"above the budget of 2"):
        ledger.debit("alone", Spending.dp(0.9, 1, 300))
    ledger.debit("alone", Spending.dp(0.1, 1, 300))
    ledger.verify(then)


def stored_version(url):
    with raw(url) as connection:
        return connection.execute("SELECT version FROM quiltwork_ledger").fetchall()[0][0]


def test_what_an_older_ledger_granted_stays_granted(url, older):
    """Its totals are added up from the entries before anything is granted."""
    with pytest.raises(BudgetExceeded, match=r"to 1\.1, above the budget of 1"):
        Ledger.open(url).debit("d", Spending.dp(0.7, 1, 3))
    assert stored_version(url) == VERSION
    ledger = Ledger.open(url)
    assert ledger.status("d").exact_total == Fraction(2, 5)
    ledger.debit("d", Spending.dp(0.6, 1, 3))
    with raw(url) as connection:
        assert len(connection.execute("SELECT * FROM quiltwork_totals").fetchall()) == 1
    assert Ledger.open(url).status("d").exact_total == 1
    assert ledger.debit("d", Spending.dp(0.1, 1, 3), key="k0").stored == "answer 0"
    assert [d.state for d in ledger.history("d")] == ["released"] * 3 + ["debited"] * 2
    ledger.verify()


def test_a_migrated_ledger_has_what_a_new_one_has(version_6, tmp_path, independent):
    query = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name"
    with Ledger.open(version_6) as migrated:
        migrated.verify()
    with Ledger.open(f"sqlite:///{tmp_path / 'fresh.db'}") as fresh:
        fresh.create("d", independent, 3, 1)
    files = version_6.removeprefix("sqlite:///"), tmp_path / "fresh.db"
    found, expected = (sqlite3.connect(one).execute(query).fetchall() for one in files)
    assert found == expected


def test_datasets_shares_and_ends_are_found_without_looking_at_all_entries(sqlite_url, independent):
    """As SQLite plans its statements: a million debits would be looked at under the write lock."""
    asked = []

    def look(tables):
        tables._connection.set_trace_callback(asked.append)
        tables.datasets()
        tables.of_kind("retire")
        tables._connection.set_trace_callback(None)

    with Ledger.open(sqlite_url) as ledger, raw(sqlite_url) as connection:
        ledger.create("d", independent, 3, 1)
        ledger._store.read(look)
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in asked]
    assert len(plans) == 2
    for plan in plans:
        assert "quiltwork_rare (kind=?)" in plan[0][3]
        assert not any(step[3].startswith("SCAN") for step in plan)


def test_a_ledger_too_old_is_refused(older, url):
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_ledger SET version = 5")
    for one in (Ledger.open(url), Ledger.open(url, read_only=True)):
        with pytest.raises(StorageError, match=r"schema version 5.*versions from 6 on"):
            one.status("d")


def test_a_ledger_from_the_future_is_refused(ledger, url, independent):
    ledger.create("d", independent, 3, 1)
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_ledger SET version = version + 1")
    for one in (ledger, Ledger.open(url)):
        with pytest.raises(StorageError, match="newer quiltwork"):
            one.debit("d", Spending.dp(0.1, 1, 3))
