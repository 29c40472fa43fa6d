"""Plans spend exactly the budget, tell errors as they will be, and name what is useless."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs import Clusters, CyclicChain, MarkovChain
from quiltwork.budget import Accountant, Planned, Spending, calendar, plan, repeated
from quiltwork.budget.accounting.headroom import largest_level, largest_number
from quiltwork.budget.accounting.release_plan import plan_rows
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.influence import calibrate
from quiltwork.noise import TwoSidedGeometric
from tests.sizes import sample

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
HISTOGRAM = queries.histogram()


def test_a_plan_spends_exactly_the_budget():
    found = plan(
        CHAIN,
        length=100,
        budget=2,
        queries=[HISTOGRAM, queries.count(1).on(20, 60), queries.transitions()],
    )
    account = Accountant(CHAIN, 100, budget=2)
    account.add_all(found.spendings)
    assert account.epsilon() == found.total
    assert account.epsilon() == pytest.approx(2, rel=1e-9)
    assert len({item.scale for item in found.items}) == 1
    assert not account.fits(Spending.dp(1e-6, 40, 40))


def test_common_noise_is_found_where_the_influence_curve_says():
    found = plan(CHAIN, length=100, budget=1, queries=[queries.count(1)] * 10)
    scale = calibrate(CHAIN, 100, 1).scale
    assert found.items[0].scale == pytest.approx(10 * scale, rel=1e-8)
    naive = calibrate(CHAIN, 100, Fraction(1, 10), "exact").scale
    assert found.items[0].naive_scale == naive
    assert naive > 1.5 * found.items[0].scale


def test_releases_at_the_printed_levels_and_noise_fit_together():
    for budget in (2, 1, Fraction(1, 3)):
        made = plan(CHAIN, length=120, budget=budget, queries=repeated(HISTOGRAM, 24, 120))
        (row,) = plan_rows(made)
        noise, alone = Fraction(row[3]), Fraction(row[7])
        by_level = Accountant(CHAIN, 120, budget)
        by_noise = Accountant(CHAIN, 120, budget)
        for item in made.items:
            query = item.planned.query
            scale = calibrate(CHAIN, 120, alone, query=query).exact_scale
            by_level.add(Spending.of_query(query, scale, 120))
            by_noise.add(Spending.of_query(query, noise, 120))
        for account in (by_level, by_noise):
            assert 0.998 * float(budget) < account.epsilon() <= float(budget)


def test_weights_share_out_precision():
    found = plan(
        CHAIN,
        length=60,
        budget=1,
        queries=[Planned(HISTOGRAM, weight=4), Planned(HISTOGRAM.on(1, 30))],
    )
    assert found.items[1].scale == pytest.approx(4 * found.items[0].scale)
    assert found.total == pytest.approx(1, rel=1e-9)


def test_what_was_spent_before_counts():
    before = [Spending.dp(0.05, 1, 60)]
    fresh, later = (
        plan(CHAIN, length=60, budget=1, queries=[HISTOGRAM], spent=s) for s in ([], before)
    )
    assert later.items[0].scale > fresh.items[0].scale
    account = Accountant(CHAIN, 60, budget=1)
    account.add_all([*before, *later.spendings])
    assert account.epsilon() == pytest.approx(1, rel=1e-9)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        plan(CHAIN, length=60, budget=1, queries=[HISTOGRAM], spent=[Spending.dp(5, 1, 60)])


def test_a_hair_of_budget_is_nothing_left():
    hair = Fraction(1, 10**18)
    account = Accountant(MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 60, budget=1)
    spent = [Spending.dp(1 - hair, 1, 60)]
    account.add_all(spent)
    assert account.exact_remaining == hair
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        plan(account.beliefs, length=60, budget=1, queries=[HISTOGRAM], spent=spent)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        account.smallest_scale(HISTOGRAM)


@given(st.integers(0, 10**9))
@example(69)  # the total of the scales is a last digit above that of the factor
@example(594)
@settings(max_examples=sample(4, full=8))
def test_any_windows_meet_the_budget(seed):
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(rng.integers(1, 6)):
        a, b = sorted(int(t) for t in rng.integers(1, 41, 2))
        weight = Fraction(int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        asked.append(Planned(HISTOGRAM.on(a, b), weight=weight))
    budget = Fraction(int(rng.integers(1, 40)), 10)
    found = plan(CHAIN, length=40, budget=budget, queries=asked)
    account = Accountant(CHAIN, 40, budget=budget)
    account.add_all(found.spendings)
    assert found.total == pytest.approx(float(budget), rel=1e-9)


def test_errors_are_those_of_the_noise():
    (item,) = plan(CHAIN, length=80, budget=1, queries=[HISTOGRAM]).items
    drawn = np.abs(TwoSidedGeometric.from_scale(item.scale).draw(20_000)).mean()
    assert item.expected_error == pytest.approx(drawn, rel=0.05)
    assert item.signal_range == 80


@pytest.mark.parametrize(
    ("query", "points", "most"),
    [
        (queries.count(1), 30, 30),
        (queries.frequencies(), 30, 1),
        (queries.transitions(), 30, 29),
        (queries.mean(0, 1), 30, 1),
        (queries.sum(0, 1), 30, 30),
        (queries.most_common(), 30, 30),
    ],
)
def test_the_range_of_a_signal_is_in_units_of_the_answer(query, points, most):
    (item,) = plan(CHAIN, length=points, budget=1, queries=[query]).items
    assert item.signal_range == pytest.approx(most, rel=1e-6)
    assert item.expected_error > 0


def test_a_release_smaller_than_its_noise_is_called_useless():
    found = plan(
        CHAIN, length=500, budget=0.5, queries=[Planned(HISTOGRAM.on(1, 4), "hourly"), HISTOGRAM]
    )
    short, whole = found.items
    assert short.verdict == "useless"
    assert short.expected_error >= short.signal_range == 4
    assert whole.verdict in ("useful", "rough")
    assert found.useless == (short,)
    assert "The hourly release would be useless: its expected error" in found.explain()
    assert "useless" in found.table()


def test_a_year_is_365_days_52_weeks_and_12_months():
    year = calendar(2025, 144, daily=HISTOGRAM, weekly=HISTOGRAM, monthly=HISTOGRAM)
    kinds = [one.kind for one in year]
    assert [kinds.count(kind) for kind in ("daily", "weekly", "monthly")] == [365, 52, 12]
    stops = [one.query.stop for one in year]
    assert stops == sorted(stops)
    assert stops[-1] == 365 * 144
    leap = calendar(2024, 24, monthly=HISTOGRAM)
    assert leap[1].query.window(366 * 24) == (31 * 24 + 1, 60 * 24)


def test_windows_follow_each_other():
    found = repeated(HISTOGRAM, [2, 3, 9], 10, kind="part", weight=2)
    assert [one.query.window(10) for one in found] == [(1, 2), (3, 5)]
    assert found[0].label == "part 1"
    assert found[0].weight == 2


def test_bad_plans_are_refused():
    for queries_ in ([], [3], [HISTOGRAM.on(1, 99)]):
        with pytest.raises(InvalidInputError):
            plan(CHAIN, length=20, budget=1, queries=queries_)
    for weight in (0, -1, float("nan"), "1"):
        with pytest.raises(InvalidInputError):
            Planned(HISTOGRAM, weight=weight)
    for budget in (0, None, float("inf"), True):
        with pytest.raises((InvalidInputError, UnsupportedError)):
            plan(CHAIN, length=20, budget=budget, queries=[HISTOGRAM])
    with pytest.raises(UnsupportedError, match="nothing to hide"):
        plan(
            MarkovChain([[0, 1], [1, 0]], initial=[1, 0]), length=20, budget=1, queries=[HISTOGRAM]
        )


def test_rows_in_clusters_can_be_planned():
    found = plan(
        Clusters(["a", "b", "a", "c"]),
        length=None,
        budget=1,
        queries=[queries.histogram(["x", "y"])] * 2,
    )
    assert found.items[0].scale == 8
    assert found.total == 1


def test_the_plan_is_drawn_and_written():
    found = plan(CHAIN, length=48, budget=1, queries=calendar_of_two_days())
    assert found.plot().get_yscale() == "log"
    lines = found.table().splitlines()
    assert lines[0].startswith("kind")
    assert len(lines) == 3
    assert "Splitting the budget evenly" in found.explain()
    assert qw.plan is plan


def calendar_of_two_days():
    return [*repeated(HISTOGRAM, 24, 48, "daily"), *repeated(HISTOGRAM, 48, 48, "both")]


@given(st.floats(1e-3, 10), st.floats(0, 5), st.floats(0.1, 5))
def test_the_largest_level_is_found_on_bent_lines(knee, slope, limit):
    def total(x):
        exact = Fraction(str(x))
        return min(exact * (1 + Fraction(slope)), Fraction(knee) + exact)

    found = largest_level(total, Fraction(0), Fraction(limit), 100.0)
    assert total(found) <= Fraction(limit) < total(found * (1 + 1e-9) + 1e-300)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_largest_number_is_found_by_halving(limit, most):
    asked = []

    def fits(n):
        asked.append(n)
        return n <= limit

    assert largest_number(fits, most) == min(limit, most)
    assert len(asked) <= 45


@pytest.mark.parametrize(
    "chain",
    [
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]),
        MarkovChain([[0.97, 0.03], [0.01, 0.99]], [1, 0]),
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any"),
        CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]]),
    ],
    ids=["known start", "slow", "any start", "cyclic"],
)
@pytest.mark.parametrize(("windows", "length"), [(3, 30), (10, 300), (40, 200)])
def test_releases_at_the_levels_that_are_printed_fit_together(chain, windows, length):
    """Near the ends of a series a window needs less noise for the same level than inside."""
    every = repeated(HISTOGRAM, length // windows, length)
    made = plan(chain, length=length, budget=1, queries=every)
    printed = Fraction(plan_rows(made)[0][7])
    for levels in ([one.cost_alone for one in made.items], [printed] * len(made.items)):
        account = Accountant(chain, length, budget=1)
        for item, level in zip(made.items, levels, strict=True):
            found = calibrate(chain, length, level, query=item.planned.query)
            account.add(Spending.of_query(item.planned.query, found.integer_scale, length))
    inside = made.items[len(made.items) // 2]
    found = calibrate(chain, length, inside.cost_alone, query=inside.planned.query)
    assert found.integer_scale >= inside.scale * (1 - 1e-12)
