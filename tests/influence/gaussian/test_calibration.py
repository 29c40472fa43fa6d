"""Calibration under Gaussian beliefs: windows, secrets, stretches, sets, what is hidden."""

from __future__ import annotations

import numpy as np
import pytest

from evidence import gaussian_reference as reference
from quiltwork import queries
from quiltwork.beliefs import GaussianRows, GaussianSeries
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.guarantee import bayesian_epsilon
from quiltwork.influence import (
    bayesian_dp,
    calibrate,
    dp_for_bayesian_dp,
    influence_curve,
    max_influence,
)
from quiltwork.influence.gaussian.reach import reach_of
from quiltwork.influence.gaussian.worst_stretch import SeriesLeakage, SumLevels

SUM = queries.sum(0, 1)
AR = GaussianSeries(ar=[0.8])


@pytest.mark.parametrize("length", [10**3, 10**6, 10**8, 10**12])
def test_a_series_of_any_length_needs_the_factor_of_an_endless_one(length):
    assert calibrate(AR, length, 1, query=SUM).scale == pytest.approx(9, rel=1e-9)
    assert calibrate(AR, length, 1, query=SUM).scale >= 9


@pytest.mark.parametrize("phi", [0.5, -0.8, 0.99, 0.99999])
@pytest.mark.parametrize("episode", [1, 2, 7])
def test_stretches_of_an_autoregression_have_a_closed_form(phi, episode):
    found = calibrate(GaussianSeries(ar=[phi]), 10**9, 1, query=SUM, episode=episode).scale
    assert found == pytest.approx(episode + 2 * abs(phi) / (1 - abs(phi)), rel=1e-8)


def test_longer_memory_pays_for_the_worst_corner():
    belief = GaussianSeries(ar=[1.5, -0.7], within=0.001)
    found = calibrate(belief, 10**6, 1, query=SUM, episode=2).scale
    assert found == pytest.approx(0.0311, rel=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_windows_secrets_and_clipping_are_what_the_covariance_matrix_says(seed):
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 60))
    ar = reference.random_autoregression(random, int(random.integers(1, 4)))
    start, first = (int(n) for n in random.integers(1, length + 1, 2))
    stop, last = int(random.integers(start, length + 1)), int(random.integers(first, length + 1))
    within = float(random.choice([0.2, 1, 3]))
    levels = np.zeros(length)
    levels[start - 1 : stop] = 1.0
    covariance = np.abs(reference.series_covariance(ar, length))
    each = np.minimum(covariance * within, 1) @ levels
    query = queries.mean(0, 1).on(start, stop)
    found = calibrate(GaussianSeries(ar=ar, within=within), length, 2, None, query, (first, last))
    points = stop - start + 1
    assert found.scale * 2 * points == pytest.approx(each[first - 1 : last].max(), rel=1e-9)
    nodes, scales = found.per_node().arrays()
    assert nodes.tolist() == list(range(first, last + 1))
    assert scales * 2 * points == pytest.approx(each[first - 1 : last], rel=1e-9, abs=1e-12)
    assert scales[found.node - first] == pytest.approx(found.scale, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_many_windows_add_up_node_by_node(seed):
    """The convolution of what was spent with the reach, against a dense product."""
    random = np.random.default_rng(seed)
    length, episode = 3000, int(random.integers(1, 4))
    belief = GaussianSeries(ar=[0.9, -0.3]) if seed % 2 else GaussianSeries(ar=[-0.7])
    levels = np.zeros(length)
    for _ in range(int(random.integers(1, 6))):
        start = int(random.integers(length))
        levels[start : start + int(random.integers(1, 900))] += random.uniform(0.1, 2)
    first = np.flatnonzero(np.append(True, np.diff(levels) != 0))
    spent = SumLevels(first + 1, levels[first], length, 0.25)
    reach = reach_of(belief, episode, length - 1)
    leakage = SeriesLeakage(reach, episode, 0.5)
    kernels = 0.5 * reach.corners
    dense = []
    for i in range(length - episode + 1):
        after, before = levels[i + episode :], levels[:i][::-1]
        sides = (one[: kernels.shape[1]] for one in (after, before))
        own = 0.5 * levels[i : i + episode].sum() + 0.25
        dense.append(own + sum((kernels[:, : len(s)] @ s).max() for s in sides))
    found = leakage.worst(spent, range(1, length + 1))
    assert found.leak == pytest.approx(max(dense), rel=1e-9)
    assert dense[found.node - 1] == pytest.approx(max(dense), rel=1e-9)
    runs = leakage.profile(spent, range(1, length + 1))
    profile = np.repeat(runs[2], runs[1] - runs[0] + 1)[: len(dense)]
    assert profile == pytest.approx(np.array(dense), rel=1e-9, abs=1e-12)


def test_a_true_difference_beyond_what_is_hidden_tells_more_than_claimed():
    """Clipping a recorded value does not bound a true one: ±10 under a range of [−1, 1]."""
    covariance = reference.series_covariance([0.5], 2)
    wide = calibrate(GaussianSeries(ar=[0.5], within=20), 2, 1, query=queries.sum(-1, 1)).scale
    narrow = calibrate(GaussianSeries(ar=[0.5]), 2, 1, query=queries.sum(-1, 1)).scale
    asked = (covariance, [0], [10.0], [-10.0], [0, 1], (-1, 1))
    assert reference.clipped_leakage(*asked, scale=narrow) == pytest.approx(1.333, abs=1e-3)
    assert reference.clipped_leakage(*asked, scale=wide) <= 1


def test_an_unknown_coefficient_is_worst_at_its_largest():
    within_bounds = calibrate(GaussianSeries(bounds=(-0.2, 0.7)), 500, 1, query=SUM, episode=3)
    for phi in np.linspace(-0.2, 0.7, 19):
        one = calibrate(GaussianSeries(ar=[float(phi)]), 500, 1, query=SUM, episode=3)
        assert one.scale <= within_bounds.scale
    assert one.scale == within_bounds.scale


def test_the_worst_of_a_list_decides():
    found = calibrate([AR, GaussianSeries(ar=[0.9]), GaussianSeries(ar=[0.1])], 900, 1, query=SUM)
    assert found.belief == 2
    assert found.scale == pytest.approx(19)


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_families_pay_for_their_own_family(seed):
    random = np.random.default_rng(seed)
    size, families = int(random.integers(1, 5)), int(random.integers(1, 4))
    drawn = random.normal(size=(size, size + 2))
    covariance = drawn @ drawn.T
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    np.fill_diagonal(correlation, 1.0)
    belief = GaussianRows(correlation, deviations=spread, families=families, within=1.5)
    start = int(random.integers(1, belief.length + 1))
    stop = int(random.integers(start, belief.length + 1))
    levels = np.zeros(belief.length)
    levels[start - 1 : stop] = 1.0
    whole = np.kron(np.eye(families), covariance)
    each = np.minimum(1.5 * np.abs(whole / np.diag(whole)[:, None]), 1) @ levels
    found = calibrate(belief, None, 1, query=SUM.on(start, stop))
    assert found.scale == pytest.approx(each.max(), rel=1e-9)
    assert found.per_node().arrays()[1] == pytest.approx(each, rel=1e-9)


def test_what_is_hidden_is_said():
    assert (
        "at most the range are hidden, whatever was recorded"
        in calibrate(AR, 9, 1, query=SUM).explain()
    )
    told = calibrate(GaussianSeries(ar=[0.8], within=2.5), 9, 1, query=SUM, episode=2).explain()
    assert "at most 2.5 are hidden" in told
    assert "Every stretch of 2 time points" in told


@pytest.mark.parametrize(
    "query",
    [None, queries.count(1), queries.histogram([0, 1]), queries.transitions([0, 1])],
    ids=lambda query: "none" if query is None else query.kind,
)
def test_queries_that_feel_every_hair_of_movement_are_refused_with_a_way_out(query):
    with pytest.raises(UnsupportedError, match=r"Ask queries\.mean\(lo, hi\).*a chain over bins"):
        calibrate(AR, 9, 1, query=query)


def test_the_rest_that_has_no_meaning_is_refused():
    rows = GaussianRows(bounds=0.2, rows=4, families=5)
    for wrong in (
        lambda: influence_curve(AR, 9),
        lambda: max_influence(AR, 3, (1,), 9),
        lambda: calibrate(AR, 9, 1, "exact", SUM),
        lambda: calibrate(AR, 9, 1, "sweep", SUM),
        lambda: calibrate(rows, None, 1, query=SUM, episode=2),
        lambda: calibrate(GaussianSeries(autocorrelation=[0.1]), 99, 1, query=SUM, episode=11),
        lambda: bayesian_dp(GaussianSeries(ar=[0.5, 0.1]), 1, length=9),
        lambda: bayesian_dp(GaussianSeries(ar=[0.5], within=1), 1, length=9),
        lambda: bayesian_dp(GaussianRows(bounds=0.5, rows=4), 1),
    ):
        with pytest.raises(UnsupportedError):
            wrong()


def test_holdouts_refuse_numbers_since_statistics_are_not_sums():
    with pytest.raises(UnsupportedError, match="sums of clipped numbers only"):
        bayesian_epsilon(GaussianRows(bounds=0.2, rows=4), 0.1, 4)


def test_known_rows_multiply_levels():
    assert bayesian_dp(AR, 0.1, length=10**6) == pytest.approx(0.9)
    assert bayesian_dp(GaussianSeries(ar=[-0.8]), 0.1, length=10**6) == pytest.approx(0.9)
    assert dp_for_bayesian_dp(AR, 0.9, length=10**6) == pytest.approx(0.1)
    assert bayesian_dp(GaussianRows(bounds=0.9, rows=3), 0.1) == pytest.approx(0.3)  # all of them
    assert bayesian_dp(GaussianRows(bounds=0.0, rows=3), 0.1) == pytest.approx(0.1)
    rows = GaussianRows(bounds=0.1, rows=3, deviations=[1, 1, 2])
    assert bayesian_dp(rows, 1) == pytest.approx(1.4)
