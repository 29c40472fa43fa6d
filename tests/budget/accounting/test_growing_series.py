"""A series that grows is priced again: for which beliefs that is free, and who is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs import Clusters, HiddenChain
from quiltwork.budget import Accountant, Spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from tests.budget.accounting.test_accountant import BELIEFS, CHAIN
from tests.budget.accounting.test_usage import spendings
from tests.sizes import sample

SWING = qw.GaussianSeries(ar=[-0.035, -0.998], within=1)
"""Numbers that swing: what is said about two of them speaks louder of one that comes later."""
SUM = Spending.of_query(queries.sum(0, 1).on(1, 2), 1, 2)


@given(st.sampled_from(["chain", "box", "any"]), spendings(length=25, most=4), st.integers(0, 60))
@settings(max_examples=sample(10, full=20))
def test_first_order_chains_grow_freely(name, records, more):
    account = Accountant(BELIEFS[name], 25)
    account.add_all(records)
    before = account.exact_epsilon
    rounding = 1 + Fraction(1, 10**9)
    account.extend(25 + more)
    assert account.exact_epsilon <= before * rounding
    account.extend(26 + more)
    assert account.exact_epsilon <= before * rounding
    account.spend(0.1, 10, 26 + more)
    fresh = Accountant(BELIEFS[name], 26 + more)
    fresh.add_all([*records, Spending.dp(0.1, 10, 26 + more)])
    assert account.exact_epsilon <= fresh.exact_epsilon * rounding


def test_a_series_does_not_shrink_and_rows_do_not_grow():
    account = Accountant(CHAIN, 50)
    with pytest.raises(InvalidInputError, match="cannot shrink"):
        account.extend(49)
    with pytest.raises(UnsupportedError, match="fixed rows"):
        Accountant(Clusters(["a", "b"])).extend(3)
    single = Accountant(CHAIN, 1, episode=2)
    single.add(Spending(1, 1, composes_by="nothing", epsilon=Fraction(1, 10)))
    with pytest.raises(UnsupportedError, match="episodes of 2 are protected"):
        single.extend(2)


def swinging_leakage(length: int) -> float:
    """What the sum of X_1 and X_2 with Laplace noise of scale 1 tells about the worst X_i.

    Given X_i the two worlds differ by a translation: the noise sees Σ_t |corr(X_t, X_i)|, at most 1
    per point, since values are clipped to a range of 1 and differ by at most 1.
    """
    first, second = -0.035, -0.998
    rho = [1.0, first / (1 - second)]
    while len(rho) < length:
        rho.append(first * rho[-1] + second * rho[-2])
    return max(sum(min(1.0, abs(rho[abs(t - i)])) for t in (0, 1)) for i in range(length))


@pytest.mark.parametrize("length", [2, 10, 60])
def test_numbers_that_swing_tell_more_in_a_longer_series(length):
    account = Accountant(SWING, 2)
    account.add(SUM)
    account.extend(length)
    assert account.epsilon() == pytest.approx(swinging_leakage(length), rel=1e-6)


def test_a_series_grows_as_far_as_its_budget_allows():
    assert swinging_leakage(2) < 1.05 < swinging_leakage(60)
    account = Accountant(SWING, 2, budget=1.05)
    account.add(SUM)
    longest = max(n for n in range(2, 60) if swinging_leakage(n) <= 1.05)
    with pytest.raises(BudgetExceeded, match=rf"1\.366.* has {longest} time points"):
        account.extend(60)
    assert account.length == 2
    account.extend(longest)
    assert account.epsilon() <= 1.05
    with pytest.raises(BudgetExceeded, match="not even one more time point fits"):
        account.extend(longest + 1)


def both(q: float) -> tuple[HiddenChain, list[tuple[int, int, int]]]:
    """Two independent rare events, and then whether both happened, for good.

    The inner state holds what the shown ones do not: returns the belief and all paths of three.
    """
    steps = np.zeros((8, 8))
    steps[0, 2], steps[0, 3], steps[1, 4], steps[1, 5] = 1 - q, q, 1 - q, q
    steps[[2, 3, 4], 6] = steps[5, 7] = steps[6, 6] = steps[7, 7] = 1
    start = [1 - q, q, 0, 0, 0, 0, 0, 0]
    paths = [(a, b, a & b) for a, b in itertools.product((0, 1), repeat=2)]
    return HiddenChain(steps, [0, 1, 0, 1, 0, 1, 0, 1], start), paths


def count_leakage(q: float, level: float, paths, node: int) -> float:
    """The most that any mechanism of this level on X_1 and X_2 tells about one node.

    Its answer to a pair may favour it by e^level for each 1: the supremum where all is monotone.
    """
    weight, favour = np.zeros(2), np.zeros(2)
    for path in paths:
        p = np.prod([q if x else 1 - q for x in path[:2]])
        weight[path[node]] += p
        favour[path[node]] += p * exp(level * sum(path[:2]))
    return abs(log((favour / weight)[1] / (favour / weight)[0]))


def test_a_state_that_shows_what_two_others_have_in_common_is_told_more():
    q, level = 0.001, 0.5
    belief, paths = both(q)
    account = Accountant(belief, 2, budget=0.75)
    account.spend(level, 1, 2)
    first = max(count_leakage(q, level, paths, node) for node in (0, 1))
    later = count_leakage(q, level, paths, 2)
    assert first < 0.51 < 0.99 < later
    assert first <= account.epsilon() < 0.75
    with pytest.raises(BudgetExceeded, match="not even one more time point fits"):
        account.extend(3)
    free = Accountant(belief, 2)
    free.spend(level, 1, 2)
    free.extend(3)
    assert later <= free.epsilon() <= 2 * level * (1 + 1e-9)


def test_what_all_charge_together_lets_any_series_grow():
    account = Accountant(SWING, 2, budget=2)
    account.add(SUM)
    account.extend(10**4)
    assert account.epsilon() <= 2


def test_at_the_edge_of_the_budget_rounding_is_no_reason_to_refuse():
    """A first-order chain, spent to the last digit, grows to any length."""
    account = Accountant(CHAIN, 30, budget=1)
    account.spend(account.largest_next(4, 20), 4, 20)
    assert account.remaining < 1e-8
    for length in (31, 600, 10**6):
        account.extend(length)
        assert account.epsilon() <= 1 + 1e-9


GROWING = (
    qw.MarkovChain([[0.6, 0.4, 0], [0, 0.1, 0.9], [0, 1, 0]], [1, 0, 0]),  # whose claim rises
    both(0.001)[0],
    both(0.2)[0],
    CHAIN,
)


@pytest.mark.parametrize("belief", GROWING, ids=range(len(GROWING)))
@pytest.mark.parametrize("budget", [1.5, 2.5])
def test_no_account_grows_above_its_budget(belief, budget):
    account, refused = Accountant(belief, 2, budget=budget), 0
    account.spend(budget / 2.5 * 2, 2, 2)
    account.spend(min(account.largest_next(1, 1), 1) / 2, 1, 1)
    for length in (3, 30, 600):
        try:
            account.extend(length)
        except BudgetExceeded:
            refused += 1
        fresh = Accountant(belief, account.length)
        fresh.add_all(account.spendings)
        assert fresh.epsilon() <= budget * (1 + 1e-9)
    assert account.length == 600 or refused
