"""Plans for (ε, δ): which noise is quieter, by how much, and that they fit an account."""

from __future__ import annotations

import math

import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.budget import Planned, Spending, calendar, repeated
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
WALKS = queries.count("walk")


def planned(asked, delta=1e-6, **given):
    return qw.plan(CHAIN, length=100, budget=1, queries=asked, delta=delta, **given)


@pytest.mark.parametrize(
    ("releases", "quieter"),
    [(1, "geometric"), (11, "geometric"), (12, "gaussian"), (100, "gaussian")],
)
def test_it_says_which_noise_is_quieter_and_by_how_much(releases, quieter):
    found, sigma = planned([WALKS] * releases), 14.068 * math.sqrt(releases)
    assert found.items[0].scale == pytest.approx(sigma, rel=2e-3)
    error = 1 / math.sinh(1 / (3.33641 * releases))  # of geometric noise: 2α/(1 − α²)
    gain = error / (sigma * math.sqrt(2 / math.pi))
    assert found.gain == pytest.approx(gain, rel=5e-3)
    assert (found.quieter, found.gain > 1) == (quieter, quieter == "gaussian")
    said = found.explain()
    assert ("Take Gaussian noise" in said) == (quieter == "gaussian")
    assert f"{max(found.gain, 1 / found.gain):.3g} times its error" in said
    body = found.body()
    assert (body["quieter"], body["delta"]) == (quieter, "1/1000000")
    assert "geometric: noise" in found.table()


def test_a_plan_fills_the_caps_and_fits_an_account_with_what_was_before():
    before = [Spending.gaussian(20, 60, rho=0.001)]
    asked = [Planned(queries.histogram().on(1, 50), "half", weight=2), Planned(WALKS, "all")]
    found = planned(asked, spent=before)
    account = qw.Accountant(CHAIN, 100, 1, delta=1e-6)
    account.add_all([*before, *found.spendings])
    assert 1 - 1e-9 < account.used <= 1
    assert found.items[1].scale == pytest.approx(2 * found.items[0].scale)
    assert found.spent == pytest.approx(0.002 / account.profile().cap ** 2, rel=1e-9)
    assert found.gain == math.inf
    assert "no geometric noise to compare" in found.explain()
    assert found.body()["gain"] is None
    assert found.records()[0]["naive_error"] is None
    assert found.chart().lines
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        planned(asked, spent=[Spending.gaussian(1, 100, gdp=account.profile().cap)])


def test_four_weeks_every_day_for_a_year_are_28_releases_of_each_day():
    weeks = repeated(queries.histogram(), 28, 365, "four weeks", step=1)
    assert len(weeks) == 338
    found = qw.plan(CHAIN, length=365, budget=1, queries=weeks, delta=1e-6)
    alone = qw.calibrate(
        CHAIN, 365, 1, query=queries.histogram(), noise="gaussian", delta=1e-6, releases=28
    )
    assert found.items[0].scale == pytest.approx(alone.scale, rel=1e-6)
    assert found.quieter == "gaussian"
    assert found.gain == pytest.approx(
        28 * 2 * 3.33641 / (alone.scale * math.sqrt(2 / math.pi)), rel=0.02
    )


def test_sums_and_transitions_are_planned_too():
    series = qw.GaussianSeries(ar=[0.8], within=1)
    found = qw.plan(series, length=50, budget=1, queries=[queries.mean(0, 1)] * 50, delta=1e-6)
    account = qw.Accountant(series, 50, 1, delta=1e-6)
    account.add_all(found.spendings)
    assert 0.99 < account.used <= 1
    moves = planned([queries.transitions()])
    counts = planned([WALKS])
    assert moves.items[0].scale == pytest.approx(math.sqrt(6) * counts.items[0].scale, rel=1e-9)


def test_a_month_of_days_weeks_and_a_month_stays_with_geometric_noise():
    histogram = queries.histogram()
    year = calendar(2025, 1, weekly=histogram, monthly=histogram)
    found = qw.plan(CHAIN, length=365, budget=1, queries=year, delta=1e-6)
    assert found.quieter == "geometric"


@pytest.mark.parametrize(
    ("stay", "length", "count", "quieter"),
    [
        (0.99, 20, 100, "gaussian"),
        (0.999, 20, 1, "geometric"),
        (0.997, 144, 50, "gaussian"),
        (0.9, 5, 1, "geometric"),
    ],
)
def test_a_plan_takes_the_noise_that_is_calibrated_for_its_length(stay, length, count, quieter):
    chain = qw.MarkovChain([[stay, 1 - stay], [1 - stay, stay]])
    found = qw.plan(chain, length=length, budget=1, queries=[queries.count(1)] * count, delta=1e-6)
    noise = qw.calibrate(
        chain, length, 1, query=queries.count(1), noise="gaussian", delta=1e-6, releases=count
    )
    assert found.items[0].scale == pytest.approx(noise.scale, rel=1e-6)
    assert found.quieter == quieter


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: planned([queries.most_common()]), UnsupportedError, "exponential mechanism"),
        (lambda: planned([WALKS], delta=0, pure=0.1), InvalidInputError, "goes with delta"),
        (lambda: planned([WALKS], delta=2), InvalidInputError, "delta"),
        (lambda: planned([WALKS], pure=0.3), UnsupportedError, "leaves nothing"),
        (lambda: planned([]), InvalidInputError, "nothing to plan"),
        (
            lambda: qw.plan(
                qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0]),
                length=9,
                budget=1,
                queries=[queries.count(1)],
                delta=1e-6,
            ),
            UnsupportedError,
            "nothing to hide",
        ),
    ],
)
def test_what_cannot_be_planned_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
