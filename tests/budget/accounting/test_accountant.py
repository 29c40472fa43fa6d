"""An account: exact budgets, refusals without a trace, what still fits, growing, JSON, plots."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from tests.budget.accounting.test_usage import spendings
from tests.budget.test_spending import HOSTILE
from tests.sizes import sample

COIN = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
BOX = ChainBox([[0.75, 0.05], [0.25, 0.5]], [[0.95, 0.25], [0.5, 0.75]])
ANY = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial="any")
BELIEFS = {"coin": COIN, "chain": CHAIN, "box": BOX, "any": ANY, "set": [CHAIN, BOX]}


def test_ten_tenths_fit_one_and_nothing_more():
    account = Accountant(COIN, 3, budget=1.0)
    for _ in range(10):
        account.spend(dp_epsilon=0.1)
    assert account.exact_epsilon == 1
    assert account.remaining == 0
    with pytest.raises(BudgetExceeded, match=r"1\.000000001.*0 is left.*Nothing was recorded"):
        account.spend(dp_epsilon=1e-9)
    assert len(account.spendings) == 10


def test_a_refusal_says_the_largest_level_and_the_least_noise_that_fit():
    account = Accountant(CHAIN, 100, 1)
    account.spend(dp_epsilon=0.1)
    refused = Spending.of_query(queries.count(1).on(20, 60), 2, 100)
    with pytest.raises(BudgetExceeded) as error:
        account.add(refused)
    level, times = (
        Fraction(found)
        for found in re.search(
            r"dp_epsilon of (\S+) fits, with (\S+) times", str(error.value)
        ).groups()
    )
    assert times > 1
    assert account.fits(Spending.dp(level, 20, 60))
    assert not account.fits(Spending.dp(level * Fraction(1001, 1000), 20, 60))
    assert account.fits(Spending.of_query(queries.count(1).on(20, 60), 2 * times, 100))
    assert not account.fits(
        Spending.of_query(queries.count(1).on(20, 60), 2 * times * Fraction(999, 1000), 100)
    )
    with pytest.raises(BudgetExceeded, match=r"Together they fit with \S+ times their noise"):
        account.add_all([refused, refused])
    account.spend(dp_epsilon=account.largest_next())
    with pytest.raises(BudgetExceeded, match="Nothing fits on this window any more"):
        account.add(refused)


def test_three_thirds_fit_one():
    account = Accountant(COIN, 5, budget=1)
    for _ in range(3):
        account.spend(Fraction(1, 3), 2, 4)
    assert account.exact_remaining == 0


@pytest.mark.parametrize("name", BELIEFS)
def test_a_refused_release_leaves_no_trace(name):
    account = Accountant(BELIEFS[name], 30, budget=2)
    account.spend(0.02, 3, 20)
    before = account.exact_epsilon, account.spendings, account.to_body()
    with pytest.raises(BudgetExceeded):
        account.spend(50)
    with pytest.raises(InvalidInputError):
        account.spend(0.1, 20, 31)
    with pytest.raises(BudgetExceeded):
        account.add_all([Spending.dp(0.01, 1, 5), Spending.dp(9, 1, 5)])
    assert (account.exact_epsilon, account.spendings, account.to_body()) == before
    account.spend(0.01, 1, 5)
    assert len(account.spendings) == 2


@given(
    st.sampled_from(sorted(BELIEFS)),
    spendings(length=25, most=4),
    st.integers(1, 25),
    st.integers(0, 24),
)
@settings(max_examples=sample(7, full=15))
def test_what_is_calibrated_to_what_remains_fits_and_little_more_does_not(
    name, records, start, more
):
    account = Accountant(BELIEFS[name], 25)
    account.add_all(records)
    budget = account.exact_epsilon + Fraction(3, 7)
    account = Accountant(BELIEFS[name], 25, budget=budget)
    account.add_all(records)
    stop = min(25, start + more)
    level = account.largest_next(start, stop)
    assert level > 0
    assert account.fits(Spending.dp(level, start, stop))
    assert not account.fits(Spending.dp(level * 1.0001, start, stop))
    account.spend(level, start, stop)
    assert account.exact_epsilon <= budget
    assert float(account.exact_epsilon) == pytest.approx(float(budget), rel=1e-8)


def test_a_full_account_has_room_where_nothing_was_released():
    account = Accountant(COIN, 10, budget=1)
    account.spend(1, 1, 5)
    assert account.remaining == 0
    assert account.largest_next(1, 10) == 0
    assert account.largest_next(6, 10) == 1
    assert account.how_many_more(Spending.dp(0.25, 6, 10)) == 4


@pytest.mark.parametrize("epsilon", [0.1, 2.5])
@pytest.mark.parametrize("name", BELIEFS)
def test_a_release_made_for_the_whole_budget_fits_it(name, epsilon):
    data = [0, 1] * 50
    asked = [
        qw.queries.histogram(),
        qw.queries.count(1).on(10, 40),
        qw.queries.transitions(),
        qw.queries.custom(lambda x: float((x == 1).sum()), lipschitz=1),
    ]
    for query in asked:
        account = Accountant(BELIEFS[name], 100, budget=epsilon)
        account.add(qw.release(data, query, BELIEFS[name], epsilon=epsilon))
        assert account.epsilon() <= epsilon


@given(
    st.sampled_from(["coin", "chain", "any"]), spendings(length=20, most=3), st.floats(0.01, 0.5)
)
@settings(max_examples=sample(10, full=20))
def test_as_many_more_fit_as_it_says(name, records, level):
    spending = Spending.dp(level, 4, 17)
    before = Accountant(BELIEFS[name], 20)
    before.add_all(records)
    account = Accountant(BELIEFS[name], 20, budget=before.exact_epsilon + 1)
    account.add_all(records)
    number = account.how_many_more(spending)
    account.add_all([spending] * number)
    assert not account.fits(spending)
    assert account.how_many_more(spending) == 0


@pytest.mark.parametrize("query", [qw.queries.histogram(), qw.queries.transitions().on(5, 40)])
def test_the_smallest_scale_fits_and_less_does_not(query):
    account = Accountant(CHAIN, 50, budget=1)
    account.spend(0.02, 1, 25)
    scale = account.smallest_scale(query)
    assert account.fits(Spending.of_query(query, scale, 50))
    assert not account.fits(Spending.of_query(query, scale * 0.9999, 50))
    full = Accountant(COIN, 50, budget=1)
    full.spend(1)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        full.smallest_scale(query)


def test_an_account_shows_itself_briefly():
    account = Accountant(CHAIN, 50, budget=1)
    account.spend(0.01)
    assert repr(account) == "Accountant(50 time points, 1 releases, budget=1)"


def test_a_preview_costs_nothing_and_tells_the_truth():
    account = Accountant(CHAIN, 50, budget=3)
    account.spend(0.05, 1, 25)
    spending = Spending.dp(0.03, 20, 50)
    foreseen = account.cost_after(spending)
    assert len(account.spendings) == 1
    account.add(spending)
    assert account.epsilon() == foreseen


def test_the_order_of_releases_does_not_matter():
    records = [Spending.dp(0.01 * k, 3 * k, 3 * k + 20) for k in range(1, 9)]
    totals = []
    for order in (records, records[::-1], records[::2] + records[1::2]):
        account = Accountant(CHAIN, 60)
        account.add_all(order)
        totals.append(account.exact_epsilon)
    assert max(totals) - min(totals) < Fraction(1, 10**12)


def test_points_outside_every_window_count():
    account = Accountant(CHAIN, 50)
    account.spend(1, 10, 20)
    profile = account.profile()
    assert 0 < profile.at(21) < profile.at(20)
    assert 0 < account.leakage(21, 50) < account.leakage(10, 20) == account.epsilon()


def test_an_account_comes_back_from_json():
    account = Accountant([CHAIN, BOX], 30, budget=Fraction(5, 3))
    account.spend(0.02, 3, 20, label="März")
    account.extend(40)
    account.spend(0.01, 35, 40)
    again = Accountant.from_body(json.loads(json.dumps(account.to_body())))
    assert again.exact_epsilon == account.exact_epsilon
    assert again.spendings == account.spendings
    assert (again.length, again.budget, again.beliefs) == (40, Fraction(5, 3), account.beliefs)


@pytest.mark.parametrize(
    "change",
    [
        {"beliefs": {}},
        {"length": []},
        {"length": "x"},
        {"budget": "x"},
        {"spendings": [{}]},
    ],
)
def test_a_damaged_account_is_refused(change):
    body = Accountant(CHAIN, 30).to_body() | change
    with pytest.raises(InvalidInputError):
        Accountant.from_body(body)


@pytest.mark.parametrize("value", [value for value in HOSTILE if value is not None])
def test_hostile_budgets_and_levels_are_refused(value):
    with pytest.raises(InvalidInputError):
        Accountant(CHAIN, 10, budget=value)
    with pytest.raises(InvalidInputError):
        Accountant(CHAIN, 10).spend(value)


@pytest.mark.parametrize("length", [0, -1, True, 1.5, "10", None, float("nan")])
def test_hostile_lengths_are_refused(length):
    with pytest.raises(InvalidInputError):
        Accountant(CHAIN, length)


@pytest.mark.parametrize(
    "level", [5e-324, 1e-300, 1e99, 1e300, 10**400, 1 / Fraction(10**400)], ids=range(6)
)
def test_extreme_levels_are_priced_or_refused_without_overflow(level):
    account = Accountant(CHAIN, 30, budget=1)
    if 1e-300 <= level < 1:
        account.spend(level)
        assert 0 < account.exact_epsilon < 1
    else:
        with pytest.raises(BudgetExceeded if 1 < level < 1e100 else InvalidInputError):
            account.spend(level)
        assert account.exact_epsilon == 0


@pytest.mark.parametrize("episode", [0, -1, True, 1.5, "2", None])
def test_hostile_episodes_are_refused(episode):
    with pytest.raises(InvalidInputError, match="episode"):
        Accountant(CHAIN, 10, episode=episode)


def test_rows_in_no_order_have_no_episodes():
    with pytest.raises(UnsupportedError, match="in no order"):
        Accountant(Clusters(["a", "b"]), episode=2)


def test_longer_episodes_cost_more_up_to_everything():
    totals = []
    for episode in (1, 2, 5, 10, 99):
        account = Accountant(CHAIN, 10, episode=episode)
        account.spend(0.1)
        totals.append(account.epsilon())
    assert totals == sorted(totals)
    assert totals[3:] == pytest.approx([1.0, 1.0], rel=1e-9)


def test_something_that_is_no_release_is_refused():
    with pytest.raises(InvalidInputError, match="no release"):
        Accountant(CHAIN, 10).add(3)


def test_without_a_budget_there_is_no_limit_to_ask_for():
    account = Accountant(CHAIN, 10)
    assert account.remaining is None
    for ask in (account.largest_next, lambda: account.how_many_more(Spending.dp(1, 1, 2))):
        with pytest.raises(UnsupportedError, match="budget"):
            ask()


def test_what_needs_no_protection_costs_nothing():
    certain = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    account = Accountant(certain, 20, budget=1)
    account.spend(100)
    assert account.exact_epsilon == 0
    assert account.largest_next() == math.inf
    assert account.how_many_more(Spending.dp(1, 1, 20)) == math.inf


def test_a_window_without_secrets_does_not_hide_one_with_secrets():
    started = MarkovChain([[0.5, 0.5], [0.5, 0.5]], initial=[1, 0])
    account = Accountant(started, 10, budget=1)
    both = [Spending.dp(100, 1, 1), Spending.dp(1, 2, 10)]
    assert account.largest_factor(both) == 1
    assert account.largest_next(1, 1) == math.inf


def test_a_pufferfish_mechanism_without_a_level_stays_alone():
    alone = Spending(1, 20, composes_by="nothing", epsilon=Fraction(1, 2))
    account = Accountant(CHAIN, 20, budget=1)
    assert account.how_many_more(alone) == 1
    account.add(alone)
    assert account.epsilon() == 0.5
    for later in (Spending.dp(0.001, 1, 2), alone):
        with pytest.raises(UnsupportedError, match=r"nothing can follow.*theory/composition"):
            account.add(later)
    other = Accountant(CHAIN, 20)
    other.spend(0.1)
    with pytest.raises(UnsupportedError, match=r"Theorem 3\.6"):
        other.add(alone)


def test_theorem_3_6_adds_its_divergence_twice_and_lets_only_its_like_follow():
    account = Accountant(CHAIN, 20, budget=Fraction(5, 2))
    account.spend(0.1)
    before = account.exact_epsilon
    with_e = Spending(
        1, 20, composes_by="general", epsilon=Fraction(1, 2), divergence=Fraction(1, 4)
    )
    account.add(with_e)
    assert account.exact_epsilon == before + 1
    assert account.how_many_more(with_e) == 1
    with pytest.raises(UnsupportedError, match="scaled"):
        account.largest_factor([with_e])
    assert account.explain().winner.theorem.startswith("Theorem 3.6")
    with pytest.raises(UnsupportedError, match=r"Theorem 3\.6"):
        account.spend(0.1)
    account.add(with_e)
    with pytest.raises(BudgetExceeded):
        account.add(with_e)
    assert account.exact_epsilon == before + 2


def test_the_explanation_lists_every_theorem_with_its_scope():
    account = Accountant(CHAIN, 100, budget=2)
    account.spend(0.02, 1, 30)
    account.spend(0.02, 61, 90)
    found = account.explain()
    by_name = {bound.theorem: bound for bound in found.bounds}
    assert found.winner.theorem == "Sweep"
    assert found.epsilon == account.epsilon()
    assert by_name["Theorem 3.1 (parallel)"].scope == "1..30 and 61..90 only"
    assert by_name["Theorem 3.7 (sum)"].epsilon >= found.epsilon
    assert by_name["Theorem 2.6 (K·max)"].epsilon == by_name["Theorem 3.7 (sum)"].epsilon
    assert "every time point" in str(found)
    assert json.dumps(found.body())
    same = Accountant(CHAIN, 100)
    same.add_all([Spending.dp(0.02, 1, 100)] * 3)
    names = {bound.theorem: bound.epsilon for bound in same.explain().bounds}
    assert names["Theorem 2.6 (K·max)"] == names["Theorem 3.7 (sum)"]
    same.spend(0.005)  # of another level
    names = {bound.theorem: bound.epsilon for bound in same.explain().bounds}
    assert names["Theorem 2.6 (K·max)"] > names["Theorem 3.7 (sum)"] * 1.05


@given(spendings(length=20, most=4))
@settings(max_examples=25)
def test_no_bound_for_all_points_is_much_below_the_total(records):
    account = Accountant(CHAIN, 20)
    account.add_all(records)
    found = account.explain()
    everywhere = [
        b for b in found.bounds if b.epsilon is not None and b.scope == "every time point"
    ]
    assert min(b.epsilon for b in everywhere) == found.epsilon
    total = account.epsilon()
    for bound in everywhere:
        assert bound.epsilon >= total / 1.01  # quilts may jump where the sweep does not


def test_the_plot_shows_total_and_budget():
    account = Accountant(CHAIN, 60, budget=2)
    account.spend(0.05, 10, 30)
    texts = [text.get_text() for text in account.plot().get_legend().get_texts()]
    assert any("total" in text for text in texts)
    assert any("budget" in text for text in texts)


def test_a_profile_refuses_points_that_are_not_there():
    account = Accountant(CHAIN, 10)
    account.spend(0.1)
    profile = account.profile()
    with pytest.raises(InvalidInputError):
        profile.at(11)
    assert next(iter(profile)).first == 1
    assert np.isclose(profile.values().max(), account.epsilon())


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))],  # noqa: S301  (our own bytes)
    ids=["copied", "pickled"],
)
def test_an_accountant_is_copied_with_all_it_has_spent_and_keeps_its_own_account(duplicate):
    account = Accountant(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 50, budget=2)
    account.spend(dp_epsilon=0.1, start=3, stop=9)
    account.extend(60)
    again = duplicate(account)
    assert (again.spendings, again.length, again.budget) == (account.spendings, 60, 2)
    assert again.exact_epsilon == account.exact_epsilon
    again.spend(dp_epsilon=0.1)
    assert len(account.spendings) == 1
