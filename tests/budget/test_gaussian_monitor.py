"""The monitor for (ε, δ): held against quadrature over answers, and against sums of squares."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import quiltwork as qw
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence.tradeoffs import one_per_point
from quiltwork.influence.tradeoffs.curves import gaussian_epsilon
from quiltwork.influence.tradeoffs.privacy_losses import BoundedRelease, GaussianRelease

DELTA = 1e-6


def symmetric(stay):
    return qw.MarkovChain([[stay, 1 - stay], [1 - stay, stay]])


@pytest.mark.parametrize(
    ("stay", "told"), [(0.6, 0.746), (0.8, 1.062), (0.9, 1.571), (0.95, 2.267)]
)
def test_a_year_of_days_tells_about_one_what_is_known(stay, told):
    seen = qw.monitor(symmetric(stay), rho=0.015, length=365, delta=DELTA)
    assert seen.claimed == pytest.approx(0.715, abs=5e-4)
    assert seen.most_by_now == pytest.approx(told, rel=5e-3)
    assert seen.most_in_the_limit == pytest.approx(told, rel=5e-3)
    assert seen.alike == pytest.approx(20.6, abs=0.05)


@pytest.mark.parametrize(
    ("stay", "told"), [(0.6, 0.254), (0.8, 0.364), (0.9, 0.546), (0.95, 0.806)]
)
def test_quieter_days_too(stay, told):
    seen = qw.monitor(symmetric(stay), rho=0.002, length=365, delta=DELTA)
    assert seen.claimed == pytest.approx(0.243, abs=5e-4)
    assert seen.most_in_the_limit == pytest.approx(told, rel=5e-3)


@pytest.mark.parametrize("stay", [0.9999, 1])
@pytest.mark.parametrize("under", [None, 1])
def test_a_chain_that_hardly_forgets_takes_as_many_steps_as_its_length(monkeypatch, stay, under):
    steps, step = [], one_per_point._StepCurves.step
    monkeypatch.setattr(
        one_per_point._StepCurves, "step", lambda *asked: steps.append(1) or step(*asked)
    )
    chain = qw.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], initial=[0.5, 0.5])
    seen = qw.monitor(chain, rho=0.01, length=20, delta=DELTA, under=under)
    assert len(steps) < 20 * 20
    assert seen.alike * 0.99 <= seen.most_by_now <= seen.alike
    assert math.isinf(seen.most_in_the_limit)
    if under:
        level = math.sqrt(2 * seen.level_by_now)
        assert gaussian_epsilon(math.sqrt(20) * level, DELTA) == pytest.approx(under, rel=5e-3)
    if stay == 1:
        steps.clear()
        long = qw.monitor(chain, rho=0.01, length=1500, delta=DELTA, under=under)
        assert not steps
        assert long.most_by_now == long.alike


def true_delta(chain, mus, node, states, epsilon, edges):
    """δ about one node, each time point released with its μ: cells of answers, one axis a node."""
    length, worst = len(mus), 0.0
    law = chain.stationary if isinstance(chain.initial, str) else np.asarray(chain.initial)
    cell = [np.diff(ndtr(edges[None] - mu * np.arange(2)[:, None]), axis=1) for mu in mus]
    worlds = []
    for state in states:
        mass, total = 0.0, 0.0
        for path in itertools.product(range(2), repeat=length):
            if path[node] != state:
                continue
            chance = law[path[0]] * math.prod(
                chain.transition[a, b] for a, b in itertools.pairwise(path)
            )
            rows = [cell[t][z] for t, z in enumerate(path)]
            mass = mass + chance * np.einsum("i,j,k->ijk", *rows)
            total += chance
        worlds.append(mass / total)
    worst = np.maximum(worlds[0] - math.exp(epsilon) * worlds[1], 0).sum()
    return float(worst)


@pytest.mark.parametrize("initial", ["stationary", [0.2, 0.8]])
@pytest.mark.parametrize("rows", [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
def test_on_two_states_it_is_what_all_answers_tell(rows, initial):
    chain, mu, delta = qw.MarkovChain(rows, initial=initial), 0.8, 1e-3
    seen = qw.monitor(chain, gdp=mu, length=3, delta=delta)
    edges = np.linspace(-6, 7, 131)
    for node in range(3):
        told = seen.at(node + 1)
        truth = [
            max(true_delta(chain, [mu] * 3, node, s, share * told, edges) for s in ((0, 1), (1, 0)))
            for share in (1, 0.98)
        ]
        assert truth[0] <= delta
        assert truth[1] > delta


def test_independent_days_cost_one_release_and_days_alike_all_of_them():
    coin = qw.MarkovChain([[0.3, 0.7]] * 2)
    seen = qw.monitor(coin, rho=0.5, length=30, delta=DELTA)
    assert seen.most_by_now == seen.claimed == seen.limit
    assert seen.claimed == pytest.approx(gaussian_epsilon(1, DELTA), rel=1e-12)
    stuck = qw.MarkovChain(np.eye(2), initial=[0.5, 0.5])
    same = qw.monitor(stuck, rho=0.02, length=12, delta=DELTA)
    assert same.alike == pytest.approx(gaussian_epsilon(math.sqrt(0.48), DELTA), rel=1e-9)
    assert same.most_by_now == pytest.approx(same.alike, rel=1e-2)
    assert same.most_by_now <= same.alike
    assert same.most_in_the_limit == math.inf
    assert "no limit is known" in same.explain()
    assert json.loads(same.to_json())["most_in_the_limit"] is None


@pytest.mark.parametrize("mu", [0.02, 0.17, 1.5])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_connected_dots_lie_above_a_gaussian_and_hardly(mu, delta):
    told, true = GaussianRelease(mu).losses.epsilon(delta), gaussian_epsilon(mu, delta)
    assert true <= told * (1 + 1e-9)
    assert told <= true * 1.003


def test_mechanisms_of_a_level_compose_as_the_worst_of_them_do():
    """Randomized response, of which δ is a sum over how often it told the truth."""
    times, level = 20, 0.3
    likelier = math.exp(level) / (1 + math.exp(level))
    found = BoundedRelease(level).epsilon(times, 1e-4)
    won = np.arange(times + 1)
    one, other = (binom.pmf(won, times, p) for p in (likelier, 1 - likelier))
    for share, kept in ((1, True), (0.95, False)):
        delta = np.maximum(one - math.exp(share * found) * other, 0).sum()
        assert (delta <= 1e-4) == kept


def test_pure_levels_at_a_delta_tell_less_than_without_and_a_slack_counts():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    pure = qw.monitor(chain, 0.1, length=365)
    at_delta = qw.monitor(chain, 0.1, length=365, delta=1e-6)
    assert 0.9 * pure.most_by_now < at_delta.most_by_now <= pure.most_by_now
    loose = qw.monitor(chain, 0.1, length=365, delta=1e-3)
    assert loose.most_by_now < at_delta.most_by_now
    slack = qw.monitor(chain, 0.1, length=365, delta=1e-3, level_delta=1e-5)
    assert loose.most_by_now < slack.most_by_now
    with pytest.raises(InvalidInputError, match="must be below"):
        qw.monitor(chain, 0.1, length=9, delta=1e-6, level_delta=1e-5)


@pytest.mark.parametrize("unit", ["rho", "gdp"])
def test_the_level_that_is_offered_keeps_the_bound_and_a_louder_one_does_not(unit):
    chain = symmetric(0.8)
    seen = qw.monitor(chain, **{unit: 0.01}, length=50, under=1, delta=DELTA)
    kept = qw.monitor(chain, **{unit: seen.level_for_ever}, length=50, delta=DELTA)
    above = qw.monitor(chain, **{unit: 1.05 * seen.level_by_now}, length=50, delta=DELTA)
    assert kept.most_in_the_limit <= 1 * (1 + 2e-3) < above.most_by_now
    assert seen.level_by_now >= seen.level_for_ever > 0
    assert "keeps it for ever" in seen.explain()


def test_other_beliefs_and_the_worst_of_several():
    one, other = symmetric(0.6), symmetric(0.9)
    both = qw.monitor([one, other], rho=0.015, length=40, delta=DELTA)
    assert both.most_by_now == qw.monitor(other, rho=0.015, length=40, delta=DELTA).most_by_now
    any_start = qw.MarkovChain([[0.9, 0.1], [0.1, 0.9]], initial="any")
    least = qw.monitor(any_start, rho=0.015, length=40, delta=DELTA)
    assert both.most_by_now <= least.most_by_now <= 1.3 * both.most_by_now
    week = qw.CyclicChain([one.transition, other.transition], states=[0, 1])
    inside = qw.monitor(week, rho=0.015, length=40, delta=DELTA)
    bounds = [qw.monitor(c, rho=0.015, length=40, delta=DELTA).most_by_now for c in (one, other)]
    assert bounds[0] < inside.most_by_now < bounds[1]
    surely = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    assert qw.monitor(surely, rho=1, length=9, delta=DELTA).most_by_now == 0


def test_it_is_drawn_and_written(tmp_path):
    seen = qw.monitor(symmetric(0.8), rho=0.015, length=365, under=1, delta=DELTA)
    names = [line.name for line in seen.chart().lines]
    assert names == ["leakage by now", "claimed 0.715", "in the limit 1.06", "bound 1"]
    seen.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "is claimed about each" in page
    assert "This is above the bound of 1" in seen.explain()


CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: qw.monitor(CHAIN, rho=0.1, length=9), InvalidInputError, "give delta"),
        (lambda: qw.monitor(CHAIN, length=9), InvalidInputError, "Give the level"),
        (lambda: qw.monitor(CHAIN, length=9, delta=1e-6), InvalidInputError, "in one way"),
        (lambda: qw.monitor(CHAIN, [0.1] * 9, delta=1e-6), InvalidInputError, "not a list"),
        (lambda: qw.monitor(CHAIN, rho=0.1, delta=1e-6), InvalidInputError, "length is missing"),
        (lambda: qw.monitor(CHAIN, rho=-1, length=9, delta=1e-6), InvalidInputError, "rho"),
        (lambda: qw.monitor(CHAIN, rho=1, length=9, delta=0), InvalidInputError, "delta"),
        (lambda: qw.monitor(CHAIN, rho=1, length=0, delta=1e-6), InvalidInputError, "length"),
        (
            lambda: qw.monitor(CHAIN, rho=1, length=9, delta=1e-6, level_delta=1e-9),
            InvalidInputError,
            "goes with the ε",
        ),
        (
            lambda: qw.monitor(CHAIN, rho=1, length=9, delta=1e-6, episode=2),
            UnsupportedError,
            "single time points",
        ),
        (
            lambda: qw.monitor(qw.GaussianSeries(ar=[0.5]), rho=1, length=9, delta=1e-6),
            UnsupportedError,
            "chains, cyclic chains",
        ),
        (
            lambda: qw.monitor(qw.Clusters([1, 1]), rho=1, length=2, delta=1e-6),
            UnsupportedError,
            "about rows",
        ),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()


def test_exact_levels_are_taken():
    chain = symmetric(0.8)
    exact = qw.monitor(chain, rho=Fraction(3, 200), length=30, delta=Fraction(1, 10**6))
    assert exact.most_by_now == qw.monitor(chain, rho=0.015, length=30, delta=1e-6).most_by_now
