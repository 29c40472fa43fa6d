"""Processes, threads and servers that come and go."""

from __future__ import annotations

import os
import threading
import time

import psycopg
import pytest

from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.databases import database_at
from quiltwork.errors import BudgetExceeded, QuiltworkWarning, StorageError


def test_threads_share_a_ledger(ledger, independent):
    ledger.create("d", independent, 3, 1)
    granted, refused = [], []

    def ask():
        for _ in range(5):
            try:
                granted.append(ledger.debit("d", Spending.dp(0.05, 1, 3)).number)
            except BudgetExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), len(refused), len(set(granted))) == (20, 10, 20)
    assert ledger.status("d").exact_total == 1
    ledger.verify()


def test_both_sides_of_a_fork_go_on(ledger, independent):
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    child = os.fork()
    if child == 0:
        try:
            ledger.debit("d", Spending.dp(0.1, 1, 3))
            os._exit(0)
        except BaseException:
            os._exit(1)
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert len(ledger.history("d")) == 3
    ledger.verify()


def test_a_closed_ledger_opens_again(ledger, independent):
    ledger.create("d", independent, 3, 1)
    ledger.close()
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    ledger.close()
    assert len(ledger.history("d")) == 1


def test_a_server_that_hung_up_is_called_again(postgres_url, independent):
    ledger = Ledger.open(postgres_url)
    ledger.create("d", independent, 3, 1)
    for _ in range(3):
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND usename IS NOT NULL"
            )
        ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert len(ledger.history("d")) == 3


def test_a_server_that_is_not_there_gets_a_sentence(monkeypatch):
    monkeypatch.setattr("quiltwork.budget.ledger.store._PAUSES", ())
    with pytest.raises(StorageError, match="cannot be reached"):
        Ledger.open("postgresql://nobody:secret@127.0.0.1:1/none").verify()


def test_isolation_and_durability_do_not_depend_on_the_servers_settings(postgres_url, independent):
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("ALTER ROLE quiltwork SET default_transaction_isolation = 'serializable'")
        other.execute("ALTER ROLE quiltwork SET synchronous_commit = off")
    try:
        ledger = Ledger.open(postgres_url)
        ledger.create("d", independent, 3, 1)

        def settings(tables):
            rows = tables._connection.execute(
                "SELECT current_setting('transaction_isolation'), "
                "current_setting('synchronous_commit')"
            )
            return rows.fetchall()[0]

        assert ledger._store.write(settings) == ("read committed", "on")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("ALTER ROLE quiltwork RESET ALL")


def test_a_read_only_server_gets_a_sentence(postgres_url, independent):
    ledger = Ledger.open(postgres_url)
    ledger.create("d", independent, 3, 1)
    database = database_at(postgres_url)
    usual = database.begin

    def read_only(connection, *, write):
        usual(connection, write=False)

    ledger._store.database.begin = read_only
    with pytest.raises(StorageError, match="read-only"):
        ledger.debit("d", Spending.dp(0.1, 1, 3))


def test_the_lock_of_another_process_is_waited_for(sqlite_url, independent, monkeypatch):
    import sqlite3

    monkeypatch.setattr("quiltwork.budget.ledger.sqlite.LOCK_SECONDS", 0.2)
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 3, 1)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger.close()
    with pytest.raises(StorageError, match="locked by another process"):
        ledger.debit("d", Spending.dp(0.1, 1, 3))
    other.execute("ROLLBACK")
    other.close()
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert len(ledger.history("d")) == 1


def test_the_lock_of_another_session_is_waited_for(postgres_url, independent, monkeypatch):
    monkeypatch.setattr("quiltwork.budget.ledger.postgres.LOCK_SECONDS", 1)
    ledger = Ledger.open(postgres_url)
    ledger.create("d", independent, 3, 1)
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT * FROM quiltwork_ledger FOR UPDATE")
        with pytest.raises(StorageError, match="locked by another process"):
            ledger.debit("d", Spending.dp(0.1, 1, 3))
    ledger.debit("d", Spending.dp(0.1, 1, 3))
    assert len(ledger.history("d")) == 1


def test_a_user_without_rights_gets_a_sentence(postgres_url, independent):
    Ledger.open(postgres_url).create("d", independent, 3, 1)
    schema = postgres_url.rpartition("%3D")[2]
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS reader")
        owner.execute("CREATE ROLE reader LOGIN")
        owner.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO reader')
        owner.execute("GRANT SELECT ON quiltwork_ledger, quiltwork_entries TO reader")
    reader = Ledger.open(postgres_url.replace("quiltwork@", "reader@"))
    assert reader.history("d") == ()
    with pytest.raises(StorageError, match="Grant SELECT, INSERT, UPDATE, DELETE"):
        reader.debit("d", Spending.dp(0.1, 1, 3))


def test_a_server_that_does_not_sync_is_warned_about(postgres_url, independent):
    def sync(value):
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(f"ALTER SYSTEM SET fsync = {value}")
            admin.execute("SELECT pg_reload_conf()")
        for _ in range(100):
            with psycopg.connect(postgres_url) as probe:
                if probe.execute("SHOW fsync").fetchone()[0] == value:
                    return
            time.sleep(0.05)

    sync("off")
    try:
        with pytest.warns(QuiltworkWarning, match="fsync=off"):
            Ledger.open(postgres_url).create("d", independent, 3, 1)
    finally:
        sync("on")
