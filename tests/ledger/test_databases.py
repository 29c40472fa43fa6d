"""URLs of ledgers, good and bad."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.ledger import Ledger


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
