"""A release inside OpenDP: its own accountant composes it, by the level for substituted points."""

from __future__ import annotations

import math

import pytest

import quiltwork as qw
from quiltwork.errors import UnsupportedError
from quiltwork.noise import TwoSidedGeometric
from quiltwork.series import opendp_measurement

dp = pytest.importorskip("opendp.prelude")

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
LENGTH = 40
DATA = (["rest"] * 7 + ["walk"] * 3) * 4


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")


def test_its_level_is_that_of_the_same_release_for_every_distance():
    query = qw.queries.histogram()
    measurement = opendp_measurement(query, CHAIN, LENGTH, 1)
    spending = qw.release(DATA, query, CHAIN, epsilon=1).spending
    assert measurement.map(1) == pytest.approx(float(spending.dp_epsilon), rel=1e-12)
    assert measurement.map(3) >= 3 * spending.dp_epsilon
    assert len(measurement(DATA)) == 2


def test_two_neighbouring_series_differ_by_its_level_and_no_less():
    """Geometric noise of scale s on a count: a step of one changes log-probabilities by 1/s."""
    query = qw.queries.count("walk").on(1, 4)
    scale = qw.release(DATA, query, CHAIN, epsilon=3).scale
    noise = TwoSidedGeometric.from_scale(scale)
    ratio = math.log(noise.probability(5) / noise.probability(6))
    assert ratio <= opendp_measurement(query, CHAIN, LENGTH, 3).map(1) <= ratio * (1 + 1e-9)


def test_a_context_composes_it_with_opendp_s_own_and_refuses_what_is_too_much():
    measurement = opendp_measurement(qw.queries.count("walk"), CHAIN, LENGTH, 1)
    domain = dp.vector_domain(dp.atom_domain(T="String"), size=LENGTH)
    own = domain, dp.hamming_distance()
    level = measurement.map(1)
    composed = dp.c.make_adaptive_composition(*own, dp.max_divergence(), 1, [level, level / 2])
    queryable = composed(DATA)
    assert isinstance(queryable(measurement), int)
    with pytest.raises(dp.OpenDPException):
        queryable(measurement)  # only half its level is left
    assert composed.map(1) == pytest.approx(1.5 * level)


def test_what_opendp_could_not_account_for_is_refused():
    mixed = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", 1])
    with pytest.raises(UnsupportedError, match="elements of one type"):
        opendp_measurement(qw.queries.count(1), mixed, LENGTH, 1)
    with pytest.raises(UnsupportedError, match="no noise with a level"):
        opendp_measurement(qw.queries.most_common(), CHAIN, LENGTH, 1)
