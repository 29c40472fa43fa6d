"""Whatever is remembered or not priced again, debits are granted as by an account from scratch."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.checks.ledger_histories import check
from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger import snapshots
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


def test_any_history_is_decided_as_by_an_account_from_scratch():
    """A sample of the full count: shares, growth, keys, backups, spoiled snapshots, a δ."""
    counted = check(12, seed=10**7)
    assert min(counted["granted"], counted["refused"], counted["spoiled"]) > 0


@settings(max_examples=sample(3, full=60), suppress_health_check=QUIET)
@given(data=st.data())
def test_processes_grant_what_fits_an_account_from_scratch(tmp_path_factory, monkeypatch, data):
    """By turns, with a snapshot after every second entry, or none."""
    monkeypatch.setattr(snapshots, "TAIL", data.draw(st.sampled_from([1, 1000])))
    url = f"sqlite:///{tmp_path_factory.mktemp('turns') / 'budget.db'}"
    belief = data.draw(st.sampled_from(BELIEFS))
    budget = data.draw(st.sampled_from([Fraction(1, 2), Fraction(2)]))
    opened = [Ledger.open(url) for _ in range(3)]
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


@given(st.lists(spendings(), max_size=8), st.sampled_from([30_000, 200_000]))
@settings(max_examples=sample(20, full=200))
def test_an_account_is_read_as_it_was_written(asked, length):
    secrets = Secrets.read(BELIEFS[0], length, 1)
    account = Account(secrets).plus(asked)
    again = Account(secrets).restored(json.loads(json.dumps(account.to_body())), secrets)
    assert (again.usage.times == account.usage.times).all()
    assert (again.usage.sums == account.usage.sums).all()
    assert again.usage.total == account.usage.total
    assert again.to_body() == account.to_body()


def test_levels_that_are_safe_everywhere_need_no_sweep(sqlite_url, monkeypatch):
    """And what exceeds them is swept, up to the last bit of the budget."""
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[0], 50_000, 1)
    asked = [Spending.dp(Fraction(1, 1000), 1 + 190 * n, 400 + 190 * n) for n in range(100)]
    ledger.debit_all("d", asked[:90])
    with monkeypatch.context() as patched:
        ledger.debit("d", asked[90])
        patched.setattr(Secrets, "worst", None)
        for one in asked[91:]:
            ledger.debit("d", one)
    assert [entry.content["bound"]["by"] for entry in ledger.log()[-9:]] == ["levels"] * 9
    scratch = Accountant(BELIEFS[0], 50_000)
    scratch.add_all(asked)
    assert ledger.status("d").total == pytest.approx(scratch.epsilon(), rel=2.0**-26)
    with pytest.raises(BudgetExceeded):
        ledger.debit("d", Spending.dp(1, 1, 50_000))
    ledger.debit("d", Spending.dp(0.4, 100, 101))
    assert ledger.log()[-1].content["bound"]["by"] == "priced"
    ledger.verify()


@given(st.sampled_from(BELIEFS), st.lists(spendings(), max_size=40), st.floats(0.3, 3))
@settings(max_examples=sample(15, full=200), suppress_health_check=QUIET, deadline=None)
def test_what_levels_tell_to_fit_does(belief, asked, share):
    """At limits around the total, where it is decided."""
    secrets = Secrets.read(belief, LENGTH, 1)
    account = Account(secrets).plus([one for one in asked for _ in range(3)])
    scratch = Account(secrets).plus([one for one in asked for _ in range(3)])
    limit = scratch.total * Fraction(share)
    bound, by = account.bound(limit)
    assert bound >= scratch.total * (1 - Fraction(1, 2**26)) or bound >= limit
    if by == "levels":
        assert scratch.total <= limit
    assert account.fits(limit) == (scratch.total <= limit)


def test_a_peak_is_the_highest_level_however_it_was_added():
    secrets = Secrets.read(BELIEFS[0], LENGTH, 1)
    account = Account(secrets)
    assert account.max_point_charge == 0
    for n in range(200):
        one = Spending(1 + 37 * n % 1900, 60 + 37 * n % 1900, Fraction(n % 7, 50), Fraction(1, 9))
        account = account.plus([one])
        usage = account.usage
        assert account.max_point_charge == Fraction(int(max(usage.runs.own)), usage.denominator)


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


@pytest.mark.parametrize("kind", ["debit", "allot"])
def test_entries_taken_out_of_the_midst_of_a_log_are_missed_at_once(sqlite_url, tmp_path, kind):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", MarkovChain(P), LENGTH, 1)
        ledger.allot("d", "ana")
        for number in range(6):
            spending = Spending.dp(Fraction(1, 30), 1, 200)
            ledger.debit("d", spending, key=f"{number}").complete("x")
    with closing(sqlite3.connect(tmp_path / "budget.db")) as raw, raw:
        raw.execute("DROP TRIGGER quiltwork_no_delete")
        first = f"(SELECT MIN(seq) FROM quiltwork_entries WHERE kind = '{kind}')"  # noqa: S608
        raw.execute(f"DELETE FROM quiltwork_entries WHERE seq = {first}")  # noqa: S608
    with Ledger.open(sqlite_url) as ledger, pytest.raises(StorageError, match="damaged"):
        ledger.debit("d", Spending.dp(Fraction(1, 50), 1, 200))


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
        ledger._states._recent = dict(lost._states._recent)
        with pytest.raises(BudgetExceeded):
            ledger.debit("d", Spending.dp(Fraction(1, 4), 1, LENGTH))


NUMBERS = itertools.count()
COUNTS = {"histories": 0, "debits": 0, "refused": 0}


@settings(max_examples=sample(12, full=2500), suppress_health_check=QUIET, deadline=None)
@given(data=st.data())
def test_a_fold_is_a_fresh_accountant(ledger, data):
    """Of any history: growth, shares, analysts, keys, refusals, answers, retirement, snapshots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "TAIL", data.draw(st.sampled_from([0, 2, 1000])))
        _check_a_history(ledger, data)


def _check_a_history(ledger, data):
    name, belief = f"d{next(NUMBERS)}", data.draw(st.sampled_from(BELIEFS))
    budget, length = data.draw(st.sampled_from([Fraction(1, 4), Fraction(3)])), 60
    ledger.create(name, belief, length, budget)
    opened = [ledger, Ledger.open(ledger.url)]
    granted: dict[str | None, list[Spending]] = {None: [], "ana": [], "ben": []}
    for step in range(data.draw(st.integers(1, 12))):
        one = data.draw(st.sampled_from(opened))
        match data.draw(st.integers(0, 8)):
            case 0:
                length += 3
                one.extend(name, length)
            case 1:
                with suppress(BudgetExceeded, InvalidInputError):
                    share = data.draw(st.sampled_from([None, Fraction(1, 10), Fraction(1)]))
                    one.allot(name, data.draw(st.sampled_from(["ana", "ben"])), cap=share)
            case 2:
                opened[1] = Ledger.open(ledger.url)
            case _:
                asked = data.draw(spendings(60))
                who = data.draw(st.sampled_from([None, "ana", "ben"]))
                scratch = Accountant(belief, length)
                scratch.add_all([*itertools.chain(*granted.values()), asked])
                try:
                    one.debit(name, asked, f"{step}", who).complete("seen")
                except BudgetExceeded:
                    COUNTS["refused"] += 1
                except InvalidInputError:
                    assert one.status(name).shares
                else:
                    assert scratch.exact_epsilon <= budget * (1 + Fraction(1, 2**26))
                    granted[who].append(asked)
                    COUNTS["debits"] += 1
    COUNTS["histories"] += 1
    scratch = Accountant(belief, length)
    scratch.add_all(itertools.chain(*granted.values()))
    for one in (*opened, Ledger.open(ledger.url)):
        state = one._store.read(lambda log, one=one: one._states.latest(log, name))
        assert state.account.usage.total == scratch._account.usage.total
        assert (state.account.usage.sums == scratch._account.usage.sums).all()
        for who in ("ana", "ben"):
            alone = Accountant(belief, length)
            alone.add_all(granted[who])
            assert state.analyst(who).account.usage.total == alone._account.usage.total
        assert float(one.status(name).exact_total) == pytest.approx(
            float(scratch.exact_epsilon), rel=2.0**-26
        )
        one.close()


def test_the_histories_had_something_to_test():
    if COUNTS["histories"] > 10:
        assert COUNTS["debits"] > COUNTS["histories"]
        assert COUNTS["refused"] > 0
