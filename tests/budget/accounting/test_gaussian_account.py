"""Accounts of (ε, δ): squares below a cap, held against enumeration, quadrature and quadratics."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy.special import ndtr

import quiltwork as qw
from quiltwork import queries
from quiltwork.budget import Spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.influence.tradeoffs import largest_level
from quiltwork.influence.tradeoffs.curves import (
    gaussian_curve,
    gaussian_epsilon,
    gaussian_level,
    level_of_pure,
)
from quiltwork.influence.tradeoffs.sweep import Window

P = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = qw.MarkovChain(P, states=["rest", "walk"])


def opened(beliefs=CHAIN, length=100, budget=1, delta=1e-6, **given):
    return qw.Accountant(beliefs, length, budget, delta=delta, **given)


def test_as_many_releases_fit_as_they_were_calibrated_for_and_not_one_more():
    account, histogram = opened(), queries.histogram()
    asked = qw.calibrate(CHAIN, 100, 1, query=histogram, noise="gaussian", delta=1e-6, releases=365)
    one = Spending.of_gaussian(histogram, asked.exact_scale, 100)
    assert account.how_many_more(one) == 365
    assert (account.epsilon(), account.used) == (0, 0)
    account.add(one)
    assert account.epsilon() == 1
    assert account.used == pytest.approx(1 / 365, rel=1e-9)
    account.add_all([one] * 364)
    assert account.used == pytest.approx(1, rel=1e-9)
    with pytest.raises(BudgetExceeded, match="Nothing fits on this window any more"):
        account.add(one)
    assert len(account.spendings) == 365


def test_squares_add_up_per_time_point_as_a_list_of_all_points_says():
    rng, account = np.random.default_rng(5), opened(length=60, budget=5)
    spent = [Fraction(0)] * 60
    for _ in range(40):
        start, stop = sorted(rng.integers(1, 61, 2).tolist())
        level = Fraction(int(rng.integers(1, 9)), 400)
        if rng.random() < 0.5:
            account.spend(gdp=level, start=start, stop=stop)
        else:
            account.spend(rho=level**2 / 2, start=start, stop=stop)
        for point in range(start - 1, stop):
            spent[point] += level**2
    assert account.after().square == max(spent)
    listed = [run.square for run in account.profile().runs for _ in range(run.first, run.last + 1)]
    assert listed == pytest.approx([float(one) for one in spent], rel=1e-12)
    cap = Fraction(account.profile().cap) ** 2
    for start, stop in ((1, 3), (20, 41), (60, 60)):
        left = min(cap - one for one in spent[start - 1 : stop])
        largest = account.largest_next(start, stop)
        assert largest == pytest.approx(math.sqrt(left), rel=1e-9)
        assert account.fits(Spending.gaussian(start, stop, gdp=largest))
        assert not account.fits(Spending.gaussian(start, stop, gdp=1.001 * largest))
    scale = account.smallest_scale(queries.histogram().on(20, 41))
    assert account.fits(Spending.of_gaussian(queries.histogram().on(20, 41), scale, 60))
    assert not account.fits(Spending.of_gaussian(queries.histogram().on(20, 41), 0.999 * scale, 60))


def worlds(chain, length, node):
    """The paths, and their chances given each state of a node."""
    paths = list(itertools.product(range(chain.size), repeat=length))
    chances = np.array(
        [
            chain.stationary[path[0]]
            * math.prod(chain.transition[a, b] for a, b in itertools.pairwise(path))
            for path in paths
        ]
    )
    at = np.array([path[node - 1] for path in paths])
    return np.array(paths), [np.where(at == a, chances, 0) / chances[at == a].sum() for a in (0, 1)]


EDGES = np.linspace(-9, 10, 240)


def cells(centres):
    """The chances of narrow cells, in standard deviations, around each centre."""
    return np.diff(ndtr(EDGES[None] - np.asarray(centres)[:, None]), axis=1)


def worst_delta(chain, length, epsilon, first, second):
    """δ of two answers: `second(y)` gives the weights of the other one's points by the first's."""
    worst = 0.0
    for node in range(1, length + 1):
        paths, given = worlds(chain, length, node)
        one = cells(paths @ first)
        for a, b in ((0, 1), (1, 0)):
            total = 0.0
            for weights, chosen in second:
                other = cells(paths @ weights)
                mass = [np.einsum("p,pi,pj->ij", given[w], one[:, chosen], other) for w in (a, b)]
                total += float(np.maximum(mass[0] - math.exp(epsilon) * mass[1], 0).sum())
            worst = max(worst, total)
    return worst


@pytest.mark.parametrize("rows", [P, [[0.7, 0.3], [0.3, 0.7]]])
def test_windows_within_the_caps_leak_no_more_than_delta_chosen_adaptively_too(rows):
    """Two counts; the second one's window hangs on whether the first answer was high."""
    chain, epsilon, delta, length = qw.MarkovChain(rows), 0.5, 1e-2, 4
    cap = largest_level(chain, Window(1, length, length), epsilon, delta).level
    assert qw.Accountant(chain, length, epsilon, delta=delta).largest_next() <= cap
    share = 0.6
    first = np.array([1, 1, 1, 0]) * cap * math.sqrt(share)
    later = [
        np.array(weights) * cap * np.sqrt(np.where(first > 0, 1 - share, 1))
        for weights in ([0, 1, 1, 0], [0, 0, 0, 1])
    ]
    high = np.arange(len(EDGES) - 1) >= int(np.searchsorted(EDGES, first.sum() / 2))
    total_charge = np.ones_like(high)
    fixed = [worst_delta(chain, length, epsilon, first, [(one, total_charge)]) for one in later]
    adaptive = worst_delta(chain, length, epsilon, first, [(later[0], high), (later[1], ~high)])
    assert max(*fixed, adaptive) <= delta
    assert max(*fixed, adaptive) > 0.1 * delta
    louder = worst_delta(chain, length, epsilon, 3 * first, [(3 * later[0], total_charge)])
    assert louder > delta


def test_the_plans_that_make_a_filter_wrong_are_both_above_the_cap():
    """Each keeps ε = 1 and δ = 1e-6 alone; choosing by the first outcome does not."""
    chain = qw.MarkovChain([[0.9, 0.1], [0.1, 0.9]])
    cap = largest_level(chain, Window(1, 2, 2), 1, 1e-6).level
    assert cap < min(0.1875, math.hypot(0.1875, 0.14447), 0.18198)
    account = opened(chain, 2)
    account.spend(gdp=account.largest_next(1, 1), start=1, stop=1)
    assert account.largest_next(1, 1) == pytest.approx(0, abs=1e-8)
    assert account.largest_next(2, 2) < cap


@pytest.mark.parametrize("level", [1e-6, 0.057, 0.5, 3.0])
def test_a_pure_level_is_hidden_by_its_gaussian_one_and_hardly_by_less(level):
    mu = level_of_pure(level)
    share = math.exp(level) / (1 + math.exp(level))
    below = 0
    for gamma in np.exp(np.linspace(0, level, 50)).tolist():
        pure = max(share - gamma * (1 - share), 0)
        assert gaussian_curve(mu, gamma) >= pure * (1 - 1e-9)
        below += gaussian_curve(0.95 * mu, gamma) < pure
    assert below > 0


def test_pure_releases_are_dear_unless_a_share_is_kept_for_them():
    account = opened()
    with pytest.raises(
        BudgetExceeded, match=r"0.05\d+ on every time point .* grants 0.2997. Keep a share"
    ):
        account.spend(dp_epsilon=0.06)
    account.spend(dp_epsilon=0.056)
    assert account.used == pytest.approx((level_of_pure(0.056) / account.profile().cap) ** 2)
    with_share = opened(pure=0.1)
    assert with_share.profile().cap == pytest.approx(0.0501, rel=1e-2)
    with_share.spend(dp_epsilon=0.1)
    with_share.spend(gdp=0.05)
    assert with_share.epsilon() == 1
    with pytest.raises(BudgetExceeded):
        with_share.spend(dp_epsilon=0.001)
    with pytest.raises(UnsupportedError, match="leaves nothing"):
        opened(pure=0.3)
    pure = qw.Accountant(CHAIN, 100, 1)
    assert pure.largest_next() == pytest.approx(0.2997, rel=1e-3)


def test_growing_is_free_where_the_cap_holds_for_every_length():
    account = opened()
    account.spend(gdp=account.largest_next())
    account.extend(10**6)
    assert (account.length, account.epsilon()) == (10**6, 1)
    account.spend(gdp=account.largest_next(101), start=101)
    stuck = qw.MarkovChain(np.eye(2), initial=[0.5, 0.5])
    fixed = opened(stuck, 10)
    assert fixed.largest_next() == pytest.approx(gaussian_level(1, 1e-6) / 10, rel=1e-9)
    fixed.spend(gdp=0.001)
    with pytest.raises(UnsupportedError, match="holds for 10 time points"):
        fixed.extend(11)
    assert fixed.length == 10


def sticky(stay):
    return qw.MarkovChain([[stay, 1 - stay], [1 - stay, stay]])


@pytest.mark.parametrize(
    ("stay", "length", "count"),
    [
        (0.99, 20, 100),
        (0.999, 20, 1),
        (0.97, 24, 50),
        (0.9, 5, 1),
        (0.99, 100, 50),
        (0.999999, 20, 1),
    ],
)
def test_an_account_takes_the_releases_that_are_calibrated_for_its_claim(stay, length, count):
    chain, walks = sticky(stay), queries.count(1)
    noise = qw.calibrate(
        chain, length, 1, query=walks, noise="gaussian", delta=1e-6, releases=count
    )
    release = Spending.of_gaussian(walks, noise.scale, length)
    account = qw.Accountant(chain, length, 1, delta=1e-6)
    account.add_all([release] * count)
    assert account.used == pytest.approx(1, rel=1e-9)
    assert account.profile().cap >= gaussian_level(1, 1e-6) / length * (1 - 1e-12)


def test_under_a_cap_for_one_length_a_series_grows_before_its_first_release_only():
    account = qw.Accountant(sticky(0.97), 10, 1, delta=1e-6)
    short = account.largest_next()
    assert "This cap is for 10 time points" in account.explain().explain()
    account.extend(20)
    assert account.largest_next() == qw.Accountant(sticky(0.97), 20, 1, delta=1e-6).largest_next()
    assert account.largest_next() < 0.9 * short
    account.spend(gdp=1e-6)
    with pytest.raises(UnsupportedError, match="greatest length"):
        account.extend(21)
    assert account.length == 20
    with pytest.raises(InvalidInputError, match="cannot shrink"):
        qw.Accountant(sticky(0.97), 10, 1, delta=1e-6).extend(9)
    again = pickle.loads(pickle.dumps(account))  # noqa: S301
    assert (again.used, again.profile().cap) == (account.used, account.profile().cap)


def test_a_release_that_misses_by_rounding_is_told_so():
    account = opened()
    most = account.largest_next()
    with pytest.raises(BudgetExceeded, match=r"to more than 100 % .*rounding alone"):
        account.spend(gdp=most * (1 + 1e-11))
    with pytest.raises(BudgetExceeded, match=r"With 1\.01.* times this noise"):
        account.spend(gdp=most * 1.01)
    account.spend(gdp=most)


def test_a_cap_for_every_length_is_one_under_all_beliefs():
    stuck = qw.MarkovChain(np.eye(2), initial=[0.5, 0.5])
    both = qw.Accountant([sticky(0.9), stuck], 60, 1, delta=1e-6)
    assert qw.Accountant(sticky(0.9), 60, 1, delta=1e-6).profile().length is None
    assert both.largest_next() == qw.Accountant(stuck, 60, 1, delta=1e-6).largest_next()
    both.spend(gdp=0.001)
    with pytest.raises(UnsupportedError, match="holds for 60 time points"):
        both.extend(10**6)


def test_clusters_pay_for_all_rows_of_the_largest_and_networks_refuse():
    account = opened(qw.Clusters([1, 1, 1, 2]), None)
    assert account.largest_next() == pytest.approx(gaussian_level(1, 1e-6) / 3, rel=1e-9)
    graph = nx.DiGraph([(1, 2)])
    network = qw.Network(graph, {1: np.array([0.5, 0.5]), 2: np.array(P)}, [0, 1])
    with pytest.raises(UnsupportedError, match="Gaussian noise needs a chain"):
        opened(network, None)


def test_numbers_that_move_together_add_squared_shifts_about_every_secret():
    """Shifts by Σ |ρ_ti| over a window and σ; their squares add up: a quadratic form."""
    series, length = qw.GaussianSeries(ar=[0.8], within=1), 30
    account = opened(series, length, budget=3)
    near = 0.8 ** np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    squares = np.zeros(length)
    for start, stop, sigma in ((1, 30, 40.0), (5, 12, 11.0), (12, 12, 6.5)):
        query = queries.sum(0, 1).on(start, stop)
        account.add(Spending.of_gaussian(query, Fraction(sigma), length))
        squares += (near[:, start - 1 : stop].sum(axis=1) / sigma) ** 2
    found = np.zeros(length)
    for run in account.profile().runs:
        found[run.first - 1 : run.last] = run.square
    assert found == pytest.approx(squares, rel=1e-6)
    assert (found >= squares * (1 - 1e-12)).all()
    assert account.profile().cap == pytest.approx(gaussian_level(3, 1e-6))
    with pytest.raises(UnsupportedError, match="only sums and means"):
        account.spend(gdp=0.01)
    two = opened([series, qw.GaussianSeries(ar=[0.5], within=1)], length, budget=3)
    two.add(Spending.of_gaussian(queries.sum(0, 1), 40, length))
    assert two.after().square == pytest.approx(near.sum(axis=1).max() ** 2 / 1600, rel=1e-6)


def test_a_calibrated_release_fits_an_account_of_its_budget():
    series, data = qw.GaussianSeries(ar=[0.8], within=1), [0.5] * 50
    released = qw.release(data, queries.mean(0, 1), series, 1, noise="gaussian", delta=1e-6)
    account = opened(series, 50)
    assert account.how_many_more(released) == 1
    account.add(released)
    assert account.used == pytest.approx(1, rel=1e-6)
    walks = qw.release(
        ["rest"] * 100, queries.transitions(), CHAIN, 1, noise="gaussian", delta=1e-6
    )
    assert opened().how_many_more(walks) == 1


def test_without_a_budget_it_prices_a_plan_fixed_beforehand():
    plan = qw.Accountant(CHAIN, 100, delta=1e-6)
    assert plan.epsilon() == 0
    plan.spend(gdp=opened().largest_next())
    assert plan.epsilon() == pytest.approx(1, rel=5e-3)
    alone = qw.Accountant(qw.MarkovChain([[0.5, 0.5]] * 2), 100, delta=1e-6)
    alone.spend(gdp=gaussian_level(1, 1e-6))
    assert alone.epsilon() == pytest.approx(1, rel=5e-3)
    assert "plan fixed beforehand" in str(plan.explain())
    with pytest.raises(UnsupportedError, match="no budget"):
        plan.largest_next()


@pytest.mark.parametrize("releases", [10, 11, 14, 40, 1000])
def test_a_loud_plan_costs_much_and_is_no_error(releases):
    """Group privacy of a hundred points is beyond what floats hold; the sweep is not."""
    coin = qw.Accountant(qw.MarkovChain([[0.3, 0.7]] * 2), 100, delta=1e-6)
    coin.add_all([Spending.of_gaussian(queries.count(1), 10, 100)] * releases)
    told, level = coin.epsilon(), math.sqrt(releases) / 10
    assert told == pytest.approx(gaussian_epsilon(level, 1e-6), rel=5e-3)
    assert told >= gaussian_epsilon(level, 1e-6) * (1 - 1e-9)


def test_episodes_pay_for_all_of_their_points():
    evening = opened(episode=6)
    assert opened().largest_next() / 3 < evening.largest_next() * 2 < opened().largest_next()


def test_it_is_copied_and_drawn_and_says_what_it_claims():
    account = opened(pure=0.05)
    account.spend(gdp=0.03, start=3, stop=9)
    copy = pickle.loads(pickle.dumps(account))  # noqa: S301
    assert (copy.epsilon(), copy.used, copy.spendings) == (1, account.used, account.spendings)
    said = str(account.explain())
    assert "keep ε = 1 and δ = 1e-06" in said
    assert "Pure levels may add up to 0.05" in said
    assert account.chart().lines[0].name == "spent"
    leak, node = account.leak_under(qw.MarkovChain([[0.99, 0.01]] * 2, states=["rest", "walk"]))
    assert 0 < leak < 0.2
    assert 3 <= node <= 9


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: opened(delta=2), InvalidInputError, "delta"),
        (lambda: qw.Accountant(CHAIN, 100, 1, pure=0.1), InvalidInputError, "goes with delta"),
        (lambda: opened(budget=None, pure=0.1), InvalidInputError, "share of a budget"),
        (lambda: opened().spend(), InvalidInputError, "Give one of"),
        (lambda: opened().spend(rho=1, gdp=1), InvalidInputError, "Give one of"),
        (lambda: opened().spend(gdp=1, stop=101), InvalidInputError, "does not fit a series"),
        (lambda: qw.Accountant(CHAIN, 100, 1).spend(rho=1), UnsupportedError, "no pure level"),
        (
            lambda: qw.Accountant(CHAIN, 100, 1).spend(),
            InvalidInputError,
            "Give one of dp_epsilon=",
        ),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
