"""URLs of ledgers, good and bad."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import sys
import traceback

import pytest

from quiltwork.budget import Ledger
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError


@pytest.mark.parametrize(
    "url",
    [
        "budget.db",
        "sqlite://budget.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a?mode=ro",
        "sqlite:////nowhere/at/all/b.db",
        "sqlite:////tmp",
        "mysql://root@localhost/ledger",
        "",
        None,
        7,
    ],
)
def test_a_bad_url_gets_a_sentence(url):
    with pytest.raises(InvalidInputError) as refusal:
        Ledger.open(url)
    assert len(str(refusal.value)) > 30


@pytest.mark.parametrize("place", ["loop", "loop/b.db", "x" * 300, "x/" * 3000 + "b.db", "\ud800"])
def test_a_place_that_cannot_be_looked_at_gets_a_sentence(tmp_path, independent, place):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises((InvalidInputError, StorageError), match=r"file|reached"):
        Ledger.open(f"sqlite:///{tmp_path / place}").create("d", independent, 3, 1)


@pytest.mark.parametrize("step", ["stat", "open"])
def test_a_folder_that_may_not_be_searched_gets_a_sentence(
    tmp_path, independent, monkeypatch, step
):
    """Permissions do not hold root, so the system call is refused here."""
    url = f"sqlite:///{tmp_path / 'closed' / 'b.db'}"
    (tmp_path / "closed").mkdir()
    real = getattr(os, step)

    def refuse(path, *rest, **options):
        if "closed" in str(path) and not str(path).endswith("db"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises((InvalidInputError, StorageError), match="Permission denied"):
        Ledger.open(url).create("d", independent, 3, 1)


def test_a_name_that_is_no_utf_8_is_taken_as_it_is(tmp_path, independent):
    path = tmp_path / "a\udcffb.db"
    Ledger.open(f"sqlite:///{path}").create("d", independent, 3, 1)
    assert path.exists()
    assert len(Ledger.open(f"sqlite:///{path}").datasets()) == 1


def test_a_ledger_says_where_it_is_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Ledger.open("sqlite:///budget.db").url == f"sqlite:///{tmp_path / 'budget.db'}"


def test_a_relative_path_stays_where_it_was_opened(tmp_path, monkeypatch, independent):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("sqlite:///budget.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.create("d", independent, 3, 1)
    assert (tmp_path / "budget.db").exists()


def test_a_path_with_odd_characters_is_taken_as_it_is(tmp_path, independent):
    path = tmp_path / "50 % & 'söme' #budget.db"
    Ledger.open(f"sqlite:///{path}").create("d", independent, 3, 1)
    assert path.exists()


def test_reading_creates_nothing(tmp_path):
    for question in (Ledger.datasets, Ledger.verify, Ledger.checkpoint):
        with pytest.raises(StorageError, match="There is no ledger"):
            question(Ledger.open(f"sqlite:///{tmp_path / 'none.db'}"))
    assert list(tmp_path.iterdir()) == []


def test_postgresql_without_psycopg_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnsupportedError, match="quiltwork\\[postgres\\]"):
        Ledger.open("postgresql://localhost/ledger")


def held_by(error):
    """Everything that an error and those behind it say or hold, whether a traceback shows it."""
    behind = [one for one in (error.__cause__, error.__context__) if one is not None]
    own = [repr(error), str(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    return "".join([*own, *map(held_by, behind)])


def said_about(url):
    """Everything a ledger at this URL says, keeps or pickles, errors included."""
    try:
        ledger = Ledger.open(url)
    except InvalidInputError as error:
        return held_by(error) + repr(pickle.dumps(error))
    try:
        ledger.verify()
    except StorageError as error:
        shown = held_by(error) + repr(pickle.dumps(error))
    return shown + ledger._store.database.url + repr(pickle.dumps(ledger)) + repr(ledger)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3cret@127.0.0.1:1/db",
        "postgresql://ana:q?s3cret@127.0.0.1:1/db",
        "postgresql://:s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=ana&password=s3cret",
        "postgresql://127.0.0.1:1/db?pass%77ord=s3cret&user=ana",
        "postgresql://ana@127.0.0.1:1/db?sslpassword=s3cret",
        "postgresql://ana:a@s3cret@127.0.0.1:1/db",  # a host s3cret@127.0.0.1, libpq would say
        "postgresql://ana:s3cret/b@127.0.0.1:1/db",  # a port s3cret
        "postgresql://ana:s3cret/db",
        "postgresql://ana:s3cret%ZZ@127.0.0.1:1/db",
        "postgresql://ana:s3cret@[::1/db",
        "postgresql://ana:s3cret s3cret@127.0.0.1:1/db",
        "postgresql://ana@127.0.0.1:1/db?pasword=s3cret",
        "postgresql:ana:s3cret@127.0.0.1/db",
        "postgresql:ana:s3cret",
        "mysql://ana:s3cret@127.0.0.1/db",
        "ana:s3cret@127.0.0.1/db",
        "host=127.0.0.1 port=1 password=s3cret",
        "sqlite:///budget.db?password=s3cret",
    ],
)
def test_a_password_is_nowhere_to_be_seen(url, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", lambda pause: None)  # nobody answers there, however late
    assert "s3cret" in url
    assert "s3cret" not in said_about(url)


def test_what_is_no_password_stays_in_the_url():
    from psycopg.conninfo import conninfo_to_dict

    url = "postgresql://ana:s3cret@db:5433/ledger?sslmode=require&password=more&connect_timeout=3"
    kept = conninfo_to_dict(Ledger.open(url)._store.database.url)
    assert kept == {key: value for key, value in conninfo_to_dict(url).items() if key != "password"}


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_a_new_ledger_is_for_its_owner_only(tmp_path, independent):
    before = os.umask(0o022)
    try:
        ledger = Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}")
        ledger.create("d", independent, 3, 1)
        ledger.backup(tmp_path / "backup.jsonl")
        Ledger.restore(tmp_path / "backup.jsonl", f"sqlite:///{tmp_path / 'again.db'}").datasets()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {"budget.db", "budget.db-wal", "again.db", "backup.jsonl"} <= modes.keys()
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_a_ledger_that_its_owner_shares_stays_shared(tmp_path, independent):
    Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}").create("d", independent, 3, 1)
    (tmp_path / "budget.db").chmod(0o660)
    Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}").create("e", independent, 3, 1)
    assert stat.S_IMODE((tmp_path / "budget.db").stat().st_mode) == 0o660
