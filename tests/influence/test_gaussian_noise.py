"""Gaussian noise for (ε, δ): the numbers of the theory, and what calibration promises."""

from __future__ import annotations

import json
import math

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import quiltwork as qw
from quiltwork.beliefs import Clusters
from quiltwork.errors import InvalidInputError, UnsupportedError

P = [[0.9, 0.1], [0.4, 0.6]]


@pytest.fixture(scope="module")
def chain():
    return qw.MarkovChain(P, states=["rest", "walk"])


def gaussian(chain, delta=1e-6, **given):
    return qw.calibrate(chain, 100, 1, noise="gaussian", delta=delta, **given)


@pytest.mark.parametrize(("delta", "sigma"), [(1e-6, 14.06), (1e-9, 18.31)])
def test_a_count_needs_what_the_theory_says(chain, delta, sigma):
    found = gaussian(chain, delta, query=qw.queries.count("walk"))
    assert found.scale == pytest.approx(sigma, rel=5e-3)
    assert found.scale >= sigma * (1 - 1e-3)
    assert found.method == "f-sweep"


def test_k_releases_need_the_root_of_k_times_as_much_and_laplace_noise_k_times(chain):
    one, laplace = gaussian(chain).scale, qw.calibrate(chain, 100, 1).scale
    year = gaussian(chain, releases=365).scale
    assert year == pytest.approx(one * math.sqrt(365), rel=1e-9)
    assert year == pytest.approx(269, rel=5e-3)
    gain = 365 * laplace / (year * math.sqrt(2 / math.pi))
    assert gain == pytest.approx(5.7, rel=0.01)
    pays = next(k for k in range(1, 99) if k * laplace > one * math.sqrt(2 * k / math.pi))
    assert pays == 12  # after a break-even at 11 releases and some


@pytest.mark.parametrize(
    ("belief", "sigma"), [(qw.ChainBox(P, P), 15.4), (qw.MarkovChain(P, "any"), 14.7)]
)
def test_any_start_needs_little_more(belief, sigma):
    assert gaussian(belief).scale == pytest.approx(sigma, rel=5e-3)


@pytest.mark.parametrize(("stay", "sigma"), [(0.95, 76.87), (0.99, 400.9), (0.997, 1346)])
def test_slow_chains_are_within_a_percent_of_the_finest_grid(stay, sigma):
    """The numbers are those of grids ten times as fine, of the last one four times."""
    chain = qw.MarkovChain([[stay, 1 - stay], [1 - stay, stay]])
    found = qw.calibrate(chain, 10**5, 1, noise="gaussian", delta=1e-6)
    assert sigma * (1 - 1e-3) <= found.scale <= sigma * 1.01


def test_independent_points_need_what_other_libraries_say():
    """The least σ with Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = δ (Balle and Wang 2018)."""
    alone = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    exact = brentq(
        lambda mu: ndtr(mu / 2 - 1 / mu) - math.e * ndtr(-mu / 2 - 1 / mu) - 1e-6, 0.05, 1
    )
    assert gaussian(alone).scale == pytest.approx(1 / exact, rel=1e-3)
    assert gaussian(alone).scale >= (1 / exact) * (1 - 1e-9)


def test_queries_are_charged_by_their_l2_sensitivity(chain):
    count = gaussian(chain, query=qw.queries.count("walk")).scale
    for query, squared in (
        (qw.queries.histogram(), 2),
        (qw.queries.transitions(), 6),
        (qw.queries.histogram().on(3, 40), 2),
    ):
        found = gaussian(chain, query=query)
        assert found.sensitivity_squared == squared
        if query.stop is None:
            assert found.scale == pytest.approx(count * math.sqrt(squared), rel=1e-9)
    share = gaussian(chain, query=qw.queries.frequencies()).scale
    assert share == pytest.approx(count * math.sqrt(2) / 100, rel=1e-9)


def test_short_windows_and_episodes(chain):
    whole, few = gaussian(chain).scale, gaussian(chain, query=qw.queries.count("walk").on(7, 9))
    assert few.scale < 0.65 * whole
    alone = gaussian(qw.MarkovChain([[0.5, 0.5]] * 2)).scale
    assert few.scale < 3 * alone
    evening = gaussian(chain, episode=6).scale
    assert 6 * alone < evening < 12 * alone


def test_sets_of_beliefs_take_the_worst(chain):
    slower = qw.MarkovChain([[0.95, 0.05], [0.05, 0.95]], states=["rest", "walk"])
    found = qw.calibrate([chain, slower], 100, 1, noise="gaussian", delta=1e-6)
    assert found.belief == 2
    assert found.scale == gaussian(slower).scale


def test_clusters_pay_for_all_of_their_rows():
    groups = Clusters([1, 1, 1, 2, 3, 3])
    one = Clusters([1, 2, 3, 4])
    found = qw.calibrate(groups, None, 1, noise="gaussian", delta=1e-6)
    alone = qw.calibrate(one, None, 1, noise="gaussian", delta=1e-6)
    assert found.scale == pytest.approx(3 * alone.scale, rel=1e-9)


def test_numbers_that_move_together_are_shifted_by_so_much(chain):
    """The worlds of a secret differ by a translation: sum over |φ|^d of its differences."""
    series, query = qw.GaussianSeries(ar=[0.8]), qw.queries.sum(0, 1)
    found = qw.calibrate(series, 50, 1, noise="gaussian", delta=1e-6, query=query)
    laplace = qw.calibrate(series, 50, 1, query=query)
    alone = gaussian(qw.MarkovChain([[0.5, 0.5]] * 2)).scale
    assert found.scale == pytest.approx(float(laplace.exact_scale) * alone, rel=1e-3)
    assert found.method == "gaussian"


def test_it_says_what_it_found(chain):
    found = gaussian(chain, releases=10)
    assert "for each of 10 releases like it" in found.explain()
    assert "times as much noise" in found.explain()
    document = json.loads(found.to_json())
    assert document["schema"] == "quiltwork/gaussian-calibration"
    assert document["delta"] == "1/1000000"


def test_a_belief_that_leaves_nothing_open_needs_no_noise():
    certain = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    assert gaussian(certain).scale == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"noise": "gaussian"}, "delta"),
        ({"noise": "gaussian", "delta": 0}, "delta"),
        ({"noise": "gaussian", "delta": 1}, "delta"),
        ({"noise": "gaussian", "delta": 1e-6, "releases": 0}, "releases"),
        ({"noise": "gaussian", "delta": 1e-6, "method": "exact"}, "for geometric noise"),
        ({"delta": 1e-6}, "needs noise='gaussian'"),
        ({"releases": 3}, "needs noise='gaussian'"),
        ({"noise": "laplace"}, "noise must be"),
    ],
)
def test_bad_arguments_get_a_sentence(chain, given, said):
    with pytest.raises(InvalidInputError, match=said):
        qw.calibrate(chain, 100, 1, **given)


def test_networks_and_labels_refuse(chain):
    with pytest.raises(UnsupportedError, match="chooses a label"):
        gaussian(chain, query=qw.queries.most_common())
    graph = nx.DiGraph([(1, 2)])
    network = qw.Network(graph, {1: np.array([0.5, 0.5]), 2: np.array(P)}, [0, 1])
    with pytest.raises(UnsupportedError, match="Gaussian noise needs a chain"):
        qw.calibrate(network, None, 1, noise="gaussian", delta=1e-6)
