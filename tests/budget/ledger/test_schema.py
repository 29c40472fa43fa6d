"""A ledger of an older version is brought up to date, with everything in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from quiltwork.budget import Checkpoint, Ledger, Spending
from quiltwork.budget.ledger.databases import database_at
from quiltwork.budget.ledger.entries import Draft, Head, appended, origin
from quiltwork.budget.ledger.schema import VERSION
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from tests.budget.ledger.raw import raw

INSERT = {
    1: "INSERT INTO quiltwork_entries VALUES (?, ?, ?, ?, ?, ?, ?)",
    2: "INSERT INTO quiltwork_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    3: "INSERT INTO quiltwork_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
}


@pytest.fixture(params=[1, 2, 3])
def version(request):
    return request.param


@pytest.fixture
def older(url, independent, tmp_path, version):
    """A ledger as older versions wrote it: debits that compose by another name, no totals or
    others; 1 had no `debit`.
    """
    model = Ledger.open(f"sqlite:///{tmp_path / 'model.db'}")
    model.create("d", independent, 3, 1)
    for number in range(3):
        model.debit("d", Spending.dp(0.1, 1, 3), key=f"k{number}").complete(f"answer {number}")
    model.debit("d", Spending.dp(0.1, 1, 3), key="unanswered")
    database = database_at(url)
    connection = database.connect()
    for statements in database.migrations[:version]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(
        database.sql("INSERT INTO quiltwork_ledger VALUES (1, ?, ?, 'then')"),
        (version, model.checkpoint().ledger_id),
    )
    head = Head(0, origin(model.checkpoint().ledger_id))
    for one in model.log():
        body = one.body.replace('"composes_by":"levels"', '"composes_by":"joint-quilt"')
        e = appended(head, Draft(one.id, one.dataset, one.kind, body))
        head = Head(e.seq, e.hash)
        fields = (e.seq, e.id, e.dataset, e.kind, e.content.get("key"), e.body, e.hash)
        debit = () if version == 1 else (e.content.get("debit"),)
        connection.execute(database.sql(INSERT[version]), (*fields, *debit))
    if version == 3:
        connection.execute("INSERT INTO quiltwork_totals VALUES ('d', '', '{}', 'of another name')")
        connection.execute("INSERT INTO quiltwork_levels VALUES ('d', '', 1, '9 0 0 0')")
    database.close(connection)
    return replace(model.checkpoint(), hash=head.hash)


@pytest.fixture
def version_6(tmp_path):
    """A ledger that the release before wrote: answers, growth, analysts, a refusal, an end."""
    path = tmp_path / "six.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version6.sql").read_text())
    return f"sqlite:///{path}"


def test_a_ledger_of_the_release_before_goes_on_as_it_was(version_6):
    then = Checkpoint(
        "f8c6e1709a6a358836ca2212f562eb57",
        23,
        "7473fe17cfc2361fbc199aea66f1e6da713694fff9b73211e0afe580e89e5065",
    )
    with pytest.raises(StorageError, match="schema version 6"):
        Ledger.open(version_6, read_only=True).status("alone")
    ledger = Ledger.open(version_6)
    assert ledger.verify(then) == then
    assert stored_version(version_6) == VERSION
    totals = {one.dataset: one.total for one in ledger.datasets()}
    assert totals == pytest.approx({"alone": 0.31198794, "shared": 0.98023513, "closed": 0})
    charged = ledger.status("shared").charged
    assert charged == pytest.approx({"ana": 0.311987905, "ben": 0.668247222})
    assert ledger.answer("alone", "k3") == "answer 3"
    assert [ledger.answer("shared", "k0", who) for who in ("ana", "ben")] == ["hers", "his"]
    assert len(ledger.notes()) == 1
    with pytest.raises(BudgetExceeded, match="cap"):
        ledger.debit("shared", Spending.dp(0.1, 1, 50), analyst="ana")
    with pytest.raises(BudgetExceeded, match="retired"):
        ledger.debit("closed", Spending.dp(0.1, 1, 5))
    with pytest.raises(BudgetExceeded, match=r"above the budget of 2"):
        ledger.debit("alone", Spending.dp(0.9, 1, 300))
    ledger.debit("alone", Spending.dp(0.1, 1, 300))
    ledger.verify(then)


def stored_version(url):
    with raw(url) as connection:
        return connection.execute("SELECT version FROM quiltwork_ledger").fetchall()[0][0]


def test_an_older_ledger_is_migrated_when_it_is_opened(url, older, version):
    assert stored_version(url) == version
    ledger = Ledger.open(url)
    assert ledger.verify(older) == older
    assert stored_version(url) == VERSION
    assert [ledger.answer("d", f"k{n}") for n in range(3)] == [f"answer {n}" for n in range(3)]
    assert [d.state for d in ledger.history("d")] == ["released"] * 3 + ["debited"]
    assert {d.composes_by for d in ledger.history("d")} == {"levels"}
    ledger.debit("d", Spending.dp(0.1, 1, 3)).complete("new")
    receipt = ledger.debit("d", Spending.dp(0.1, 1, 3), key="k0")
    assert receipt.stored == "answer 0"
    with pytest.raises(InvalidInputError, match="one answer only"):
        receipt.complete("again")
    ledger.verify(older)


def test_what_an_older_ledger_granted_stays_granted(url, older):
    """Its totals are added up from the entries before anything is granted."""
    with pytest.raises(BudgetExceeded, match=r"to 1\.1, above the budget of 1"):
        Ledger.open(url).debit("d", Spending.dp(0.7, 1, 3))
    ledger = Ledger.open(url)
    assert ledger.status("d").exact_total == Fraction(2, 5)
    ledger.debit("d", Spending.dp(0.6, 1, 3))
    with raw(url) as connection:
        assert len(connection.execute("SELECT * FROM quiltwork_totals").fetchall()) == 1
    assert Ledger.open(url).status("d").exact_total == 1
    ledger.verify(older)


def test_a_migrated_ledger_has_what_a_new_one_has(url, older, tmp_path, independent):
    with Ledger.open(url) as migrated:
        migrated.verify()
    if url.startswith("sqlite"):
        query = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name"
        found = sqlite3.connect(url.removeprefix("sqlite:///")).execute(query).fetchall()
        fresh = Ledger.open(f"sqlite:///{tmp_path / 'fresh.db'}")
        fresh.create("d", independent, 3, 1)
        expected = sqlite3.connect(tmp_path / "fresh.db").execute(query).fetchall()
        assert found == expected
    else:
        with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="final"):
            connection.execute("TRUNCATE quiltwork_entries")


def test_keys_from_before_they_were_an_analysts_own(ledger, url, independent):
    """The column had the key alone then; whoever names nobody learns nothing of it."""
    ledger.create("d", independent, 3, 1)
    spending = Spending.dp(0.1, 1, 3)
    ledger.debit("d", spending, key="monday", analyst="ana").complete("of ana")
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_entries SET key = 'monday' WHERE seq = 2")
    assert ledger.debit("d", spending, key="monday", analyst="ana").stored == "of ana"
    for other in (None, "ben"):
        assert ledger.answer("d", "monday", other) is None
        ledger.debit("d", spending, key="monday", analyst=other).complete(f"of {other}")
        assert ledger.debit("d", spending, key="monday", analyst=other).stored == f"of {other}"
        assert ledger.answer("d", "monday", other) == f"of {other}"
    assert ledger.answer("d", "monday", "ana") == "of ana"
    assert len(ledger.history("d")) == 3
    ledger.verify_since(ledger.verify())


def test_a_ledger_from_the_future_is_refused(ledger, url, independent):
    ledger.create("d", independent, 3, 1)
    with raw(url) as connection:
        connection.execute("UPDATE quiltwork_ledger SET version = version + 1")
    for one in (ledger, Ledger.open(url)):
        with pytest.raises(StorageError, match="newer quiltwork"):
            one.debit("d", Spending.dp(0.1, 1, 3))
