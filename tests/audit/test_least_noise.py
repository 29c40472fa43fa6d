"""`optimal-scale`: never above epsilon by enumeration, and no smaller noise would do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from evidence.checks.audit_enumeration import Case, enumerate_leakage, excess, random_case
from quiltwork import audit, queries

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@pytest.mark.parametrize("seed", range(40))
def test_the_scale_is_safe_and_the_least(seed):
    case = random_case(seed)
    query = case.releases[0][0]
    found = qw.calibrate(case.chain, case.length, 1.0, "optimal-scale", query)
    assert excess(case.chain, case.length, query, 1.0, "optimal-scale") <= 1e-12
    if found.scale > 0:
        smaller = Case(case.chain, case.length, [(query, 0.999 * found.scale)], None)
        assert enumerate_leakage(smaller) > 1.0
    for method in ("exact", "group"):
        other = qw.calibrate(case.chain, case.length, 1.0, method, query)
        assert found.exact_scale <= other.exact_scale * (1 + Fraction(1, 2**30))


def test_the_worked_example():
    found = qw.calibrate(CHAIN, 100, 1.0, "optimal-scale", queries.count(1))
    assert found.scale == pytest.approx(3.336, abs=5e-4)
    assert found.method == "optimal-scale"
    quilts = qw.calibrate(CHAIN, 100, 1.0, "exact", queries.count(1))
    assert quilts.scale == pytest.approx(12.84, abs=5e-3)
    curve = qw.influence_curve(CHAIN, 100, method="exact")
    assert curve.epsilon(1 / found.scale) == pytest.approx(2.577, abs=5e-4)
    assert qw.influence_curve(CHAIN, 100).epsilon(1 / found.scale) == pytest.approx(1, rel=1e-8)
    swept = qw.calibrate(CHAIN, 100, 1.0, query=queries.count(1))
    assert swept.scale == pytest.approx(found.scale, rel=1e-8)  # two states: nothing is lost


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_the_scale_holds_for_both_kinds_of_noise(noise):
    scale = qw.calibrate(CHAIN, 20, 1.0, "optimal-scale", queries.count(1)).scale
    assert 0.999 < audit.leakage(CHAIN, 20, [(queries.count(1), scale)], noise=noise) <= 1


def test_without_a_query_every_single_count_is_covered():
    draw = np.random.default_rng(5)
    chain = qw.MarkovChain(draw.dirichlet(np.ones(3), 3), draw.dirichlet(np.ones(3)))
    found = qw.calibrate(chain, 12, 0.5, "optimal-scale")
    levels = [audit.leakage(chain, 12, [(queries.count(s), found.scale)]) for s in chain.states]
    assert max(levels) <= 0.5
    assert max(levels) > 0.4999


def test_every_belief_of_a_set_is_covered():
    other = qw.MarkovChain([[0.99, 0.01], [0.02, 0.98]])
    found = qw.calibrate([other, CHAIN], 30, 1.0, "optimal-scale", queries.count(1))
    assert found.belief == 1
    for chain in (CHAIN, other):
        assert audit.leakage(chain, 30, [(queries.count(1), found.scale)]) <= 1


def test_each_node_has_its_own_need():
    found = qw.calibrate(CHAIN, 15, 1.0, "optimal-scale", queries.count(1))
    profile = found.per_node()
    assert max(run.scale for run in profile) == pytest.approx(found.scale, rel=1e-6)
    for node in (1, 8, 15):
        alone = qw.calibrate(CHAIN, 15, 1.0, "optimal-scale", queries.count(1), (node, node))
        assert profile.at(node) == pytest.approx(alone.scale, rel=1e-6)


def test_no_noise_where_the_exact_answer_is_private():
    chain = qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    query = queries.count(1).on(8, 8)
    found = qw.calibrate(chain, 8, 1.0, "optimal-scale", query, secrets=(1, 3))
    assert found.scale == 0
    assert "leaks at most epsilon" in found.explain()
    assert audit.leakage(chain, 8, [(query, 0)], secrets=(1, 3)) < 1


def test_it_names_what_it_trusts():
    found = qw.calibrate([CHAIN], 10, 1.0, "optimal-scale", queries.count(1))
    assert "alone: under a slightly different chain" in found.explain()
    assert '"optimal-scale"' in found.to_json()


@pytest.mark.parametrize(
    ("belief", "query", "message"),
    [
        (qw.MarkovChain(CHAIN.transition, "any"), queries.count(1), "initial='any'"),
        (CHAIN, queries.transitions(), "joint law"),
        (CHAIN, queries.most_common(), "most_common"),
    ],
)
def test_what_has_no_exact_law_is_refused(belief, query, message):
    with pytest.raises(qw.UnsupportedError, match=message):
        qw.calibrate(belief, 80, 1.0, "optimal-scale", query)


def test_releases_can_use_it_and_are_priced_by_their_noise():
    data = [0, 0, 1, 1, 0, 1, 0, 0] * 5
    released = qw.release(data, queries.count(1), CHAIN, epsilon=1, method="optimal-scale")
    assert released.method == "optimal-scale"
    assert released.scale == pytest.approx(3.33, abs=0.01)
    assert released.dp_epsilon == pytest.approx(1 / released.scale)


def test_every_length_counts_since_a_short_series_may_leak_more():
    chain = qw.MarkovChain([[0.05, 0.95], [0.95, 0.05]], initial=[0.5, 0.5])
    for query in (queries.count(1), None):
        alone = [qw.calibrate(chain, n, 1, "optimal-scale", query).scale for n in (1, 2)]
        both = qw.calibrate(chain, [2, 1], 1, "optimal-scale", query)
        assert both.scale == max(alone) == alone[0] > alone[1]
        assert max(run.scale for run in both.per_node()) == pytest.approx(both.scale, rel=1e-6)
    pooled = qw.release([[0, 1], [1]], queries.count(1), chain, epsilon=1, method="optimal-scale")
    assert pooled.scale == pytest.approx(1)
    assert qw.calibrate(chain, [3, 1], 1, "optimal-scale", secrets=(2, 3)).scale > 0


def test_a_level_below_rounding_errors_is_refused():
    with pytest.raises(qw.UnsupportedError, match="too small to separate"):
        qw.calibrate(CHAIN, 20, 1e-15, "optimal-scale", queries.count(1))
