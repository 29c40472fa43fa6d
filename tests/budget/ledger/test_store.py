"""Processes, threads and servers that come and go."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from fractions import Fraction
from itertools import count
from pathlib import Path

import psycopg
import pytest

from evidence.faults.disk import in_child
from evidence.faults.server import standby_of
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.entries import Draft
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.urls import database_at
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    QuiltworkWarning,
    StorageError,
)


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


def test_a_fork_comes_although_somebody_always_reads(ledger, independent):
    ledger.create("d", independent, 3, 1)
    stop, forked = threading.Event(), threading.Event()

    def read():
        while not stop.is_set():
            ledger.ask("d", lambda _: time.sleep(0.05))

    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        forked.set()

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    forking = threading.Thread(target=fork)
    forking.start()
    came = forked.wait(10)
    stop.set()
    for thread in (*readers, forking):
        thread.join()
    assert came


@pytest.mark.timeout(60)
def test_a_fork_lets_those_who_read_write_first(url, tmp_path, independent):
    """To the ledger they read, and to others."""
    ledgers = Ledger.open(url, timeout=3), Ledger.open(f"sqlite:///{tmp_path}/b.db", timeout=3)
    for ledger in ledgers:
        ledger.create("d", independent, 3, 1)
    reading, granted = threading.Barrier(3), []

    def debit(_):
        reading.wait()
        time.sleep(0.3)
        granted.extend(ledger.debit("d", Spending.dp(0.1, 1, 3)) for ledger in ledgers)

    threads = [threading.Thread(target=ledger.ask, args=("d", debit)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    reading.wait()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    for thread in threads:
        thread.join()
    assert len(granted) == 4


def test_who_is_interrupted_anywhere_gives_up_its_turn(sqlite_url, independent):
    """Before any instruction that has to do with it; of another thread, which could wait for it.

    In a process of its own: Python forgets to leave an `except` that is interrupted as it begins.
    """
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 3, 1)
    assert in_child(lambda: _is_free_after_any_interrupt(ledger._store)) == 1


def _is_free_after_any_interrupt(store):
    free = []

    def look():
        free.append(store._turn.is_free_for_this_thread)

    for number in count(1):
        left = [number]

        def interrupted(frame, event, _, left=left):
            code = frame.f_code
            named = code.co_name in ("_writing", "take", "release")
            if "contextlib" not in code.co_filename and not named:
                return None
            frame.f_trace_opcodes = True
            left[0] -= event == "opcode"
            if left[0] == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
            return interrupted

        sys.settrace(interrupted)
        try:
            store.write(lambda log: log.head)
            done = True
        except KeyboardInterrupt:
            done = False
        sys.settrace(None)
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()
        if done:
            return number > 50 and all(free)
    return False


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


def test_a_server_that_is_not_there_gets_a_sentence():
    database = database_at("postgresql://nobody:secret@127.0.0.1:1/none")
    with pytest.raises(StorageError, match="cannot be reached"):
        Ledger(Store(database, pauses=())).verify()


def test_isolation_and_durability_do_not_depend_on_the_servers_settings(postgres_url, independent):
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("ALTER ROLE quiltwork SET default_transaction_isolation = 'serializable'")
        other.execute("ALTER ROLE quiltwork SET synchronous_commit = off")
    try:
        ledger = Ledger.open(postgres_url)
        ledger.create("d", independent, 3, 1)

        def written(log):
            log.put_snapshot("any", "any", "any")
            return log.execute(
                "SELECT current_setting('transaction_isolation'), pg_current_wal_insert_lsn()::text"
            )[0]

        def is_on_disk(place):
            with psycopg.connect(postgres_url) as other:
                asked = other.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", [place])
                return asked.fetchone()[0]

        for _ in range(9):
            isolation, place = ledger._store.write(written)
            assert isolation == "read committed"
            assert is_on_disk(place)

        def hasty(log):  # the negative control: nobody waits
            log.execute("SET LOCAL synchronous_commit = off")
            return written(log)

        places = [ledger._store.write(hasty)[1] for _ in range(9)]
        assert not is_on_disk(places[-1])
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("ALTER ROLE quiltwork RESET ALL")


def test_threads_that_wait_share_a_transaction_and_each_has_its_own_verdict(ledger, independent):
    """What fits is granted, what does not is refused, nonsense gets its own error."""
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 3), key="before").complete("stored")
    store, commits = ledger._store, []
    usual = store._transact

    def counted(connection, work, wait, *, again):
        commits.append(wait)
        return usual(connection, work, wait, again=again)

    store._transact = counted
    asked = [
        *((Spending.dp(0.25, 1, 3), None, number) for number in range(3)),  # which fit
        *((Spending.dp(0.9, 1, 3), None, BudgetExceeded) for _ in range(3)),
        (Spending.dp(0.1, 1, 3), "before", "stored"),
        (Spending.dp(0.2, 1, 3), "before", InvalidInputError),
        (Spending.dp(0.1, 1, 4), None, InvalidInputError),
        ("nonsense", None, InvalidInputError),
        (Hostile(), None, ZeroDivisionError),
    ]
    found: dict[int, object] = {}

    def ask(at):
        spending, key, _ = asked[at]
        try:
            receipt = ledger.debit("d", spending, key=key)
            found[at] = receipt.stored or receipt.number
        except Exception as error:
            found[at] = type(error)

    with store._writing(1e9, None):
        threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(asked))]
        for thread in threads:
            thread.start()
        while len(store._turn.waiting) < len(asked):
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert len(commits) == 1
    for at, (_, _, expected) in enumerate(asked):
        if not isinstance(expected, int):
            assert found[at] == expected
    assert len({found[at] for at in range(3)}) == 3
    assert ledger.status("d").exact_total == Fraction(85, 100)
    assert len(ledger.notes()) == 3
    ledger.verify()


class Hostile:
    """Whose description of itself fails."""

    @property
    def spending(self):
        return 1 / 0


@pytest.mark.parametrize("moment", ["before the commit", "after it"])
def test_those_who_wait_with_one_that_is_interrupted_are_served_once(
    sqlite_url, independent, moment
):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 3, 1)
    store, usual, told = ledger._store, ledger._store._transact, []

    def interrupted(*given, again):
        store._transact = usual
        if moment == "after it":
            usual(*given, again=again)
        raise KeyboardInterrupt

    def ask():
        try:
            told.append(ledger.debit("d", Spending.dp(0.1, 1, 3)).number)
        except KeyboardInterrupt:
            told.append("interrupted")

    with store._writing(1e9, None):
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        while len(store._turn.waiting) < 6:
            time.sleep(0.01)
        store._transact = interrupted
    for thread in threads:
        thread.join()
    numbers = [one for one in told if one != "interrupted"]
    assert (len(numbers), len(set(numbers))) == (5, 5)
    assert len(ledger.history("d")) == (6 if moment == "after it" else 5)
    ledger.verify()


def test_a_standby_is_read(postgres, postgres_url, independent):
    """It can flush nothing, and has only what is on the server's disk."""
    ledger = Ledger.open(postgres_url)
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 3), key="k").complete("seen")
    with standby_of(postgres) as standby:
        auditor = Ledger.open(postgres_url.replace(postgres, standby), read_only=True)
        assert auditor.answer("d", "k") == "seen"
        assert auditor.verify() == ledger.checkpoint()
        auditor.close()


def test_a_read_only_server_gets_a_sentence(postgres_url, independent):
    ledger = Ledger.open(postgres_url)
    ledger.create("d", independent, 3, 1)
    usual = database_at(postgres_url).begin_with
    ledger._store.database.begin_with = lambda *given, wait: usual(*given, wait=None)
    with pytest.raises(StorageError, match="read-only"):
        ledger.debit("d", Spending.dp(0.1, 1, 3))


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


def test_who_reads_waits_for_nobody_who_writes(ledger, independent):
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.25, 1, 3))
    writing, done = threading.Event(), threading.Event()

    def hold(log):
        body = '{"after":2,"at":"now","reason":"not committed yet"}'
        log.append(Draft("a" * 32, "d", "retire", body))
        writing.set()
        assert done.wait(20)
        raise InvalidInputError("and never will be")

    def write():
        with pytest.raises(InvalidInputError, match="never will be"):
            ledger._store.write(hold)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert writing.wait(20)
        status = ledger.status("d")
        assert (status.total, status.retired, len(ledger.history("d"))) == (0.25, None, 1)
        assert ledger.preview("d", Spending.dp(0.75, 1, 3)).fits
        assert not ledger.preview("d", Spending.dp(0.8, 1, 3)).fits
    finally:
        done.set()
        writer.join()
    assert ledger.verify().count == 2


def test_an_auditor_reads_and_writes_nothing(ledger, url, tmp_path, independent):
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.25, 1, 3), key="k").complete("answer")
    with Ledger.open(url, read_only=True) as auditor:
        assert auditor.status("d").total == 0.25
        assert auditor.answer("d", "k") == "answer"
        assert auditor.verify() == ledger.checkpoint()
        for write in (
            lambda: auditor.debit("d", Spending.dp(0.1, 1, 3)),
            lambda: auditor.create("e", independent, 3, 1),
            lambda: auditor.retire("d"),
            lambda: auditor.note("read", "looked"),
            lambda: auditor.last_backup(tmp_path / "last.jsonl"),
        ):
            with pytest.raises(StorageError, match="for reading only"):
                write()
        again = pickle.loads(pickle.dumps(auditor))  # noqa: S301  (our own bytes)
        with again, pytest.raises(StorageError, match="for reading only"):
            again.retire("d")
    assert not (tmp_path / "last.jsonl").exists()
    assert ledger.checkpoint().count == 3


def test_an_auditor_needs_no_right_to_write(sqlite_url, independent):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with pytest.raises(StorageError, match="no ledger"):
        Ledger.open(sqlite_url, read_only=True).status("d")
    assert not path.exists()
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", independent, 3, 1)
        path.chmod(0o400)
        assert Ledger.open(sqlite_url, read_only=True).status("d").total == 0


def test_a_database_in_another_encoding_gets_a_sentence(postgres, postgres_url, independent):
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    with pytest.raises(StorageError, match=r"encoded in LATIN1.*ENCODING 'UTF8'"):
        Ledger.open(f"{postgres}/latin").create("d", independent, 3, 1)
