"""Totals that are kept beside the log are those of the log, or are not used."""

from __future__ import annotations

import json
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.ledger import totals
from quiltwork.budget.ledger.account_rows import digest
from quiltwork.budget.ledger.entries import canonical
from quiltwork.budget.ledger.total_rows import seal
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError, UnsupportedError
from tests.budget.ledger.raw import raw


def some_spending(draw: np.random.Generator, length: int) -> Spending:
    start, stop = sorted(draw.integers(1, length + 1, 2).tolist())
    charges = [
        Fraction(int(draw.integers(4)), int(draw.choice((1000, 999, 2**53 - 1)))) for _ in range(3)
    ]
    return Spending(start, stop, *charges)


def same_total(one: Fraction, other: Fraction) -> bool:
    """Sweeps round up, and not always by the same: compiled ones by other amounts."""
    return abs(one - other) <= other / 2**30


def test_a_usage_is_its_corners():
    draw = np.random.default_rng(7)
    for _ in range(100):
        usage = Usage()
        for _ in range(draw.integers(10)):
            usage = usage.plus(some_spending(draw, 14))
        again = Usage.of_rises(usage.denominator, *usage.rises(0, len(usage.times)))
        assert again.total == usage.total
        for first in range(1, 16):
            for last in range(first, 16):
                assert again.charge(first, last) == usage.charge(first, last)


def test_a_reopened_ledger_has_the_totals_of_the_one_that_wrote(ledger, url, chain):
    """Debits of every shape, analysts, growth; each total as an accountant of its own has it."""
    draw = np.random.default_rng(1)
    ledger.create("d", chain, 30, 50)
    for who, cap in (("ana", 40), ("ben", None), ("cai", None)):
        ledger.allot("d", who, cap=cap)
    reference, alone, length = Accountant(chain, 30), Accountant(chain, 30), 30
    for step in range(12):
        if step % 4 == 3:
            length += 5
            ledger.extend("d", length)
            reference.extend(length)
            alone.extend(length)
        asked, who = some_spending(draw, length), ("ana", "ben", "cai")[step % 3]
        (Ledger.open(url) if step % 2 else ledger).debit("d", asked, analyst=who)
        reference.record(asked)
        if who == "ana":
            alone.record(asked)
        for one in (ledger, Ledger.open(url)):
            assert same_total(one.status("d").exact_total, reference.exact_epsilon)
    cold = Ledger.open(url)
    assert cold.accountant("d").spendings == reference.spendings
    assert cold.accountant("d").to_body()["spendings"] == reference.to_body()["spendings"]
    assert cold.status("d").charged == ledger.status("d").charged
    assert (
        sum(debit.charge for debit in cold.history("d") if debit.analyst == "ana")
        == cold.status("d").charged["ana"]
    )
    cold.allot("d", "ana", cap=alone.exact_epsilon + Fraction(1, 10**9))
    with pytest.raises(BudgetExceeded, match="above the cap"):
        Ledger.open(url).debit("d", Spending.dp(1e-6, 1, length), analyst="ana")
    cold.verify()


def test_denominators_of_any_size_are_kept(sqlite_url, independent):
    """Beyond 1024 bits charges are rounded up, which a reopened ledger does not do again."""
    draw = np.random.default_rng(3)
    ledger, reference = Ledger.open(sqlite_url), Accountant(independent, 9)
    ledger.create("d", independent, 9, 99)
    exact = Fraction(0)
    for _ in range(30):
        level = Fraction(1, int(draw.integers(2**52, 2**53)) | 1)
        Ledger.open(sqlite_url).debit("d", Spending.dp(level, 1, 9))
        reference.record(Spending.dp(level, 1, 9))
        exact += level
    found = Ledger.open(sqlite_url).status("d").exact_total
    assert found == reference.exact_epsilon
    assert 0 <= found - exact < Fraction(1, 2**250)
    ledger.verify()


def test_releases_by_other_theorems_are_kept(ledger, url, chain):
    ledger.create("d", chain, 30, 1)
    ledger.debit("d", Spending.dp(0.01, 1, 30))
    general = Spending(
        1, 30, composes_by="general", epsilon=Fraction(1, 7), divergence=Fraction(1, 30)
    )
    Ledger.open(url).debit("d", general)
    reference = Accountant(chain, 30)
    reference.record(Spending.dp(0.01, 1, 30), general)
    cold = Ledger.open(url)
    assert cold.status("d").exact_total == reference.exact_epsilon
    with pytest.raises(UnsupportedError, match=r"Theorem 3\.6"):
        cold.debit("d", Spending.dp(0.01, 1, 30))
    cold.debit("d", general)
    cold.verify()


@pytest.fixture(params=[0, 64], ids=["in rows", "ahead of rows"])
def nearly_spent(ledger, independent, monkeypatch, request):
    """0.9 of 1, of which ana, who may use 0.6, was charged 0.5."""
    monkeypatch.setattr(totals, "MOST", request.param)
    ledger.create("d", independent, 4, 1)
    ledger.debit("d", Spending.dp(0.4, 2, 4))
    ledger.allot("d", "ana", cap=0.6)
    ledger.allot("d", "ben")
    ledger.debit("d", Spending.dp(0.5, 1, 4), analyst="ana")
    return ledger


DAMAGE = [
    "DELETE FROM quiltwork_totals",
    "DELETE FROM quiltwork_totals WHERE analyst = ''",
    "DELETE FROM quiltwork_totals WHERE analyst = 'ana'",
    "DELETE FROM quiltwork_levels",
    "DELETE FROM quiltwork_levels WHERE time = 0",
    "DELETE FROM quiltwork_levels WHERE analyst = 'ana'",
    "UPDATE quiltwork_levels SET change = '1000 bAAEAAAA=' WHERE time = 0",
    "UPDATE quiltwork_levels SET change = 'x' WHERE time = 0",
    "UPDATE quiltwork_levels SET time = time + 1000",
    "INSERT INTO quiltwork_levels VALUES ('d', '', 3, '2 bAf8AAAA=')",
    "UPDATE quiltwork_totals SET body = '{}'",
    "UPDATE quiltwork_totals SET body = 'x'",
    "UPDATE quiltwork_totals SET hash = 'x'",
    "UPDATE quiltwork_totals SET body = replace(body, '\"denominator\":10', '\"denominator\":100')",
    'UPDATE quiltwork_totals SET body = replace(body, \'"charged":"1/2"\', \'"charged":"0"\')',
    "UPDATE quiltwork_totals SET body = replace(body, '\"length\":4', '\"length\":400')",
]


@pytest.mark.parametrize("statement", DAMAGE)
def test_damaged_totals_never_grant(nearly_spent, url, statement):
    with raw(url) as connection:
        connection.execute(statement)
    for one in (Ledger.open(url), nearly_spent):
        assert one.status("d").exact_total == Fraction(9, 10)
        assert one.status("d").charged == {"ana": Fraction(1, 2)}
    cold = Ledger.open(url)
    with pytest.raises(BudgetExceeded):
        cold.debit("d", Spending.dp(0.2, 1, 4), analyst="ben")
    with pytest.raises(BudgetExceeded, match="cap"):
        cold.debit("d", Spending.dp(0.15, 1, 1), analyst="ana")
    cold.debit("d", Spending.dp(0.1, 1, 4), analyst="ben")
    assert Ledger.open(url).status("d").exact_total == 1
    cold.verify()


@pytest.fixture
def forged_away(ledger, url, independent):
    """Of a cap of 0.4, ana was granted 0.6 by a row that was forged, and is as it was again."""
    ledger.create("d", independent, 4, 2)
    ledger.allot("d", "ana", cap=0.4)
    ledger.debit("d", Spending.dp(0.3, 1, 1), analyst="ana")
    before = ledger.checkpoint()
    with raw(url) as connection:
        find = "SELECT body FROM quiltwork_totals ORDER BY analyst"
        own, hers = (json.loads(body) for (body,) in connection.execute(find).fetchall())
        forged = canonical({**hers, "cap": "2"})
        text = canonical({**own, "analysts": f"{digest({'ana': forged}):064x}"})
        put = "UPDATE quiltwork_totals SET body = '{}', hash = '{}' WHERE analyst = '{}'"
        connection.execute(put.format(forged, "", "ana"))
        connection.execute(put.format(text, seal("d", text), ""))
    with Ledger.open(url) as fooled:
        fooled.debit("d", Spending.dp(0.3, 1, 1), analyst="ana")
    with raw(url) as connection:
        connection.execute("DELETE FROM quiltwork_totals")
        connection.execute("DELETE FROM quiltwork_levels")
    return Ledger.open(url), before


def test_a_cap_that_was_forged_away_for_a_while_is_found(forged_away):
    """Until its owner says that she may have so much."""
    ledger, before = forged_away

    def check(match=None):
        for verify in (ledger.verify, lambda: ledger.verify_since(before)):
            with nullcontext() if match is None else pytest.raises(StorageError, match=match):
                verify()

    check(r"'ana' was granted 0\.6.* above the cap of 0\.4,")
    ledger.allot("d", "ana", cap=0.59)
    check(r"above the cap of 0\.59")
    ledger.allot("d", "ana", cap=0.6)
    check()
    ledger.allot("d", "ben", cap=0.5)
    ledger.debit("d", Spending.dp(0.4, 1, 1), analyst="ben")
    ledger.allot("d", "ben", cap=0.1)  # which he has had already
    check()


FORGED = [("denominator", 0), ("safe", "-1"), ("others", "-1"), ("most", "-1"), ("all", "-1")]


@pytest.mark.parametrize(("field", "value"), [*FORGED, ("analysts", None), ("length", None)])
def test_a_sealed_row_that_says_what_is_never_written_is_not_used(
    sqlite_url, independent, field, value
):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", independent, 4, 1)
        ledger.debit("d", Spending.dp(0.9, 1, 4))
    with raw(sqlite_url) as connection:
        find = "SELECT body FROM quiltwork_totals"
        text = canonical({**json.loads(connection.execute(find).fetchone()[0]), field: value})
        new = text, seal("d", text)
        connection.execute("UPDATE quiltwork_totals SET body = ?, hash = ?", new)
    with pytest.raises(StorageError, match="will, by whoever debits next, be set right"):
        Ledger.open(sqlite_url, read_only=True).verify()
    ledger = Ledger.open(sqlite_url)
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", Spending.dp(0.2, 4, 4))
    ledger.debit("d", Spending.dp(0.1, 4, 4))
    ledger.verify()


def test_wrong_totals_are_found_and_set_right_by_verify(nearly_spent, url):
    for statement in DAMAGE[1:]:
        with raw(url) as connection:
            connection.execute(statement)
        if "analyst = ''" not in statement:
            with pytest.raises(StorageError, match="the totals have been set right"):
                Ledger.open(url).verify()
        Ledger.open(url).verify()
        nearly_spent.allot("d", "ana", cap=0.6)  # writes totals that were missing


def test_totals_of_an_earlier_moment_are_not_taken_for_the_present(sqlite_url, independent):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 4, 1)
    ledger.debit("d", Spending.dp(0.4, 1, 4))
    with raw(sqlite_url) as connection:
        connection.execute("CREATE TABLE totals AS SELECT * FROM quiltwork_totals")
        connection.execute("CREATE TABLE levels AS SELECT * FROM quiltwork_levels")
    ledger.debit("d", Spending.dp(0.5, 1, 4))
    with raw(sqlite_url) as connection:
        connection.execute("DELETE FROM quiltwork_totals")
        connection.execute("DELETE FROM quiltwork_levels")
        connection.execute("INSERT INTO quiltwork_totals SELECT * FROM totals")
        connection.execute("INSERT INTO quiltwork_levels SELECT * FROM levels")
    cold = Ledger.open(sqlite_url)
    with pytest.raises(BudgetExceeded):
        cold.debit("d", Spending.dp(0.5, 1, 4))
    assert cold.status("d").exact_total == Fraction(9, 10)


def test_what_a_debit_writes_does_not_grow_with_the_history(sqlite_url, chain):
    """Nor does what a new process reads: statements are counted, and the rows they return."""
    counts = []
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", chain, 40, 99)
        for history in (300, 600):
            ledger.debit_all("d", [Spending.dp(1e-6, 1 + n % 9, 20) for n in range(history)])
            ledger.debit("d", Spending.dp(1e-6, 1, 20))
            cold, seen = Ledger.open(sqlite_url), []
            database = cold._store.database
            usual = database.connect

            def connect(usual=usual, seen=seen):
                connection = usual()
                connection.set_trace_callback(seen.append)
                return connection

            database.connect = connect
            cold.debit("d", Spending.dp(1e-6, 1, 20))
            rows = cold._store.read(lambda tables: len(tables.levels("d", "")))
            counts.append((len(seen), rows))
            cold.close()
    assert counts[0] == counts[1]


def test_debits_made_together_are_those_made_one_by_one(ledger, chain):
    draw = np.random.default_rng(11)
    asked = [some_spending(draw, 30) for _ in range(12)]
    total = Accountant(chain, 30).cost_after(*asked)
    for name, budget in (("one", 2 * total), ("all", 2 * total), ("tight", total * 0.99)):
        ledger.create(name, chain, 30, budget)
    for spending in asked:
        ledger.debit("one", spending)
    ledger.debit_all("all", asked)
    assert ledger.status("all").exact_total == ledger.status("one").exact_total
    with pytest.raises(BudgetExceeded, match="Nothing was recorded"):
        ledger.debit_all("tight", asked)
    assert ledger.history("tight") == ()
    ledger.allot("all", "ana", reserved=total * 0.9)
    with pytest.raises(BudgetExceeded, match="reserved"):
        ledger.debit_all("all", asked[:6], analyst="ben")
    ledger.retire("one")
    with pytest.raises(BudgetExceeded, match="retired"):
        ledger.debit_all("one", asked)
    ledger.verify()


def test_debits_under_keys_are_made_together_once_and_found_again(ledger, independent):
    ledger.create("d", independent, 4, 1)
    asked, keys = [Spending.dp(0.3, 1, 2), Spending.dp(0.3, 3, 4)], ["monday", "tuesday"]
    first, second = ledger.debit_all("d", asked, "ana", keys)
    second.complete("2")
    again = ledger.debit_all("d", asked, "ana", keys)
    assert [(one.number, one.stored) for one in again] == [
        (first.number, None),
        (second.number, "2"),
    ]
    assert len(ledger.history("d")) == 2
    for others, names, problem in (
        (asked[::-1], keys, "another request"),
        (asked, ["monday", "friday"], "1 of the 2 keys"),
        (asked, ["friday", "friday"], "as many different keys"),
        (asked, ["friday"], "as many different keys"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            ledger.debit_all("d", others, "ana", names)
    assert ledger.status("d").exact_total == Fraction(3, 10)
    ledger.verify()


def test_a_debit_that_is_undone_leaves_no_totals(ledger, url, independent):
    ledger.create("d", independent, 4, 1)
    with pytest.raises(BudgetExceeded):
        ledger.debit_all("d", [Spending.dp(0.6, 1, 4)] * 2)
    assert ledger.status("d").exact_total == 0
    ledger.debit("d", Spending.dp(1, 1, 4))
    assert Ledger.open(url).status("d").exact_total == 1


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_others_wrote_is_added_to_what_is_known(tmp_path_factory, chain, data):
    """Processes that take turns find, after each step, what one that reads all rows anew finds."""
    url = f"sqlite:///{tmp_path_factory.mktemp('turns') / 'budget.db'}"
    with Ledger.open(url) as first, Ledger.open(url) as second:
        first.create("d", chain, 8, 50)
        length = 8
        for _ in range(data.draw(st.integers(1, 12))):
            one = data.draw(st.sampled_from([first, second]))
            match data.draw(st.integers(0, 5)):
                case 0:
                    length += 1
                    one.extend("d", length)
                case 1:
                    one.allot("d", data.draw(st.sampled_from(["ana", "ben"])), reserved=0.5)
                case _:
                    start, stop = sorted(data.draw(st.tuples(*[st.integers(1, length)] * 2)))
                    level = data.draw(st.fractions(Fraction(1, 30), 1, max_denominator=30))
                    who = data.draw(st.sampled_from([None, "ana", "ben"]))
                    one.debit("d", Spending.dp(level, start, stop), analyst=who)
            if data.draw(st.booleans()):
                assert second.status("d") == first.status("d")
        with Ledger.open(url) as anew:
            for one in (first, second):
                assert one.status("d") == anew.status("d")
                for who in ("ana", "ben"):
                    asked = Spending.dp(Fraction(1, 7), 1, length)
                    assert one.preview("d", asked, who) == anew.preview("d", asked, who)
            anew.verify()
