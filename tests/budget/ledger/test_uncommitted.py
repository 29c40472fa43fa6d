"""What a process looked at counts only once it is committed, and on the disk."""

from __future__ import annotations

import os
import sqlite3

import pytest

from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger import totals
from quiltwork.errors import BudgetExceeded, StorageError
from tests.budget.ledger.raw import raw

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])


def test_a_create_that_was_not_committed_leaves_no_budget(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    mine, theirs = Ledger.open(url), Ledger.open(url)
    mine.create("other", CHAIN, 100, 1)
    begun = mine._totals.begun

    def interrupted(*given):
        begun(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mine._totals, "begun", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine.create("d", CHAIN, 100, 50)
    theirs.create("d", CHAIN, 100, 1)
    assert mine.status("d").budget == 1
    with pytest.raises(BudgetExceeded):
        mine.debit("d", Spending.dp(0.5, 1, 100))


def test_an_analysts_account_forgets_a_debit_whose_commit_was_lost(tmp_path, monkeypatch):
    """Meanwhile another debit of hers has taken its number, and her cap holds for both."""
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    mine, theirs = Ledger.open(url), Ledger.open(url)
    mine.create("d", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 6, 2)
    mine.allot("d", "ana", cap=0.4)
    mine.allot("d", "ben")
    mine.debit("d", Spending.dp(0.9, 5, 5), analyst="ben")  # so that nothing of hers is charged
    database = mine._store.database
    usual, lost = database.run, []

    def lose(connection, statements):
        if ("COMMIT", ()) in statements and not lost:
            lost.append(statements)
            raise sqlite3.OperationalError("the line was cut")
        usual(connection, statements)

    monkeypatch.setattr(database, "run", lose)
    monkeypatch.setattr(database, "is_lost", lambda error: "cut" in str(error))
    theirs_meanwhile = lambda _: theirs.debit("d", Spending.dp(0.25, 3, 4), analyst="ana")  # noqa: E731
    monkeypatch.setattr("quiltwork.budget.ledger.store.time.sleep", theirs_meanwhile)
    mine.debit("d", Spending.dp(0.25, 1, 2), analyst="ana")
    monkeypatch.undo()
    assert len(mine.history("d")) == 3
    for one in (mine, theirs, Ledger.open(url)):
        for start in (1, 3):
            with pytest.raises(BudgetExceeded, match="cap"):
                one.debit("d", Spending.dp(0.25, start, start), analyst="ana")
    mine.debit("d", Spending.dp(0.15, 1, 4), analyst="ana")
    mine.verify()


def test_rows_that_are_written_late_do_not_swallow_an_analysts_debits(url, monkeypatch):
    """Whoever made the debit after which rows are written is held up until she was given a cap."""
    monkeypatch.setattr(totals, "MOST", 2)
    mine, theirs = Ledger.open(url), Ledger.open(url)
    mine.create("d", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 100, 2)
    mine.debit("d", Spending.dp(0.9, 5, 5))  # so that nothing of hers is charged
    mine.debit("d", Spending.dp(0.1, 5, 5))
    settle = mine._totals.settle

    def held_up(name):
        theirs.allot("d", "ana", cap=0.4)
        theirs.debit("d", Spending.dp(0.1, 1, 2), analyst="ana")
        theirs.debit("d", Spending.dp(0.2, 1, 2), analyst="ana")
        settle(name)

    monkeypatch.setattr(mine._totals, "settle", held_up)
    mine.debit("d", Spending.dp(0.1, 5, 5))
    for one in (mine, theirs, Ledger.open(url)):
        with pytest.raises(BudgetExceeded, match="cap"):
            one.debit("d", Spending.dp(0.15, 1, 1), analyst="ana")
    mine.verify()


def test_what_a_failing_server_forgot_before_it_was_told_is_not_missed(url):
    writer, reader = Ledger.open(url), Ledger.open(url)
    writer.create("d", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 3, 1)
    reader.status("d")
    store = reader._store
    usual = store.database.flush

    def failing(_):
        store.database.flush = usual
        raise StorageError("The server failed.")

    writer.debit("d", Spending.dp(0.1, 1, 3))
    assert store.look(lambda tables: tables.head.count) == 2
    store.database.flush = failing
    with pytest.raises(StorageError, match="failed"):
        reader.status("d")
    with raw(url) as server:
        server.execute("DELETE FROM quiltwork_entries WHERE seq = 2")
        server.execute("DELETE FROM quiltwork_totals")
    assert reader.debit("d", Spending.dp(0.2, 1, 3)).number == 2
    assert reader.status("d").total == 0.2


@pytest.mark.parametrize("change", ["kind = 'answer'", "dataset = 'e'"])
def test_a_debit_that_is_made_another_entry_is_not_refunded(tmp_path, change):
    path = tmp_path / "budget.db"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create("e", CHAIN, 100, 1)
        ledger.create("d", CHAIN, 100, 1)
        ledger.debit("d", Spending.dp(0.25, 1, 100))
    connection = sqlite3.connect(path)
    triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in connection.execute(triggers).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(f"UPDATE quiltwork_entries SET {change} WHERE seq = 3")  # noqa: S608
    connection.commit()
    connection.close()
    with Ledger.open(f"sqlite:///{path}") as ledger, pytest.raises(StorageError):
        ledger.debit("d", Spending.dp(0.25, 1, 100))


def test_a_log_beside_the_file_itself_is_watched_through_a_link(tmp_path):
    path, link = tmp_path / "budget.db", tmp_path / "link.db"
    link.symlink_to(path)
    ledger = Ledger.open(f"sqlite:///{link}")
    ledger.create("d", CHAIN, 100, 1)
    (tmp_path / "budget.db-wal").unlink()
    with pytest.raises(StorageError, match="replaced or deleted"):
        ledger.debit("d", Spending.dp(0.1, 1, 100))


def test_a_file_of_two_names_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create("d", CHAIN, 100, 1)
    os.link(path, tmp_path / "twin.db")
    for name in ("budget.db", "twin.db"):
        with pytest.raises(StorageError, match="hard links"):
            Ledger.open(f"sqlite:///{tmp_path / name}").status("d")
