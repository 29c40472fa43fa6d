"""The two ends: exact where the chain keeps an order, at any length; the law decides elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks import audit_ends
from evidence.enclosure import enclose
from evidence.informed_adversaries import strongest_adversary
from quiltwork import audit, queries
from quiltwork.audit.additive import joint
from quiltwork.audit.ends import TiltedChain
from quiltwork.audit.exact_leakage import exact_leakage, leakage_by_laws
from quiltwork.audit.node_levels import Laws

EXAMPLE = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
COUNT = queries.count(1)
ACTIVITY = qw.MarkovChain(
    [
        [0.9373, 0.0602, 0.0025, 0],
        [0.2655, 0.6724, 0.0604, 0.0017],
        [0.079, 0.4636, 0.438, 0.0194],
        [0.0661, 0.1415, 0.5566, 0.2358],
    ]
)
STEPS = qw.MarkovChain([[0.7, 0.3, 0], [0.2, 0.6, 0.2], [0, 0.3, 0.7]])
ALTERNATING = qw.MarkovChain([[0.1, 0.9], [0.9, 0.1]])


def laws_of(chain, length, releases, nodes=None) -> Laws:
    statistic = joint(releases, chain.states, length)
    return Laws(chain, length, statistic, nodes or range(1, length + 1))


def decided(laws: Laws) -> bool:
    series = TiltedChain(laws)
    return series.exact(series.ends([float(1 / scale) for scale in laws.statistic.scales]))


def test_where_the_check_says_so_the_ends_equal_enumeration_node_by_node():
    found = audit_ends.check(60)
    assert found["decided by the ends"] > 25
    assert found["decided by the ends"] > found["of these whatever the noise"]


def test_without_the_check_an_output_in_between_would_be_missed(monkeypatch):
    chain = qw.MarkovChain([[0.52, 0.48], [0.99, 0.01]], initial=[0.999, 0.001])
    release = [(COUNT, 1 / 3)]
    truth = audit_ends.enumerate_levels(audit_ends.Case(chain, 6, release, None))[3]
    assert audit.leakage(chain, 6, release, secrets=(4, 4)) == pytest.approx(truth, abs=1e-9)
    monkeypatch.setattr(TiltedChain, "exact", lambda self, found: True)
    assert audit.leakage(chain, 6, release, secrets=(4, 4)) < truth - 0.01


@pytest.mark.parametrize(
    ("chain", "query", "length"),
    [
        (EXAMPLE, COUNT, 300),
        (qw.MarkovChain(EXAMPLE.transition, [0.01, 0.99]), COUNT.on(40, 90), 300),
        (qw.MarkovChain(EXAMPLE.transition, [1, 0]), queries.count(0).on(1, 1), 150),
        (ACTIVITY, queries.count(3), 120),
        (ACTIVITY, queries.count(0), 120),
        (STEPS, queries.mean(0, 2), 60),
        (qw.MarkovChain([[0.99, 0.01], [0.02, 0.98]]), COUNT, 400),
    ],
)
def test_ends_and_laws_agree_on_every_node(chain, query, length):
    laws = laws_of(chain, length, [(query, 4.0 if query.kind != "mean" else 0.1)])
    assert decided(laws)
    found, law = exact_leakage(laws), leakage_by_laws(laws)
    assert np.allclose(found.per_node, law.per_node, rtol=0, atol=1e-9)
    assert law.at_least <= found.epsilon
    assert found.at_least <= law.epsilon


def sweep_of_two_states(p01: float, p10: float, rate: float) -> float:
    """What a mechanism that moves by e^rate per point leaks at most in a long series."""
    step = np.array([[1 - p01, p01], [p10, 1 - p10]])
    worst = 0.0
    for here, there in ((0, 1), (1, 0)):
        told = 0.0
        for _ in range(5000):
            factor = math.exp(rate + told)
            told = math.log(
                (step[here, there] + step[here, here] * factor)
                / (step[there, there] + step[there, here] * factor)
            )
        worst = max(worst, rate + 2 * told)
    return worst


@pytest.mark.parametrize("length", [100, 2000, 5000, 10**6, 10**9])
def test_the_worked_example_at_any_length(length):
    found = qw.calibrate(EXAMPLE, length, 1.0, "optimal-scale", COUNT)
    assert found.scale == pytest.approx(3.33641, abs=1e-5)
    assert sweep_of_two_states(0.1, 0.4, 1 / found.scale) == pytest.approx(1, abs=1e-9)
    level = audit.leakage(EXAMPLE, length, [(COUNT, found.exact_scale)])
    assert 1 - 1e-10 < level <= 1


def test_a_window_of_a_long_series_leaks_what_it_does_in_a_short_one():
    start = qw.MarkovChain(EXAMPLE.transition, [0.3, 0.7])
    for query, length in ((COUNT.on(1, 400), 500), (queries.count(0).on(300, 500), 500)):
        release = [(query, 2.5)]
        short = audit.worst_case(start, length, release)
        long = audit.worst_case(start, 10**7, release)
        assert long.epsilon == pytest.approx(short.epsilon, abs=1e-9)
        assert long.per_node[: length - 100] == pytest.approx(short.per_node[:-100], abs=1e-9)
    far = audit.leakage(start, 10**7, release, secrets=(10**6, 10**7))
    assert far == pytest.approx(0, abs=1e-9)


def test_several_answers_that_rise_and_fall_together_are_one_matter_of_ends():
    both = [(queries.count(0), 5.0), (COUNT.on(2, 7), 3.0)]
    laws = laws_of(EXAMPLE, 9, both)
    assert decided(laws)
    found, law = exact_leakage(laws), leakage_by_laws(laws)
    assert found.epsilon == pytest.approx(law.epsilon, abs=1e-9)
    assert found.output == law.output
    cells = audit.worst_case(EXAMPLE, 10**6, [(queries.histogram(), 6.7)])
    assert cells.epsilon == pytest.approx(audit.leakage(EXAMPLE, 10**6, [(COUNT, 3.35)]), abs=1e-9)
    assert sorted(cells.output) == [0, 10**6]
    assert audit.leakage(EXAMPLE, 200, [(COUNT, 4.0), (queries.count(0), 4.0)]) < 2


@pytest.mark.parametrize("length", [1, 2])
def test_the_shortest_series(length):
    assert audit.leakage(EXAMPLE, length, [(COUNT, 4)]) == pytest.approx(
        leakage_by_laws(laws_of(EXAMPLE, length, [(COUNT, 4)])).epsilon, abs=1e-12
    )


def test_a_chain_that_hardly_forgets_is_followed_step_by_step():
    slow = qw.MarkovChain([[1 - 1e-6, 1e-6], [2e-6, 1 - 2e-6]])
    found = audit.worst_case(slow, 2_000, [(COUNT, 2_000)])
    assert found.epsilon == pytest.approx(audit.leakage(slow, 200, [(COUNT, 200)]), abs=0.02)
    assert found.epsilon - found.at_least < 1e-8
    absorbing = qw.MarkovChain([[0.99, 0.01], [0, 1]], [1, 0])
    laws = laws_of(absorbing, 200, [(COUNT, 30.0)])
    assert decided(laws)
    assert exact_leakage(laws).per_node == pytest.approx(leakage_by_laws(laws).per_node, abs=1e-9)


def test_states_that_cannot_occur_do_not_count():
    apart = np.eye(3)
    apart[1:, 1:] = EXAMPLE.transition
    chain = qw.MarkovChain(apart, [0, 0.8, 0.2])
    found = audit.leakage(chain, 10**6, [(queries.count(2), 3.5)])
    assert found == pytest.approx(audit.leakage(EXAMPLE, 10**6, [(COUNT, 3.5)]), abs=1e-9)
    assert audit.leakage(chain, 10**6, [(queries.count(0), 3.5)]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("chain", "query", "length"),
    [
        (ALTERNATING, COUNT, 12),
        (ACTIVITY, queries.count(1), 12),
        (EXAMPLE, queries.transitions(), 5),
        (ACTIVITY, queries.histogram(), 4),
    ],
)
def test_chains_and_queries_without_an_order_go_to_the_law(chain, query, length):
    laws = laws_of(chain, length, [(query, 2.0)])
    assert not decided(laws)
    assert exact_leakage(laws).epsilon == leakage_by_laws(laws).epsilon


@pytest.mark.parametrize("length", [5000, 10_000, 10**6])
def test_what_the_ends_do_not_decide_is_refused_with_its_cost_or_bracketed(length):
    release = [(COUNT, 3.0)]
    with pytest.raises(qw.UnsupportedError, match="combinations of values"):
        audit.leakage(ALTERNATING, length, release)
    with pytest.raises(qw.UnsupportedError, match="method='exact' calibrates at any length"):
        qw.calibrate(ALTERNATING, length, 1, "optimal-scale", COUNT)
    found = audit.report(ALTERNATING, length, release, claimed=1)
    assert found.upper == 1
    assert found.lower == pytest.approx(audit.leakage(ALTERNATING, 100, release), abs=1e-6)


def test_joint_laws_that_would_take_minutes_are_refused_up_front():
    three = qw.MarkovChain([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    both = [(queries.count(0), 3.0), (queries.count(1), 3.0)]
    with pytest.raises(qw.UnsupportedError, match=r"some 2e\+11 multiplications"):
        audit.leakage(three, 200, both)
    with pytest.raises(qw.UnsupportedError, match="multiplications"):
        strongest_adversary(three, 60, both)
    with pytest.raises(qw.UnsupportedError, match="multiplications"):
        enclose(EXAMPLE, 400, [(COUNT, 3)])
    found = audit.report(three, 200, both)
    assert not found.joint
    assert found.lower > 0


def test_a_level_of_very_many_nodes_is_kept_by_runs():
    found = audit.worst_case(EXAMPLE, 10**15, [(COUNT, 4)])
    assert len(found.starts) == len(found.levels) < 1000
    assert found.levels.max() == found.epsilon
    with pytest.raises(qw.UnsupportedError, match="too many to list"):
        found.per_node  # noqa: B018
    assert found.plot().get_ylim()[0] == 0
    both = audit.worst_case([EXAMPLE, ALTERNATING], 50, [(COUNT, 4)])
    each = [audit.worst_case(c, 50, [(COUNT, 4)]) for c in (EXAMPLE, ALTERNATING)]
    assert (both.per_node == np.maximum(*(one.per_node for one in each))).all()


def test_noise_beyond_the_range_of_floats_goes_to_the_law():
    assert audit.leakage(EXAMPLE, 40, [(COUNT, 1e-3)]) > 1000
    with pytest.raises(qw.UnsupportedError, match="combinations of values"):
        audit.leakage(EXAMPLE, 10**6, [(COUNT, 1e-3)])


def test_the_check_looks_at_all_steps_whatever_is_protected():
    draw, seen = np.random.default_rng(5), set()
    for _ in range(60):
        chain = qw.MarkovChain(0.5 * np.eye(3) + 0.5 * draw.dirichlet(np.ones(3), 3))
        release = [(queries.count(2), float(draw.choice([0.3, 1, 3])))]
        everywhere = decided(laws_of(chain, 8, release))
        assert everywhere == decided(laws_of(chain, 8, release, range(8, 9)))
        seen.add((everywhere, TiltedChain(laws_of(chain, 8, release)).order.always))
    assert seen == {(True, True), (True, False), (False, False)}


def test_days_whose_every_matrix_keeps_the_order_are_decided_by_their_ends():
    day = qw.CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]], np.eye(2)])
    laws = laws_of(day, 60, [(COUNT, 2.0), (COUNT.on(3, 20), 5.0)])
    assert decided(laws)
    found, followed = exact_leakage(laws), leakage_by_laws(laws)
    assert found.epsilon == pytest.approx(followed.epsilon, abs=1e-9)
    assert np.allclose(found.per_node, followed.per_node, atol=1e-9)
    assert audit.leakage(day, 2_000, [(COUNT, 20)]) > audit.leakage(day, 60, [(COUNT, 20)])


def test_one_matrix_that_turns_the_order_round_leaves_days_to_their_law():
    day = qw.CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.1, 0.9], [0.8, 0.2]]])
    assert TiltedChain(laws_of(day, 60, [(COUNT, 2.0)])).order is None


@pytest.mark.parametrize("shows", [[0, 1, 1], [1, 0, 1]])
def test_the_ends_of_a_hidden_chain_bound_its_level_from_below(shows):
    hidden = qw.HiddenChain(STEPS.transition, shows, [0.2, 0.3, 0.5], states=[0, 1])
    laws = laws_of(hidden, 40, [(COUNT, 3.0)])
    series, law = TiltedChain(laws), leakage_by_laws(laws)
    found = series.ends([1 / 3])
    assert series.order is None
    assert float(found.leak.max()) <= law.epsilon + 1e-9
    short = laws_of(hidden, 6, [(COUNT, 3.0)])
    rows, weight = enumerated.all_paths(hidden, 6)
    tilted = weight * np.exp(rows.sum(axis=1) / 3)
    moments = [tilted[rows[:, 2] == a].sum() / weight[rows[:, 2] == a].sum() for a in (0, 1)]
    upper = abs(math.log(moments[1] / moments[0]))
    tilted = weight * np.exp(-rows.sum(axis=1) / 3)
    moments = [tilted[rows[:, 2] == a].sum() / weight[rows[:, 2] == a].sum() for a in (0, 1)]
    ends = TiltedChain(short).ends([1 / 3])
    told = ends.leak[np.searchsorted(ends.starts, 3, side="right") - 1]
    assert told == pytest.approx(max(upper, abs(math.log(moments[1] / moments[0]))), abs=1e-9)
