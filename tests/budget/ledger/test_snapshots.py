"""What a process remembers, and what it reads from a snapshot, is what the log adds up to."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.faults.raw import raw
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.ledger import snapshots
from quiltwork.budget.ledger.entries import canonical
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError, UnsupportedError


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Snapshots are written after every third entry, so that these short histories have some."""
    monkeypatch.setattr(snapshots, "TAIL", 2)


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
        again = Usage.of_rises(usage.denominator, *usage.rises())
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


@pytest.fixture
def nearly_spent(ledger, url, independent):
    """0.9 of 1, of which ana, who may use 0.6, was charged 0.5; the snapshot lacks the last."""
    ledger.create("d", independent, 4, 1)
    ledger.debit("d", Spending.dp(0.4, 2, 4))
    ledger.allot("d", "ana", cap=0.6)
    ledger.allot("d", "ben")
    ledger.debit("d", Spending.dp(0.3, 1, 4), analyst="ana")
    ledger.register("d", "some data")
    ledger.debit("d", Spending.dp(0.2, 1, 4), analyst="ana")
    with raw(url) as connection:
        (body,) = connection.execute("SELECT body FROM quiltwork_snapshots").fetchall()
        assert json.loads(body[0])["steps"] == 6
    return ledger


DAMAGE = [
    "DELETE FROM quiltwork_snapshots",
    "UPDATE quiltwork_snapshots SET body = '{}'",
    "UPDATE quiltwork_snapshots SET body = 'x'",
    "UPDATE quiltwork_snapshots SET digest = 'x'",
    "UPDATE quiltwork_snapshots SET dataset = 'e'",
    "UPDATE quiltwork_snapshots SET body = replace(body, '\"over\":10', '\"over\":100')",
    'UPDATE quiltwork_snapshots SET body = replace(body, \'"charged":"3/10"\', \'"charged":"0"\')',
]


def sealed(url, change):
    """Change a snapshot and its digest with it, as somebody would who knows how."""
    with raw(url) as connection:
        (text,) = connection.execute("SELECT body FROM quiltwork_snapshots").fetchone()
        body = canonical(change(json.loads(text)))
        row = f"'{body}', digest = '{snapshots._digest('d', body)}'"
        connection.execute(f"UPDATE quiltwork_snapshots SET body = {row}")  # noqa: S608


@pytest.mark.parametrize("statement", DAMAGE)
def test_damaged_snapshots_grant_nothing_and_accuse_nobody(nearly_spent, url, statement):
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


UNREADABLE = [
    {"head": [3, "0" * 64]},
    {"head": [99, "0" * 64]},
    {"head": None},
    {"created": 2},
    {"created": "1"},
    {"length": None},
    {"analysts": []},
    {"account": {}},
]


@pytest.mark.parametrize("change", UNREADABLE)
def test_a_sealed_snapshot_that_is_none_of_this_log_is_not_used(nearly_spent, url, change):
    sealed(url, lambda body: {**body, **change})
    cold = Ledger.open(url)
    assert cold.status("d").exact_total == Fraction(9, 10)
    with pytest.raises(BudgetExceeded):
        cold.debit("d", Spending.dp(0.2, 1, 4), analyst="ben")
    cold.verify()
    with raw(url) as connection:
        (text,) = connection.execute("SELECT body FROM quiltwork_snapshots").fetchone()
    assert json.loads(text)["steps"] == 7  # written anew by verify


def test_verify_finds_what_a_forged_snapshot_granted(nearly_spent, url):
    """Whoever can seal a snapshot can have too much granted once; the log tells."""

    def forged(body):
        usage = {"over": 1, "steps": [], "rises": [[], [], [], []], "narrowest": None}
        return {**body, "account": {**body["account"], "usage": usage}}

    nearly_spent.verify()
    sealed(url, forged)
    fooled = Ledger.open(url)
    fooled.debit("d", Spending.dp(0.5, 1, 4), analyst="ben")
    for one in (fooled, Ledger.open(url), Ledger.open(url, read_only=True)):
        with pytest.raises(StorageError, match=r"it records that everything .* 1\.4 together"):
            one.verify()


@pytest.fixture
def capped_away(ledger, url, independent):
    """Of a cap of 0.4, ana was granted 0.6 by a snapshot that was forged, and is gone again."""
    ledger.create("d", independent, 4, 2)
    ledger.allot("d", "ana", cap=0.4)
    ledger.allot("d", "ben")
    ledger.debit("d", Spending.dp(0.3, 1, 1), analyst="ana")
    before = ledger.checkpoint()

    def forged(body):
        body["analysts"]["ana"]["share"]["cap"] = "2"
        return body

    sealed(url, forged)
    with Ledger.open(url) as fooled:
        fooled.debit("d", Spending.dp(0.3, 1, 1), analyst="ana")
    with raw(url) as connection:
        connection.execute("DELETE FROM quiltwork_snapshots")
    return Ledger.open(url), before


def test_a_cap_that_was_forged_away_for_a_while_is_found(capped_away):
    """Until its owner says that she may have so much."""
    ledger, before = capped_away

    def check(match=None):
        for verify in (ledger.verify, lambda: ledger.verify_since(before)):
            if match is None:
                verify()
            else:
                with pytest.raises(StorageError, match=match):
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


def test_a_snapshot_of_an_earlier_moment_is_added_to(sqlite_url, independent):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 4, 1)
    for _ in range(3):
        ledger.debit("d", Spending.dp(0.1, 1, 4))
    with raw(sqlite_url) as connection:
        connection.execute("CREATE TABLE older AS SELECT * FROM quiltwork_snapshots")
    for _ in range(6):
        ledger.debit("d", Spending.dp(0.1, 1, 4))
    with raw(sqlite_url) as connection:
        assert connection.execute("SELECT count(*) FROM older").fetchone()[0] == 1
        connection.execute("DELETE FROM quiltwork_snapshots")
        connection.execute("INSERT INTO quiltwork_snapshots SELECT * FROM older")
    cold = Ledger.open(sqlite_url)
    with pytest.raises(BudgetExceeded):
        cold.debit("d", Spending.dp(0.2, 1, 4))
    assert cold.status("d").exact_total == Fraction(9, 10)
    cold.verify()


def test_a_snapshot_is_written_when_the_tail_is_long_and_a_tenth_of_all(
    sqlite_url, independent, monkeypatch
):
    monkeypatch.setattr(snapshots, "TAIL", 10)
    ledger, seen = Ledger.open(sqlite_url), []
    ledger.create("d", independent, 4, 1)
    for _ in range(300):
        ledger.debit("d", Spending.dp(1e-6, 1, 4))
        with raw(sqlite_url) as connection:
            row = connection.execute("SELECT body FROM quiltwork_snapshots").fetchone()
        seen.append(0 if row is None else json.loads(row[0])["steps"])
    steps = sorted(set(seen))
    assert steps[:4] == [0, 11, 22, 33]
    assert all(b - a == max(10, b // 10) + 1 for a, b in pairwise(steps))
    assert 15 < len(steps) < 30


def test_what_a_new_process_reads_does_not_grow_with_the_history(sqlite_url, chain, monkeypatch):
    """Its statements are counted; entries come by pages of a thousand."""
    counts = []
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", chain, 40, 99)
        for history in (300, 3000):
            ledger.debit_all("d", [Spending.dp(1e-6, 1 + n % 9, 20) for n in range(history)])
            cold, seen = Ledger.open(sqlite_url), []
            database = cold._store.database
            usual = database.connect

            def connect(usual=usual, seen=seen):
                connection = usual()
                connection.set_trace_callback(seen.append)
                return connection

            database.connect = connect
            cold.debit("d", Spending.dp(1e-6, 1, 20))
            counts.append(len(seen))
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


def test_who_sees_less_than_was_written_since_adds_nothing_up_again(ledger, chain, monkeypatch):
    """A reader's transaction may have begun before a debit that this process has made."""
    monkeypatch.setattr(snapshots, "TAIL", 10**6)
    ledger.create("d", chain, 30, 50)
    for number in range(30):
        ledger.debit("d", Spending.dp(Fraction(1, 1000), 1, 30 - number % 3))
    fold, counts = snapshots.fold, []

    def counted(state, entries, account=None):
        found = list(entries)
        counts.append(len(found))
        return fold(state, found, account)

    monkeypatch.setattr(snapshots, "fold", counted)

    def behind(log):
        before = ledger._states.latest(log, "d").steps
        in_another_thread(lambda: ledger.debit("d", Spending.dp(Fraction(1, 1000), 1, 30)))
        return before, ledger._states.latest(log, "d").steps

    for _ in range(3):
        before, still = ledger.store.read(behind)
        assert before == still
    assert sum(counts) <= 2 * 3, counts
    assert ledger.status("d").debits == 33


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
