"""Accounts of numbers: sums and means pay for as far as numbers move; nothing else is taken."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from evidence import gaussian_reference as reference
from quiltwork import queries
from quiltwork.budget import Accountant, Ledger, Spending, plan
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError

AR = qw.GaussianSeries(ar=[0.8])
DATA = AR.sample(400, seed=1)
MEAN = queries.mean(-2, 2)


def dense(ar, length, within, releases) -> np.ndarray:
    """What leaks about each number, by the covariance matrix: (start, stop, range, scale)."""
    moved = np.abs(reference.series_covariance(ar, length)) * within
    return sum(
        np.minimum(moved[:, start - 1 : stop], span).sum(axis=1) / scale
        for start, stop, span, scale in releases
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("spans", [(2,), (2, 3, 50), (0.5, 0.5)], ids=["one", "wide", "narrow"])
def test_many_releases_cost_what_the_covariance_matrix_says(seed, spans):
    random = np.random.default_rng(seed)
    length, within = 80, 1.5
    ar = reference.random_autoregression(random, int(random.integers(1, 3)))
    account = Accountant(qw.GaussianSeries(ar=ar, within=within), length)
    releases = []
    for _ in range(5):
        start = int(random.integers(1, length + 1))
        stop = int(random.integers(start, length + 1))
        span, scale = float(random.choice(spans)), round(float(random.uniform(1, 9)), 3)
        releases.append((start, stop, span, scale))
        query = queries.sum(0, span).on(start, stop)
        account.add(Spending.of_query(query, Fraction(str(scale)) / Fraction(str(span)), length))
    truth = dense(ar, length, within, releases)
    assert account.epsilon() == pytest.approx(truth.max(), rel=1e-9)
    assert account.profile().values() == pytest.approx(truth, rel=1e-9, abs=1e-10)
    assert account.leakage(3, 9) == pytest.approx(truth[2:9].max(), rel=1e-9)
    assert account.explain().winner.theorem == "Numbers"


def test_ranges_narrower_than_what_is_hidden_are_bounded_by_the_narrowest():
    account = Accountant(qw.GaussianSeries(ar=[0.8], within=2), 60)
    for span in (1, Fraction(1, 2), 4):
        account.add(Spending.of_query(queries.sum(0, span), 5 / Fraction(span), 60))
    truth = dense([0.8], 60, 2, [(1, 60, 1, 5), (1, 60, 0.5, 5), (1, 60, 4, 5)]).max()
    assert truth <= account.epsilon() <= 2 * truth


def test_a_release_calibrated_to_what_remains_fits_and_nothing_more():
    account = Accountant(AR, 400, budget=1)
    for query, epsilon in ((MEAN, 0.5), (MEAN.on(1, 400), 0.3), (MEAN, 0.2)):
        account.add(qw.release(DATA, query, AR, epsilon=epsilon))
    assert account.epsilon() == pytest.approx(1, rel=1e-9)
    with pytest.raises(BudgetExceeded):
        account.add(qw.release(DATA, MEAN, AR, epsilon=0.01))
    assert account.smallest_scale(MEAN) > 1e6


def test_stretches_cost_more_together():
    account = Accountant(AR, 400, episode=5)
    account.add(qw.release(DATA, MEAN, AR, epsilon=1, episode=5))
    assert account.epsilon() == pytest.approx(1, rel=1e-9)
    assert Accountant.from_body(account.to_body()).epsilon() == account.epsilon()


def test_rows_pay_for_their_family():
    kin = qw.GaussianRows(bounds=0.274, rows=3, families=40)
    account = Accountant(kin, budget=1)
    account.add(qw.release(list(range(120)), queries.mean(0, 100), kin))
    assert account.epsilon() == pytest.approx(1, rel=1e-9)
    assert account.profile().at(120) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    "spending",
    [Spending.dp(0.1, 1, 9), Spending.of_query(queries.histogram([0, 1]), 9, 400)],
    ids=["a level", "a histogram"],
)
def test_levels_that_say_nothing_about_numbers_are_refused(spending):
    account = Accountant(AR, 400, budget=1)
    with pytest.raises(UnsupportedError, match="only sums and means"):
        account.add(spending)
    assert account.epsilon() == 0


def test_without_within_all_ranges_must_be_one():
    account = Accountant(AR, 400)
    account.add(Spending.of_query(queries.sum(0, 4), 9, 400))
    with pytest.raises(InvalidInputError, match=r"width 4, this one to 3.*give it within="):
        account.add(Spending.of_query(queries.sum(0, 3), 9, 400))
    with pytest.raises(InvalidInputError, match="give it within="):
        Accountant(AR, 400).add_all(
            [Spending.of_query(queries.sum(0, one), 9, 400) for one in (4, 3)]
        )


def test_a_plan_makes_all_means_cost_the_budget():
    made = plan(AR, length=400, budget=1, queries=[MEAN, MEAN, MEAN.on(1, 50)])
    assert 0 <= 1 - made.total < 1e-5  # of which a part is kept for the grid's step
    assert made.items[0].scale == pytest.approx(27, rel=0.01)


def test_planned_means_of_states_use_their_own_range():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[20.0, 30.0])
    wide, own = (
        plan(chain, length=100, budget=1, queries=[queries.mean(*bounds)])
        for bounds in ((0, 100), (20, 30))
    )
    assert wide.items[0].expected_error == own.items[0].expected_error


@pytest.mark.parametrize("within", [None, 1])
def test_a_ledger_keeps_numbers(tmp_path, within):
    belief = qw.GaussianSeries(ar=[0.8], within=within)
    url = f"sqlite:///{tmp_path}/budget.db"
    ledger = Ledger.open(url)
    ledger.create("load", belief, 400, 1)
    paid = {"ledger": ledger, "dataset": "load"}
    first = qw.release(DATA, MEAN, belief, epsilon=0.5, key="a", **paid)
    assert qw.release(DATA, MEAN, belief, epsilon=0.5, key="a", **paid) == first
    ledger.extend("load", 500)
    longer = np.append(DATA, [np.nan] * 100)  # what is no number counts as the lower bound
    qw.release(longer, MEAN.on(401, 500), belief, epsilon=0.25, **paid)
    again = Ledger.open(url)
    again.verify()
    assert again.status("load").exact_total == ledger.status("load").exact_total
    expected = Accountant(belief, 500)
    expected.add_all(ledger.accountant("load").spendings)
    assert again.status("load").exact_total == expected.exact_epsilon
    with pytest.raises(UnsupportedError, match="only sums and means"):
        again.accountant("load").spend(dp_epsilon=0.01)
    runs = Spending.of_query(queries.histogram().on_runs([(1, 1), (5, 9)]), 100, 500)
    with pytest.raises(UnsupportedError, match="only sums and means"):
        again.accountant("load").add(runs)
    if within is None:
        with pytest.raises(InvalidInputError, match="give it within="):
            qw.release(longer, queries.mean(-1, 1), belief, epsilon=0.1, **paid)
    else:
        qw.release(longer, queries.mean(-1, 1), belief, epsilon=0.1, **paid)
    with pytest.raises(BudgetExceeded):
        qw.release(longer, MEAN, belief, epsilon=0.6, **paid)
    again.verify()
