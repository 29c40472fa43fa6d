"""Waiting for others who write: threads, processes, sessions."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import socket
import sqlite3
import threading
import time
import uuid
from pathlib import Path

import psycopg
import pytest

from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.writer_election import WriterElection
from quiltwork.errors import InvalidInputError, StorageError


def test_threads_and_processes_are_waited_for_together(sqlite_url, independent, monkeypatch):
    ledger = Ledger.open(sqlite_url, timeout=20)
    ledger.create("d", independent, 3, 1)
    database, waits = ledger._store.database, []
    usual = database.begin_with
    record = lambda *given, wait: (waits.append(wait), usual(*given, wait=wait))[1]  # noqa: E731
    monkeypatch.setattr(database, "begin_with", record)
    with ledger._store._writing(1e9, None):
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
    raise OSError


@pytest.mark.parametrize("timeout", [20, 0.2])
@pytest.mark.parametrize("how", ["taken", "without such names"])
def test_only_speed_rests_on_who_is_next(sqlite_url, independent, monkeypatch, how, timeout):
    """A process may be the next, and never do anything; short waits are not spent on that."""
    ledger = Ledger.open(sqlite_url, timeout=timeout)
    ledger.create("d", independent, 3, 1)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    found = path.stat()
    with socket.socket(socket.AF_UNIX) as is_next:
        is_next.bind(f"\0quiltwork-{os.geteuid()}-{found.st_dev}-{found.st_ino}")
        if how == "without such names":
            monkeypatch.setattr("quiltwork.budget.ledger.writer_election.socket.socket", _refused)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.02, lambda: other.execute("ROLLBACK")).start()
        ledger.debit("d", Spending.dp(0.1, 1, 3))
        monkeypatch.undo()
        other.close()


def _be_next(file, own):
    with WriterElection().elected(file, 60) as is_next:
        own.send(is_next)
        own.recv()


def test_another_process_is_next_when_one_has_ended_or_was_killed():
    context, file = multiprocessing.get_context("fork"), uuid.uuid4().hex
    ends, processes = {}, []
    for _ in range(3):
        end, own = context.Pipe()
        processes.append(context.Process(target=_be_next, args=(file, own)))
        ends[end] = processes[-1]
        ends[end].start()
    for way in ("ended", "killed", "ended"):
        (heard,) = multiprocessing.connection.wait(ends)  # one at a time
        assert heard.recv() is True
        process = ends.pop(heard)
        if way == "killed":
            process.kill()
        else:
            heard.send("go")
    for process in processes:
        process.join()


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
