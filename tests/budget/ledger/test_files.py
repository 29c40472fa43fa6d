"""The file of a ledger may be moved, replaced or deleted under a running process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from quiltwork.budget import Ledger, Spending
from quiltwork.errors import StorageError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def running(path, independent, tmp_path):
    """A ledger in use, and a copy of its file from before it had any debits."""
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create("d", independent, 4, 1)
    shutil.copy(path, tmp_path / "old.db")
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.status("d")
        yield ledger


def remove(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink()


EVENTS = {
    "replaced": lambda path: path.with_name("old.db").replace(path),
    "deleted": lambda path: remove(path, ""),
    "moved": lambda path: path.rename(path.with_name("elsewhere.db")),
    "log deleted": lambda path: remove(path, "-wal"),
    "index deleted": lambda path: remove(path, "-shm"),
    "all deleted": lambda path: remove(path, "", "-wal", "-shm"),
    "moved behind a link": lambda path: path.symlink_to(
        path.rename(path.with_name("elsewhere.db"))
    ),
    "copied over": lambda path: (
        shutil.copy(path, path.with_name("new.db")),
        path.with_name("new.db").replace(path),
    ),
}


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_granted_from_a_file_that_lost_its_name(running, path, event):
    EVENTS[event](path)
    for ask in (
        lambda: running.debit("d", Spending.dp(1, 1, 4)),
        lambda: running.status("d"),
        lambda: running.extend("d", 5),
        running.verify,
    ):
        with pytest.raises(StorageError, match="moved, replaced or deleted while it was in use"):
            ask()


def test_two_processes_with_two_files_of_one_name_do_not_spend_twice(running, path):
    """The running one has opened the file that another one's name then covers."""
    EVENTS["replaced"](path)
    remove(path, "-wal", "-shm")
    spend = (
        "import sys\n"
        "from quiltwork.budget import Spending\n"
        "from quiltwork.budget import Ledger\n"
        "Ledger.open(sys.argv[1]).debit('d', Spending.dp(1, 1, 4))"
    )
    subprocess.run([sys.executable, "-c", spend, running.url], check=True)
    with pytest.raises(StorageError, match="while it was in use"):
        running.debit("d", Spending.dp(1, 1, 4))


def test_a_file_replaced_within_a_transaction_shows_nothing(running, path):
    """The debit is lost with its file, and so nobody may be told that it was made."""

    def swapped(_tables):
        EVENTS["replaced"](path)

    with pytest.raises(StorageError, match="while it was in use"):
        running._store.write(swapped)


def test_a_file_that_is_put_back_is_the_same_one(running, path):
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(StorageError, match="while it was in use"):
        running.debit("d", Spending.dp(0.5, 1, 4))
    path.with_name("elsewhere.db").rename(path)
    running.debit("d", Spending.dp(0.5, 1, 4))
    assert running.status("d").total == 0.5


def test_others_that_open_and_close_a_ledger_do_no_harm(running):
    for _ in range(3):
        with Ledger.open(running.url) as other:
            other.debit("d", Spending.dp(0.1, 1, 4))
        running.debit("d", Spending.dp(0.1, 1, 4))
    assert len(running.history("d")) == 6


STAYS = """
import sys
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import StorageError
ledger = Ledger.open(sys.argv[1])
ledger.debit("d", Spending.dp(0.01, 1, 4), key="left behind")
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[2] == "notices":
    try:
        ledger.debit("d", Spending.dp(0.01, 1, 4))
    except StorageError:
        pass
    else:
        sys.exit("it was granted something")
if sys.argv[2] == "closes":
    ledger.close()
"""
COMES = """
import sqlite3, sys
from quiltwork.budget import Ledger, Spending
with Ledger.open(sys.argv[1]) as ledger:
    for number in range(3):
        ledger.debit("d", Spending.dp(0.1, 1, 4), key=str(number)).complete(f"answer {number}")
    file = ledger.url.removeprefix("sqlite:///")
    sqlite3.connect(file).execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""


@pytest.mark.parametrize(
    ("event", "end"),
    [("deleted", "closes"), ("deleted", "ends"), ("deleted", "notices"), ("replaced", "closes")],
)
def test_a_process_that_goes_on_with_an_old_log_does_not_write_it_over_others(
    path, independent, tmp_path, event, end
):
    """Whether it has noticed or not, and however it ends, what others debit meanwhile stays."""
    url = f"sqlite:///{path}"
    with Ledger.open(url) as ledger:
        ledger.create("d", independent, 4, 1)
    shutil.copy(path, tmp_path / "old.db")
    command = [sys.executable, "-c", STAYS, url, end]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as stays:
        assert stays.stdout.readline() == "ready\n"
        if event == "replaced":
            EVENTS["replaced"](path)
        remove(path, "-wal", "-shm")
        subprocess.run([sys.executable, "-c", COMES, url], check=True)
        stays.communicate("go on\n")
        assert stays.returncode == 0
    with Ledger.open(url) as ledger:
        ledger.verify()
        assert [debit.key for debit in ledger.history("d")] == ["0", "1", "2"]
        assert ledger.answer("d", "2") == "answer 2"
        assert ledger.status("d").exact_total == Fraction(3, 10)


def test_a_process_with_an_old_log_does_not_open_the_new_one_beside_it(running, path):
    """SQLite has one index of the log for all connections of a process."""
    remove(path, "-wal", "-shm")
    subprocess.run([sys.executable, "-c", COMES, running.url], check=True)
    with pytest.raises(StorageError, match="while it was in use"):
        Ledger.open(running.url).status("d")


def test_threads_that_open_and_close_it_do_not_disturb_each_other(path, independent):
    """The log appears with the first connection and goes with the last, at any moment."""
    url = f"sqlite:///{path}"
    with Ledger.open(url) as ledger:
        ledger.create("d", independent, 4, 10)

    def spend(_):
        with Ledger.open(url) as own:
            return own.debit("d", Spending.dp(0.01, 1, 4)).number

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(spend, range(80)))) == 80


def test_who_has_noticed_another_file_goes_on_in_none(sqlite_url, tmp_path, independent):
    """Though the copy has all that it has seen: others may have debited the file since."""
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", independent, 3, 1)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    shutil.copy(path, tmp_path / "older.db")
    ledger = Ledger.open(sqlite_url)
    ledger.status("d")
    path.rename(tmp_path / "moved.db")
    shutil.copy(tmp_path / "older.db", path)
    for _ in range(3):
        with pytest.raises(StorageError, match="start again"):
            ledger.debit("d", Spending.dp(0.1, 1, 3))
        ledger._store.close()  # as after an error of the database
    Ledger.open(sqlite_url).debit("d", Spending.dp(0.1, 1, 3))


def test_a_file_that_was_moved_without_its_log_grants_nothing_behind_a_link(path, independent):
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create("d", independent, 3, 1)
    path.symlink_to(path.rename(path.with_name("moved.db")))
    log = Path(f"{path}-wal")
    log.write_bytes(b"of somebody who had it open")
    newcomer = Ledger.open(f"sqlite:///{path}")
    with pytest.raises(StorageError, match="moved without it"):
        newcomer.debit("d", Spending.dp(0.1, 1, 3))
    log.unlink()
    newcomer.debit("d", Spending.dp(0.1, 1, 3))
