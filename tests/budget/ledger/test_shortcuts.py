"""Whatever a debit does not compute again, it is granted as an account from scratch would."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.worst_point import FoundTotal, Secrets, WorstPoint
from quiltwork.budget.ledger import totals
from quiltwork.budget.ledger.account_rows import PLACE, Kept
from quiltwork.budget.ledger.ahead import Ahead, Recent
from quiltwork.budget.ledger.entries import canonical
from quiltwork.budget.ledger.total_rows import seal, sealed
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from tests.sizes import sample

P = [[0.9, 0.1], [0.4, 0.6]]
BELIEFS = (
    MarkovChain(P),
    MarkovChain(P, [0.2, 0.8]),
    ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]]),
)
LENGTH = 2000
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@st.composite
def spendings(draw, length=LENGTH):
    start = draw(st.integers(1, length))
    stop = min(length, start + draw(st.sampled_from([0, 5, 144, length])))
    level = draw(st.sampled_from([Fraction(1, 100), Fraction(1, 30), Fraction(1, 7)]))
    pair = draw(st.sampled_from([0, 0, level])) if stop > start else 0
    once = draw(st.sampled_from([0, 0, Fraction(1, 10**17 - 3)]))
    return Spending(start, stop, level, pair, once)


@settings(max_examples=sample(3, full=60), suppress_health_check=QUIET)
@given(data=st.data())
def test_processes_grant_what_fits_an_account_from_scratch(tmp_path_factory, monkeypatch, data):
    """By turns, with few or many debits ahead of their rows, priced before the lock or under it."""
    monkeypatch.setattr(totals, "MOST", data.draw(st.sampled_from([0, 2, 64])))
    url = f"sqlite:///{tmp_path_factory.mktemp('turns') / 'budget.db'}"
    belief = data.draw(st.sampled_from(BELIEFS))
    budget = data.draw(st.sampled_from([Fraction(1, 2), Fraction(2)]))
    opened = [Ledger.open(url) for _ in range(3)]
    for one in opened:
        first = data.draw(st.booleans())
        one._totals.price_first = lambda name, first=first: first
    opened[0].create("d", belief, LENGTH, budget)
    granted: list[Spending] = []
    for _ in range(data.draw(st.integers(2, 14))):
        one = data.draw(st.sampled_from(opened))
        asked, who = data.draw(spendings()), data.draw(st.sampled_from([None, None, "ana"]))
        scratch = Accountant(belief, LENGTH)
        scratch.add_all([*granted, asked])
        try:
            one.debit("d", asked, analyst=who)
        except BudgetExceeded:
            assert scratch.exact_epsilon > budget * (1 - Fraction(1, 2**26))
        else:
            assert scratch.exact_epsilon <= budget * (1 + Fraction(1, 2**26))
            granted.append(asked)
    scratch = Accountant(belief, LENGTH)
    scratch.add_all(granted)
    for one in (*opened, Ledger.open(url)):
        assert one.status("d").total == pytest.approx(scratch.epsilon(), rel=2.0**-26)
        assert one.status("d").debits == len(granted)
        one.close()
    Ledger.open(url).verify()


@settings(max_examples=sample(8, full=100), suppress_health_check=QUIET)
@given(
    st.sampled_from(BELIEFS),
    st.lists(spendings(), min_size=1, max_size=4),
    st.lists(spendings(), max_size=3),
    spendings(),
)
def test_what_was_priced_before_others_came_is_the_total_after_them(belief, first, others, asked):
    secrets = Secrets.read(belief, LENGTH, 1)
    then = Account(secrets).plus(first)
    assert then.total > 0
    priced = then.plus([asked])
    assert priced.total >= then.total
    now = then.plus(others)
    assert now.total >= then.total
    after = now.plus([asked]).as_priced(now, then, priced)
    scratch = Account(secrets).plus([*first, *others, asked])
    assert float(after.total) == pytest.approx(float(scratch.total), rel=2.0**-26)


def test_a_price_is_taken_over_only_while_its_surroundings_are_the_same():
    secrets = Secrets.read(BELIEFS[0], LENGTH, 1)
    then = Account(secrets).plus([Spending.dp(0.1, 1, LENGTH), Spending.dp(0.2, 900, 1000)])
    asked = Spending.dp(0.01, 100, 110)
    assert then.total > 0
    priced = then.plus([asked])
    assert priced.total > 0
    for other, is_taken in (
        (Spending.dp(0.01, 1900, 1950), True),
        (Spending.dp(0.01, 90, 95), False),
    ):
        now = then.plus([other])
        assert now.total > 0
        assert (now.plus([asked]).as_priced(now, then, priced).known is not None) is is_taken


@given(st.sampled_from(BELIEFS), st.lists(spendings(), min_size=1, max_size=5), spendings())
@settings(max_examples=sample(20, full=200), suppress_health_check=QUIET)
def test_debits_ahead_of_the_rows_bound_what_every_time_point_is_charged(belief, debits, asked):
    secrets = Secrets.read(belief, LENGTH, 1)
    base, rest = Account(secrets).plus(debits[:1]), debits[1:]
    ahead = Ahead(1, base.usage.total, Kept.of(base)[0].peak)
    for number, one in enumerate(rest, start=2):
        ahead = ahead.plus(Recent(number, None, one), ahead.peak_with(base, one))
    full = base.plus(rest)
    assert ahead.total == full.usage.total
    assert ahead.peak >= max(full.usage.runs.own) / Fraction(full.usage.denominator)
    with_it = full.plus([asked]).usage
    assert ahead.peak_with(base, asked) >= max(with_it.runs.own) / Fraction(with_it.denominator)


@given(st.lists(spendings(), max_size=8), st.sampled_from([30_000, 200_000]))
@settings(max_examples=sample(20, full=200))
def test_a_row_holds_what_was_written(asked, length):
    secrets = Secrets.read(BELIEFS[0], length, 1)
    account = Account(secrets).plus(asked)
    kept, row = Kept.of(account)
    again = kept.account({PLACE: row} if row else {}, secrets)
    assert (again.usage.times == account.usage.times).all()
    assert (again.usage.sums == account.usage.sums).all()
    assert again.usage.total == account.usage.total
    assert Kept.of(again) == (kept, row)


def test_a_level_that_is_safe_everywhere_needs_no_sweep(sqlite_url, monkeypatch):
    """And what exceeds it is swept, up to the last bit of the budget."""
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[0], 50_000, 1)
    asked = [Spending.dp(Fraction(1, 1000), 1 + 200 * n, 400 + 200 * n) for n in range(100)]
    ledger.debit_all("d", asked[:90])
    ledger.debit("d", asked[90])
    with monkeypatch.context() as patched:
        patched.setattr(Secrets, "found", None)
        patched.setattr(Secrets, "found_after", None)
        for one in asked[91:]:
            ledger.debit("d", one)
    scratch = Accountant(BELIEFS[0], 50_000)
    scratch.add_all(asked)
    assert ledger.status("d").total == pytest.approx(scratch.epsilon(), rel=2.0**-26)
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", Spending.dp(1, 1, 50_000))
    ledger.debit("d", Spending.dp(0.29, 1, 50_000))
    ledger.verify()


def test_a_series_that_doubles_keeps_its_levels(ledger, url, chain):
    ledger.create("d", chain, 60_000, 5)
    ledger.allot("d", "ana")
    for start in (1, 700, 59_000):
        ledger.debit("d", Spending.dp(0.1, start, start + 500), analyst="ana")
    before = ledger.status("d")
    ledger.extend("d", 140_000)
    for one in (ledger, Ledger.open(url)):
        assert one.status("d").total == pytest.approx(before.total, rel=2.0**-26)
        one.debit("d", Spending.dp(0.1, 139_000, 140_000), analyst="ana")
        assert one.status("d").charged.keys() == {"ana"}
    ledger.verify()


def test_debits_by_the_row_alone_go_into_the_rows_of_levels_later(sqlite_url, monkeypatch):
    """Nobody looks at levels meanwhile, and what is read then is an account from scratch."""
    monkeypatch.setattr(totals, "MOST", 9)
    ledger, other = Ledger.open(sqlite_url), Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[1], LENGTH, 1)
    asked = [Spending.dp(Fraction(1, 10**5), 1 + 30 * n, 90 + 30 * n) for n in range(49)]
    for turn, one in enumerate(asked):
        (ledger, other)[turn % 3 == 1].debit("d", one)
    body = json.loads(ledger._store.read(lambda tables: tables.total("d"))[0])
    assert (body["waiting"], body["count"]) == (9, 40)
    scratch = Accountant(BELIEFS[1], LENGTH)
    scratch.add_all(asked)
    for reader in (ledger, other, Ledger.open(sqlite_url)):
        assert reader.status("d").total == pytest.approx(scratch.epsilon(), rel=2.0**-26)
        assert reader.accountant("d").spendings == tuple(asked)
    ledger.verify()


def test_windows_of_several_runs_go_into_the_rows_for_everybody(tmp_path):
    """Two ledgers on one file take turns; what they know is what all debits add up to."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    turns = [Ledger.open(url), Ledger.open(url)]
    turns[0].create("d", MarkovChain(P), 300, 50)
    made = []
    for at in range(90):
        start = 1 + 7 * at % 230
        one = Spending.dp(0.01, start, start + 44)
        if at % 3 == 0:
            one = replace(one, runs=((start, start + 3), (start + 20, start + 44)))
        turns[at % 7 % 2].debit("d", one)
        made.append(one)
    expected = Account(Secrets.read(MarkovChain(P), 300, 1)).plus(made).total
    assert [one.status("d").exact_total for one in turns] == [expected, expected]
    turns[1].verify()


def test_who_reads_in_the_midst_of_many_debits_changes_nothing(tmp_path, monkeypatch):
    """A thread that looks sees what is committed; the debits go on from what they have made."""
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'b.db'}")
    ledger.create("d", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 100, 1)
    latest = ledger._totals.latest

    def while_others_look(tables, before):
        reader = threading.Thread(target=ledger.status, args=("d",))
        reader.start()
        reader.join()
        return latest(tables, before)

    monkeypatch.setattr(ledger._totals, "latest", while_others_look)
    ledger.debit_all("d", [Spending.dp(0.3, 1, 100)] * 3)
    fresh = Ledger.open(ledger.url)
    assert (fresh.status("d").exact_total, fresh.status("d").debits) == (Fraction(9, 10), 3)
    with pytest.raises(BudgetExceeded):
        fresh.debit("d", Spending.dp(0.3, 1, 100))
    fresh.verify()


def test_levels_with_long_denominators_are_read_by_the_next_process(tmp_path):
    """Seventy levels without a common factor: no float holds their common denominator."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    ledger = Ledger.open(url)
    ledger.create("d", MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 300, 3)
    ledger.allot("d", "ana")
    candidates = (n for n in itertools.count(10**9 + 1) if all(n % q for q in range(2, 500)))
    levels = [Fraction(10**7, n) for n in itertools.islice(candidates, 70)]
    ledger.debit_all("d", [Spending.dp(level, 1, 300) for level in levels], analyst="ana")
    ledger.verify()
    fresh = Ledger.open(url)
    fresh.debit_all("d", [Spending.dp(0.01, 1, 300)], analyst="ana")
    fresh.extend("d", 140_000)
    expected = float(sum(levels)) + 0.01
    assert float(fresh.status("d").exact_total) == pytest.approx(expected, rel=1e-9)
    fresh.verify()


def test_a_dear_request_under_the_key_of_a_cheap_one_that_waits_for_its_answer_is_refused(
    sqlite_url,
):
    cheap = {"schema": "quiltwork/release", "dp_epsilon": Fraction(1, 1000), "start": 1, "stop": 9}
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain(P), LENGTH, 1)
        ledger.debit_all("d", [cheap], keys=["k"])
        with pytest.raises(InvalidInputError, match="another request"):
            ledger.debit_all("d", [{**cheap, "dp_epsilon": 50}], keys=["k"])


@pytest.mark.parametrize("change", [{"budget": "1000000"}, {"peak": "1/31"}, {"most": "1/31"}])
def test_a_row_that_is_changed_and_sealed_again_is_found(sqlite_url, tmp_path, change):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain(P), LENGTH, 1)
        ledger.debit_all("d", [Spending.dp(Fraction(1, 30), 1, 200)])
    with closing(sqlite3.connect(tmp_path / "budget.db")) as raw, raw:
        (text,) = raw.execute("SELECT body FROM quiltwork_totals").fetchone()
        forged = canonical({**json.loads(text), **change})
        raw.execute("UPDATE quiltwork_totals SET body = ?, hash = ?", (forged, seal("d", forged)))
    with (
        Ledger.open(sqlite_url) as ledger,
        pytest.raises(StorageError, match="are not what the entries"),
    ):
        ledger.verify()


def test_debits_taken_out_of_the_log_before_they_were_in_rows_are_missed(sqlite_url, tmp_path):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain(P), LENGTH, 1)
        for number in range(6):
            spending = Spending.dp(Fraction(1, 30), 1, 200)
            ledger.debit("d", spending, key=f"{number}").complete("x")
    with closing(sqlite3.connect(tmp_path / "budget.db")) as raw, raw:
        raw.execute("DROP TRIGGER quiltwork_no_delete")
        last = "(SELECT MAX(seq) FROM quiltwork_entries WHERE kind = 'debit')"
        raw.execute(f"DELETE FROM quiltwork_entries WHERE kind = 'debit' AND seq < {last}")  # noqa: S608
    with Ledger.open(sqlite_url) as ledger, pytest.raises(StorageError, match="were taken out"):
        ledger.debit("d", Spending.dp(Fraction(1, 5), 1, 200))


def test_levels_of_any_denominators_add_up_in_a_short_row(sqlite_url):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain(P), LENGTH, 10)
        for number in range(12):
            level = Fraction(10**250, 10**253 + 2 * number + 1)
            ledger.debit("d", Spending.dp(level, 1, 5))
        assert ledger.verify().count == 13


def test_what_was_never_committed_prices_nothing(sqlite_url, tmp_path):
    """Another process begins a dataset of the same name and number, with a smaller budget."""
    with Ledger.open(sqlite_url) as ledger, Ledger.open(f"sqlite:///{tmp_path / 'b.db'}") as lost:
        for one, belief, budget in (
            (lost, MarkovChain(P), 50),
            (ledger, MarkovChain([[0.99, 0.01], [0.01, 0.99]]), 1),
        ):
            one.create("d", belief, LENGTH, budget)
        lost.status("d")
        ledger._totals._known = dict(lost._totals._known)
        with pytest.raises(BudgetExceeded):
            ledger.debit("d", Spending.dp(Fraction(1, 4), 1, LENGTH))


def test_a_worst_point_without_bound_is_not_written_down(sqlite_url):
    """Next to a state that is never left a part of the leakage may be infinite, and JSON is not."""
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain([[1, 0], [0.5, 0.5]], [0.3, 0.7]), 40, 1)
        state = ledger._store.read(lambda tables: ledger._totals.found(tables, "d"))
    worst = WorstPoint(Fraction(1, 2), 3, 0.1, math.inf, 0.1, ())
    for one in (worst, replace(worst, before=1.0)):
        text, _ = sealed(replace(state, found=FoundTotal(one, Fraction(1))))
        assert (json.loads(text)["found"] is None) == (one is worst)
