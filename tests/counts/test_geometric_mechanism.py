from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork.budget import Ledger
from quiltwork.counts import GeometricMechanism, release_levels
from quiltwork.counts.alpha_levels import alpha_for_epsilon
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    UnsupportedError,
)
from quiltwork.noise import TwoSidedGeometric
from tests.counts.oracle import ALPHAS, geometric, is_private


@given(st.integers(1, 9), ALPHAS)
def test_the_matrix_is_the_folded_two_sided_geometric_law(n, alpha):
    mechanism = GeometricMechanism(n, alpha=alpha)
    exact = mechanism.matrix(exact=True)
    assert exact.tolist() == geometric(n, alpha)
    assert is_private(exact.tolist(), alpha)
    assert np.allclose(mechanism.matrix(), exact.astype(float), rtol=1e-14)
    assert [
        [mechanism.probability(i, r) for r in range(n + 1)] for i in range(n + 1)
    ] == exact.tolist()


@given(st.integers(1, 6), st.fractions(Fraction(1, 100), 5, max_denominator=100))
def test_with_epsilon_the_matrix_is_that_of_the_alpha_in_use(n, epsilon):
    mechanism = GeometricMechanism(n, epsilon=epsilon)
    assert mechanism.alpha == alpha_for_epsilon(epsilon)
    assert mechanism.matrix(exact=True).tolist() == geometric(n, mechanism.alpha)
    assert mechanism.epsilon == epsilon


def test_the_unbounded_law_is_two_sided_geometric():
    mechanism = GeometricMechanism(4, alpha=Fraction(1, 3))
    total = sum(mechanism.probability(2, r, unbounded=True) for r in range(-60, 65))
    assert 1 - Fraction(1, 10**20) < total < 1
    assert mechanism.probability(2, -1, unbounded=True) == Fraction(1, 2) / 27


def test_alpha_zero_and_one_have_defined_outcomes():
    assert GeometricMechanism(2, alpha=0).matrix(exact=True).tolist() == np.eye(3).tolist()
    coin = GeometricMechanism(3, alpha=1)
    assert coin.matrix(exact=True).tolist() == [[Fraction(1, 2), 0, 0, Fraction(1, 2)]] * 4
    assert set(Counter(coin.release(2) for _ in range(60))) == {0, 3}
    assert coin.interval(3) == (0, 3)
    with pytest.raises(NotPrivateError, match="publish the count itself"):
        GeometricMechanism(2, alpha=0).release(1)
    for call in (
        lambda: coin.release(1, unbounded=True),
        lambda: coin.probability(1, 1, unbounded=True),
    ):
        with pytest.raises(InvalidInputError, match="no distribution"):
            call()


def chi_square(observed: Counter, expected: dict[int, float], draws: int) -> float:
    """The statistic's distance from its mean in standard deviations."""
    statistic = sum((observed[k] - draws * p) ** 2 / (draws * p) for k, p in expected.items())
    freedom = len(expected) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (0.9, False)])
def test_releases_follow_the_matrix_and_the_test_would_notice_another(factor, fits):
    n, count, draws = 6, 2, 20_000
    mechanism = GeometricMechanism(n, alpha=Fraction(3, 5))
    observed = Counter(mechanism.release(count) for _ in range(draws))
    wrong = GeometricMechanism(n, alpha=Fraction(3, 5) * Fraction(str(factor)))
    expected = dict(enumerate(map(float, wrong.matrix()[count])))
    # At six degrees of freedom 16 deviations are chance once in 4·10¹⁰; the wrong law is at 170.
    assert (chi_square(observed, expected, draws) < 16) is fits


def test_face_values_leave_the_range():
    mechanism = GeometricMechanism(2, alpha=0.9)
    assert any(not 0 <= mechanism.release(1, unbounded=True) <= 2 for _ in range(200))


@given(st.integers(1, 30), st.data())
def test_intervals_cover_the_count_exactly_as_promised(n, data):
    """Coverage by summing exact probabilities of all answers whose interval holds the count."""
    alpha = data.draw(ALPHAS)
    count = data.draw(st.integers(0, n))
    mechanism = GeometricMechanism(n, alpha=alpha)
    covered = sum(
        mechanism.probability(count, r)
        for r in range(n + 1)
        if mechanism.interval(r, 0.8)[0] <= count <= mechanism.interval(r, 0.8)[1]
    )
    assert covered >= Fraction(4, 5)


@pytest.mark.parametrize("count", [-1, 11, 2.0, True, "3", None])
def test_counts_outside_the_range_are_refused(count):
    with pytest.raises(InvalidInputError, match="count"):
        GeometricMechanism(10, alpha=0.5).release(count)


@pytest.mark.parametrize("n", [0, -3, 2.5, True])
def test_n_is_a_positive_integer(n):
    with pytest.raises(InvalidInputError, match="n must"):
        GeometricMechanism(n, alpha=0.5)


def test_construction_and_single_probabilities_do_not_need_the_matrix():
    mechanism = GeometricMechanism(10**9, epsilon=0.1)
    assert 0 <= mechanism.release(10**9) <= 10**9
    assert mechanism.probability(5 * 10**8, 5 * 10**8 + 3) > 0
    with pytest.raises(UnsupportedError, match="probability"):
        mechanism.matrix()


@pytest.fixture
def ledger(tmp_path):
    """A real ledger over 1,000 people who do not depend on each other, with a budget of 1."""
    opened = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    opened.create("d", qw.Clusters(range(1000)), None, 1)
    return opened


def test_a_ledger_is_debited_before_drawing_and_keys_repeat_the_answer(ledger, monkeypatch):
    mechanism = GeometricMechanism(1000, epsilon=Fraction(3, 5))
    first = mechanism.release(500, ledger=ledger, dataset="d", key="k")
    assert ledger.accountant("d").epsilon() == pytest.approx(0.6)
    again = {mechanism.release(500, ledger=ledger, dataset="d", key="k") for _ in range(5)}
    assert again == {first}
    drawn = []
    monkeypatch.setattr(TwoSidedGeometric, "draw_one", lambda _: drawn.append(1))
    with pytest.raises(BudgetExceeded):
        mechanism.release(500, ledger=ledger, dataset="d")
    assert not drawn
    assert ledger.accountant("d").epsilon() == pytest.approx(0.6)
    assert [debit.mechanism for debit in ledger.history("d")] == ["geometric"]


def test_a_level_given_as_alpha_is_charged_its_logarithm_rounded_up(ledger):
    GeometricMechanism(1000, alpha=Fraction(1, 2)).release(500, ledger=ledger, dataset="d")
    (debit,) = ledger.history("d")
    assert debit.spending.per_point >= Fraction(math.log(2))
    assert float(debit.spending.per_point) == math.log(2)


@pytest.mark.parametrize(
    "arguments",
    [{"ledger": True}, {"dataset": "d"}, {"key": "k"}, {"ledger": True, "dataset": ""}],
)
def test_half_a_ledger_is_refused(ledger, arguments):
    given_ = {**arguments, **({"ledger": ledger} if "ledger" in arguments else {})}
    with pytest.raises(InvalidInputError, match=r"ledger|dataset"):
        GeometricMechanism(10, epsilon=1).release(5, **given_)
    assert not ledger.history("d")


def test_households_pay_for_their_largest():
    """Brute force: two people of a cluster always agree, so their count moves by two."""
    labels = ["a", "a", "b", "c"]
    mechanism = GeometricMechanism(4, epsilon=1, beliefs=qw.Clusters(labels))
    assert mechanism.epsilon == 1
    assert mechanism.dp_epsilon <= Fraction(1, 2)
    exact = mechanism.matrix(exact=True)
    leak = max(
        math.log(exact[i][r] / exact[i + 2][r]) for i in range(3) for r in range(5)
    )  # both members of household a change together
    assert leak == pytest.approx(1, abs=1e-9)
    assert leak <= 1


def test_a_chain_as_belief_needs_more_noise_than_independence():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    independent = GeometricMechanism(100, epsilon=1)
    dependent = GeometricMechanism(100, epsilon=1, beliefs=chain)
    assert dependent.alpha > independent.alpha
    assert float(dependent.dp_epsilon) == pytest.approx(
        qw.influence_curve(chain, 100).dp_epsilon(1)
    )


def test_beliefs_about_another_number_of_people_are_refused():
    households = qw.Clusters(["a", "a", "b", "c"])
    for beliefs in (households, [qw.Clusters(range(4)), households]):
        with pytest.raises(InvalidInputError, match="about 4 people, but n is 10"):
            GeometricMechanism(10, epsilon=1, beliefs=beliefs)


def test_no_information_stays_none_under_any_belief():
    mechanism = GeometricMechanism(3, alpha=1, beliefs=qw.Clusters(["a", "a", "b"]))
    assert (mechanism.alpha, mechanism.epsilon, mechanism.dp_epsilon) == (1, 0, 0)
    assert {mechanism.release(1) for _ in range(64)} == {0, 3}  # misses one of them at 2^-63


def test_a_fair_coin_costs_nothing_and_is_tossed_once_for_a_key(ledger):
    coin = GeometricMechanism(1000, alpha=1)
    tossed = {coin.release(5, ledger=ledger, dataset="d", key="k") for _ in range(20)}
    assert len(tossed) == 1
    assert len({coin.release(5, ledger=ledger, dataset="d") for _ in range(64)}) == 2
    assert ledger.status("d").exact_total == 0
    with pytest.raises(InvalidInputError, match="nothing would be debited"):
        coin.release(5, key="k")


@pytest.mark.parametrize("n", [1, 5, 7, 400])
def test_with_a_ledger_no_count_is_refused_for_its_size(ledger, n):
    """Else a dozen free questions with other n would find it out; above n it counts as n."""
    ledger.create("large", qw.Clusters(range(1000)), None, 99)
    release = GeometricMechanism(n, epsilon=45).release
    assert release(7, ledger=ledger, dataset="large") == min(7, n)
    levelled = release_levels(7, n, epsilons=[45, 40], ledger=ledger, dataset="large")
    assert levelled.values == (min(7, n),) * 2
    assert len(ledger.history("large")) == 2
