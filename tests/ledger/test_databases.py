"""URLs of ledgers, good and bad."""

from __future__ import annotations

import sys

import pytest

from quiltwork.errors import InvalidInputError, UnsupportedError
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
    from quiltwork.errors import StorageError

    for question in (Ledger.datasets, Ledger.verify, Ledger.checkpoint):
        with pytest.raises(StorageError, match="There is no ledger"):
            question(Ledger.open(f"sqlite:///{tmp_path / 'none.db'}"))
    assert list(tmp_path.iterdir()) == []


def test_postgresql_without_psycopg_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnsupportedError, match="quiltwork\\[postgres\\]"):
        Ledger.open("postgresql://localhost/ledger")
