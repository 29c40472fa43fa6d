"""Ledgers that promise (ε, δ): caps fixed when a dataset begins, and debits that are additions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.accounting import caps
from quiltwork.budget.ledger import snapshots
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError, UnsupportedError

NAME, LENGTH = "steps", 100


@pytest.fixture
def opened(ledger, chain):
    ledger.create(NAME, chain, LENGTH, 1, delta=1e-6)
    return ledger


def test_debits_add_squares_up_to_the_cap_that_an_account_has(opened, chain):
    account = qw.Accountant(chain, LENGTH, 1, delta=1e-6)
    cap = account.profile().cap
    assert opened.status(NAME).total == 0
    spent = np.zeros(LENGTH)
    for start, stop, share in ((1, 60, 0.5), (41, 100, 0.25), (50, 55, 0.125)):
        level = math.sqrt(share) * cap
        opened.accountant(NAME).spend(gdp=level, start=start, stop=stop)
        account.spend(gdp=level, start=start, stop=stop)
        spent[start - 1 : stop] += share
    status = opened.status(NAME)
    assert (status.total, status.budget, status.delta) == (1, 1, 1e-6)
    assert status.used == account.used == pytest.approx(spent.max(), rel=1e-9)
    assert status.remaining == pytest.approx(1 - spent.max(), rel=1e-9)
    assert opened.accountant(NAME).largest_next(56, 60) == account.largest_next(56, 60)
    assert opened.accountant(NAME).used == account.used
    assert [debit.spending for debit in opened.history(NAME)] == list(account.spendings)
    opened.accountant(NAME).spend(gdp=account.largest_next(1, 40), start=1, stop=40)
    with pytest.raises(BudgetExceeded, match="above the squares that ε = 1 and δ = 1e-06 allow"):
        opened.accountant(NAME).spend(rho=1e-6, start=40, stop=50)
    assert opened.verify().count == len(opened.log())


def test_a_pure_level_is_refused_with_what_a_pure_ledger_would_grant(opened, chain, url):
    said = r"0\.05\d+ on every time point .* pure ε = 1 grants 0\.29\d+\. Keep a share"
    with pytest.raises(BudgetExceeded, match=said):
        opened.accountant(NAME).spend(dp_epsilon=0.06)
    opened.create("both", chain, LENGTH, 1, delta=1e-6, pure=0.1)
    opened.accountant("both").spend(dp_epsilon=0.1)
    opened.accountant("both").spend(gdp=0.05)
    with pytest.raises(BudgetExceeded):
        opened.accountant("both").spend(dp_epsilon=0.001)
    opened.create("pure", chain, LENGTH, 1)
    with pytest.raises(UnsupportedError, match="no pure level"):
        opened.accountant("pure").spend(rho=1e-4)
    assert Ledger.open(url).status("both").used == 1


def test_shares_of_analysts_are_shares_of_the_squares(opened):
    cap = opened.accountant(NAME).profile().cap
    quarter = opened.allot(NAME, "ana", cap=0.25, reserved=0.25)
    assert quarter.shares["ana"].cap == Fraction(1, 4)
    opened.allot(NAME, "ben")
    opened.accountant(NAME, "ana").spend(gdp=cap / 2 * (1 - 1e-9))
    assert opened.status(NAME).charged["ana"] == pytest.approx(0.25)
    with pytest.raises(BudgetExceeded, match=r"to 26 %, above the cap of 25 %"):
        opened.accountant(NAME, "ana").spend(gdp=cap / 10)
    opened.accountant(NAME, "ben").spend(gdp=cap * 0.8)
    with pytest.raises(BudgetExceeded, match="is left"):
        opened.accountant(NAME, "ben").spend(gdp=cap * 0.4)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        opened.allot(NAME, "cy", cap=2)
    with pytest.raises(BudgetExceeded, match="neither spent nor reserved"):
        opened.allot(NAME, "cy", reserved=0.5)
    opened.verify()


def test_others_leave_what_is_reserved(opened):
    cap = opened.accountant(NAME).profile().cap
    opened.allot(NAME, "ana", reserved=0.5)
    with pytest.raises(BudgetExceeded, match=r"50 % of the squares .* is reserved"):
        opened.accountant(NAME).spend(gdp=cap * 0.75)
    quote = opened.preview(NAME, Spending.gaussian(1, 50, gdp=cap / 2))
    assert quote.fits
    assert quote.after == pytest.approx(0.25)
    assert "from 0 % to 25" in quote.explain()
    opened.accountant(NAME).spend(gdp=cap * 0.7)
    opened.accountant(NAME, "ana").spend(gdp=cap * 0.7)


def test_growing_is_free_under_a_cap_for_every_length(opened, chain):
    assert opened.accountant(NAME).profile().cap == pytest.approx(0.0711, rel=2e-3)
    opened.accountant(NAME).spend(gdp=opened.accountant(NAME).largest_next())
    assert opened.extend(NAME, 10**6).length == 10**6
    opened.accountant(NAME).spend(gdp=opened.accountant(NAME).largest_next(101), start=101)
    assert opened.status(NAME).used == pytest.approx(1, rel=1e-9)
    stuck = qw.MarkovChain(np.eye(2), initial=[0.5, 0.5])
    opened.create("stuck", stuck, 10, 1, delta=1e-6)
    with pytest.raises(UnsupportedError, match="holds for 10 time points"):
        opened.extend("stuck", 11)
    opened.verify()


def test_a_state_read_from_a_snapshot_is_that_of_all_entries(ledger, url, monkeypatch):
    monkeypatch.setattr(snapshots, "TAIL", 2)
    series = qw.GaussianSeries(ar=[0.8], within=1)
    ledger.create("numbers", series, 30, 3, delta=1e-6)
    account = qw.Accountant(series, 30, 3, delta=1e-6)
    for start, stop, sigma in ((1, 30, 40), (5, 12, 11), (12, 12, 7), (2, 9, 20), (3, 4, 50)):
        one = Spending.of_gaussian(queries.sum(0, 1).on(start, stop), sigma, 30)
        ledger.debit("numbers", one)
        account.add(one)
    fresh = Ledger.open(url)
    assert fresh.status("numbers").used == account.used
    fresh.extend("numbers", 40)
    account.extend(40)
    fresh.debit("numbers", Spending.of_gaussian(queries.sum(0, 1).on(30, 40), 60, 40))
    account.add(Spending.of_gaussian(queries.sum(0, 1).on(30, 40), 60, 40))
    assert Ledger.open(url).status("numbers").used == account.used
    with pytest.raises(UnsupportedError, match="only sums and means"):
        fresh.accountant("numbers").spend(gdp=0.01)
    fresh.verify()


def test_a_cap_recorded_for_every_length_stays_though_the_length_would_allow_more(
    ledger, url, monkeypatch
):
    slow = qw.MarkovChain([[0.97, 0.03], [0.03, 0.97]])
    with monkeypatch.context() as patched:
        patched.setattr(caps, "cap_of", caps.cap_of_every_length)
        ledger.create("old", slow, 20, 1, delta=1e-6)
    ledger.create("new", slow, 20, 1, delta=1e-6)
    fresh = Ledger.open(url)
    fresh.verify()
    old, new = (fresh.accountant(name).profile() for name in ("old", "new"))
    assert (old.length, new.length) == (None, 20)
    assert old.cap < 0.9 * new.cap
    fresh.extend("old", 1000)
    with pytest.raises(UnsupportedError, match="holds for 20 time points"):
        fresh.extend("new", 21)


def test_a_cap_that_was_recorded_too_high_is_found_by_verifying(ledger, chain, monkeypatch):
    real = caps.cap_of
    with monkeypatch.context() as patched:
        patched.setattr(
            caps,
            "cap_of",
            lambda *asked: replace(real(*asked), level=1.05 * real(*asked).level),
        )
        ledger.create(NAME, chain, LENGTH, 1, delta=1e-6)
    with pytest.raises(StorageError, match="more than its \\(ε, δ\\) allow"):
        ledger.verify()


def test_a_backup_keeps_caps_and_what_is_used(opened, tmp_path, chain):
    opened.accountant(NAME).spend(gdp=0.05, start=3, stop=9)
    before, cap = opened.status(NAME), opened.accountant(NAME).profile().cap
    opened.last_backup(tmp_path / "last.jsonl")
    again = Ledger.restore(tmp_path / "last.jsonl", f"sqlite:///{tmp_path / 'again.db'}")
    assert again.status(NAME) == before
    assert again.accountant(NAME).profile().cap == cap
    again.verify()
    lost = {NAME: [{"rho": 0.0001}]}
    opened.backup(tmp_path / "other.jsonl")
    more = Ledger.restore(
        tmp_path / "last.jsonl", f"sqlite:///{tmp_path / 'more.db'}", lost={NAME: lost[NAME]}
    )
    assert more.status(NAME).used == pytest.approx((0.05**2 + 0.0002) / cap**2, rel=1e-9)


def test_a_release_pays_with_its_square_and_a_key_returns_its_answer(opened, chain):
    data = ["rest", "walk"] * (LENGTH // 2)
    asked = {"noise": "gaussian", "delta": 1e-6, "ledger": opened, "dataset": NAME, "key": "k"}
    one = qw.release(data, queries.histogram().on(1, 50), chain, 0.3, **asked)
    used = opened.status(NAME).used
    cap = opened.accountant(NAME).profile().cap
    assert used == pytest.approx(2 / float(one.noise_scale) ** 2 / cap**2, rel=1e-6)
    again = qw.release(data, queries.histogram().on(1, 50), chain, 0.3, **asked)
    assert (again.value == one.value).all()
    assert opened.status(NAME).used == used
    with pytest.raises(BudgetExceeded):
        qw.release(data, queries.histogram(), chain, 1, **{**asked, "key": "other"})
    assert len(opened.history(NAME)) == 1
    assert opened.history(NAME)[0].composes_by == "squares"


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"delta": 2}, InvalidInputError, "delta"),
        ({"delta": -1e-6}, InvalidInputError, "delta"),
        ({"delta": True}, InvalidInputError, "delta"),
        ({"pure": 0.1}, InvalidInputError, "goes with delta"),
        ({"delta": 1e-6, "pure": 0.3}, UnsupportedError, "leaves nothing"),
        ({"delta": 1e-6, "pure": -1}, InvalidInputError, "pure"),
    ],
)
def test_what_makes_no_sense_begins_nothing(ledger, chain, given, error, said):
    ledger.create("first", chain, LENGTH, 1)
    with pytest.raises(error, match=said):
        ledger.create(NAME, chain, LENGTH, 1, **given)
    assert [status.dataset for status in ledger.datasets()] == ["first"]
