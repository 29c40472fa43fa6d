"""Waiting for others who write: threads, processes, sessions."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from pathlib import Path

import psycopg
import pytest

from quiltwork.budget import Ledger, Spending
from quiltwork.errors import InvalidInputError, StorageError


def test_threads_and_processes_are_waited_for_together(sqlite_url, independent, monkeypatch):
    ledger = Ledger.open(sqlite_url, timeout=20)
    ledger.create("d", independent, 3, 1)
    database, waits = ledger._store.database, []
    usual = database.begin_with
    record = lambda *given, wait: (waits.append(wait), usual(*given, wait=wait))[1]  # noqa: E731
    monkeypatch.setattr(database, "begin_with", record)
    with ledger._store._writer:
        other = threading.Thread(target=ledger.debit, args=("d", Spending.dp(0.1, 1, 3)))
        other.start()
        time.sleep(0.1)
    other.join()
    assert 0 < waits[0] < 19.95


def test_the_lock_of_another_process_is_waited_for(sqlite_url, independent):
    ledger = Ledger.open(sqlite_url, timeout=0.2)
    ledger.create("d", independent, 3, 1)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"locked by another process for 0\.2 seconds"):
        ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert ledger.status("d").total == 0  # who reads does not wait
    other.execute("ROLLBACK")
    other.close()
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert len(ledger.history("d")) == 1


def _refused(*_):
    raise PermissionError


@pytest.mark.parametrize("how", ["taken", "unlisted", "without such locks"])
def test_only_speed_rests_on_whose_turn_it_is(sqlite_url, independent, monkeypatch, how):
    """A lock on the folder says who looks for SQLite's own; a process may never give it up."""
    ledger = Ledger.open(sqlite_url, timeout=20)
    ledger.create("d", independent, 3, 1)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    failing = {"unlisted": "os.open", "without such locks": "fcntl.flock"}.get(how)
    if failing is not None:
        monkeypatch.setattr(f"quiltwork.budget.ledger.sqlite.{failing}", _refused)
    threading.Timer(0.05, lambda: other.execute("ROLLBACK")).start()
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    monkeypatch.undo()
    os.close(folder)
    other.close()


def test_the_lock_of_another_session_is_waited_for(postgres_url, independent):
    ledger = Ledger.open(postgres_url, timeout=0.2)
    ledger.create("d", independent, 3, 1)
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT * FROM quiltwork_ledger FOR UPDATE")
        with pytest.raises(StorageError, match=r"locked by another process for 0\.2 seconds"):
            ledger.debit("d", Spending.dp(0.1, 1, 3))
        assert ledger.status("d").total == 0  # who reads does not wait
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert len(ledger.history("d")) == 1


def test_a_timeout_is_a_number_of_seconds(sqlite_url):
    for bad in (1e300, 90_000, 0, -1, float("nan"), True, "soon"):
        with pytest.raises(InvalidInputError, match="timeout"):
            Ledger.open(sqlite_url, timeout=bad)
