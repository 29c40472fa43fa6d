"""The influence curve: shape, inverse, and translation for mechanisms of other libraries."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import enumeration
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import calibrate, influence_curve
from quiltwork.influence.belief_bound import number_of_nodes
from quiltwork.influence.quilts.prices import LeakAt
from tests.sizes import sample
from tests.strategies import chains

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
LEVELS = st.floats(1e-3, 10)


@given(chains(2, 4), st.integers(1, 40), LEVELS)
@settings(max_examples=sample(20, full=40))
def test_the_inverse_never_overshoots_and_loses_next_to_nothing(chain, length, epsilon):
    curve = influence_curve(chain, length)
    level = curve.dp_epsilon(epsilon)
    if math.isinf(level):
        assert curve.epsilon(1) == 0
    else:
        assert curve.epsilon(level) <= epsilon
        assert curve.epsilon(level) == pytest.approx(epsilon, rel=1e-8)


@given(chains(2, 4), st.integers(1, 40), LEVELS, LEVELS)
@settings(max_examples=20)
def test_it_grows_from_zero_and_for_quilts_ever_more_slowly(chain, length, one, other):
    """With quilts each node's curve is concave with value 0 at 0; a swept curve only rises."""
    low, high = min(one, other), max(one, other)
    for method in ("sweep", "exact"):
        curve = influence_curve(chain, length, method)
        assert curve.epsilon(0) == 0
        assert curve.epsilon(low) <= curve.epsilon(high) * (1 + 1e-8)
    assert curve.epsilon(high) / high <= curve.epsilon(low) / low * (1 + 1e-11)


@given(chains(2, 3), st.integers(1, 20), LEVELS, LEVELS, st.data())
@settings(max_examples=40)
def test_the_curve_of_a_single_node_is_concave(chain, length, one, other, data):
    node = data.draw(st.integers(1, length))
    (seen,) = influence_curve(chain, length, "exact").bounds

    def leak(level: float) -> float:
        price = LeakAt(Fraction(level))
        return seen.worst(number_of_nodes, price, range(node, node + 1))[0].price

    assert leak((one + other) / 2) >= (leak(one) + leak(other)) / 2 * (1 - 1e-11)


@given(chains(2, 4), st.integers(1, 40), st.lists(LEVELS, min_size=2, max_size=5))
@settings(max_examples=sample(15, full=30))
def test_releases_together_cost_at_most_the_sum_of_what_they_cost_apart(chain, length, levels):
    """Theorem 3.7: f(Σ ε_k) ≤ Σ f(ε_k), for quilts."""
    curve = influence_curve(chain, length, "exact")
    together = curve.epsilon(sum(map(Fraction, levels)))
    assert together <= sum(curve.epsilon(level) for level in levels) * (1 + 1e-11)


def test_calibration_is_the_inverse_of_the_curve():
    curve = influence_curve(CHAIN, 100)
    for epsilon in (0.1, 1, 5):
        scale = calibrate(CHAIN, 100, epsilon).scale
        assert 1 / curve.dp_epsilon(epsilon) == pytest.approx(scale, rel=1e-8)


@given(chains(2, 3, initials=("given", "stationary")), st.integers(2, 5), st.data())
@settings(max_examples=25)
def test_any_dp_mechanism_leaks_no_more_than_the_curve_says(chain, length, data):
    """A random mechanism with 4 outputs, its level found by comparing all neighbours."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    weighted = enumeration.paths(chain, length)
    everything = list(np.ndindex(*(chain.size,) * length))
    law = {path: rng.dirichlet(np.full(4, 5.0)) for path in everything}
    level = max(
        float(np.log(law[path] / law[other]).max())
        for path in everything
        for other in everything
        if sum(x != y for x, y in zip(path, other, strict=True)) == 1
    )
    worst = 0.0
    for node in range(length):
        answers: dict[int, np.ndarray] = {}
        mass: dict[int, float] = {}
        for path, p in weighted.items():
            answers[path[node]] = answers.get(path[node], 0) + p * law[path]
            mass[path[node]] = mass.get(path[node], 0) + p
        densities = [answers[x] / mass[x] for x in answers]
        ratios = [float(np.log(a / b).max()) for a in densities for b in densities]
        worst = max([worst, *ratios])
    assert worst <= influence_curve(chain, length).epsilon(level) + 1e-12


def test_clusters_and_independent_nodes_have_straight_lines():
    homes = Clusters(["a", "b", "a", "a"])
    curve = influence_curve(homes, None)
    assert curve.epsilon(0.1) == pytest.approx(0.3, abs=1e-16)
    assert Fraction(3) * Fraction(curve.dp_epsilon(1)) <= 1
    independent = influence_curve(Clusters(["a", "b"]), None)
    assert independent.epsilon(0.1) == 0.1
    assert independent.dp_epsilon(0.5) == 0.5
    assert independent.dp_epsilon(0.1) == math.nextafter(0.1, 0)  # the float 0.1 is above 1/10


def test_several_beliefs_give_the_upper_envelope():
    box = ChainBox([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]])
    curves = [influence_curve(belief, 50) for belief in (CHAIN, box)]
    both = influence_curve([CHAIN, box], 50)
    for level in (0.01, 0.3, 4):
        most = max(curve.epsilon(level) for curve in curves)
        assert both.epsilon(level) == pytest.approx(most, rel=1e-8)


def test_ten_releases_of_one_epsilon_each():
    scale = calibrate(CHAIN, 100, 1, "exact").scale
    quilts = influence_curve(CHAIN, 100, "exact")
    assert quilts.epsilon(10 / scale) == pytest.approx(4.298114, abs=5e-7)
    assert influence_curve(CHAIN, 100).epsilon(10 / scale) == pytest.approx(2.675, abs=5e-4)


@pytest.mark.parametrize("level", [-1, math.nan, math.inf, "1", True])
def test_bad_levels_get_a_sentence(level):
    with pytest.raises(InvalidInputError, match="dp_epsilon must be"):
        influence_curve(CHAIN, 10).epsilon(level)
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        influence_curve(CHAIN, 10).dp_epsilon(level)


def test_a_method_without_quilts_is_refused():
    with pytest.raises(UnsupportedError, match="exact"):
        influence_curve(CHAIN, 10, method="optimal-scale")


def test_an_opendp_count_at_the_translated_level_is_a_release_under_the_belief():
    """One substituted time point is a distance of 2 in OpenDP's symmetric distance."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    curve = influence_curve(CHAIN, 100)
    level = curve.dp_epsilon(1)
    bits = dp.atom_domain(bounds=(0, 1))

    def measurement(scale, size=100):
        space = dp.vector_domain(bits, size=size), dp.symmetric_distance()
        return space >> dp.t.then_sum() >> dp.m.then_laplace(scale)

    scale = dp.binary_search_param(measurement, d_in=2, d_out=level)
    assert scale == pytest.approx(calibrate(CHAIN, 100, 1).scale, rel=1e-6)
    assert isinstance(measurement(scale)(CHAIN.sample(100, seed=1).tolist()), int)
    assert curve.epsilon(measurement(scale).map(2)) <= 1

    def of_any_length(scale):
        return measurement(scale, size=None)

    careless = dp.binary_search_param(of_any_length, d_in=1, d_out=level)
    assert curve.epsilon(of_any_length(careless).map(2)) > 1.05
