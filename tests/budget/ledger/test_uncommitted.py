"""What a process looked at counts only once it is committed."""

from __future__ import annotations

import os
import sqlite3

import pytest

from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.log import Log
from quiltwork.errors import BudgetExceeded, StorageError

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])


@pytest.mark.parametrize("late", [False, True])
def test_a_create_that_was_not_committed_leaves_no_budget(tmp_path, monkeypatch, late):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    mine, theirs = Ledger.open(url), Ledger.open(url)
    mine.create("other", CHAIN, 100, 1)
    usual = Log.append

    def interrupted(log, *given):
        if late:
            usual(log, *given)
            mine._states.latest(log, "d")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", interrupted)
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
    usual, lost = Log.commit, []

    def lose(log):
        if log.writes and not lost:
            lost.append(log)
            raise sqlite3.OperationalError("the line was cut")
        usual(log)

    monkeypatch.setattr(Log, "commit", lose)
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
