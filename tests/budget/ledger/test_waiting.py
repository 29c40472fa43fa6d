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
from quiltwork.budget.ledger.queueing import WaitingLine
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
    raise OSError


@pytest.mark.parametrize("how", ["taken", "without such sockets"])
def test_only_speed_rests_on_who_is_next(sqlite_url, independent, monkeypatch, how):
    """A process may be the next, or the first of the line, and never do anything."""
    ledger = Ledger.open(sqlite_url, timeout=20)
    ledger.create("d", independent, 3, 1)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    found = path.stat()
    name = f"\0quiltwork-{os.geteuid()}-{found.st_dev}-{found.st_ino}"
    with socket.socket(socket.AF_UNIX) as is_next, socket.socket(socket.AF_UNIX) as is_first:
        is_next.bind(f"{name}-next")
        is_first.bind(f"{name}-line")
        if how == "without such sockets":
            monkeypatch.setattr("quiltwork.budget.ledger.queueing.socket.socket", _refused)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.05, lambda: other.execute("ROLLBACK")).start()
        ledger.debit("d", Spending.dp(0.1, 1, 3))
        monkeypatch.undo()
        other.close()


def _in_line(file):
    """How many wait, as Linux lists them: the line itself, and who is connected to it."""
    return Path("/proc/net/unix").read_text().count(f"-{file}-line")


def _wait_in_line(file, own):
    with WaitingLine().next(file, 60) as is_next:
        own.send(is_next)
        own.recv()


def test_who_has_waited_longest_is_next_also_when_processes_are_killed():
    """Three wait behind the next one, who ends; the one after is killed while it is next."""
    context, file = multiprocessing.get_context("fork"), uuid.uuid4().hex
    ends, processes = [], []
    for number in range(4):
        end, own = context.Pipe()
        ends.append(end)
        processes.append(context.Process(target=_wait_in_line, args=(file, own)))
        processes[-1].start()
        while number and _in_line(file) < number:
            time.sleep(0.001)

    for number, process in enumerate(processes):
        (heard,) = multiprocessing.connection.wait(ends[number:])
        assert heard is ends[number]
        assert heard.recv() is True
        if number == 1:
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
