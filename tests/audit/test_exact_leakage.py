"""The exact audit equals enumeration of all paths, at any noise, for every kind of query."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks.audit_enumeration import (
    SHAPED_METHODS,
    audit_differs,
    enumerate_leakage,
    excess,
    random_case,
    random_shaped_case,
)
from evidence.enclosure import enclose
from quiltwork import audit, queries
from quiltwork.audit.additive import joint
from quiltwork.audit.exact_leakage import leakage_by_laws
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs.secrets import parse_secrets

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@pytest.mark.parametrize("block", range(8))
def test_the_dynamic_program_equals_enumeration(block):
    assert max(audit_differs(random_case(seed)) for seed in range(20 * block, 20 * block + 20)) <= (
        1e-9
    )


@pytest.mark.parametrize("block", range(8))
def test_days_and_hidden_states_are_audited_as_enumeration_has_it(block):
    cases = [random_shaped_case(seed) for seed in range(20 * block, 20 * block + 20)]
    assert max(map(audit_differs, cases)) <= 1e-9


def test_exact_calibration_for_days_and_hidden_states_keeps_its_promise_and_wastes_nothing():
    over = []
    for seed in range(40):
        case = random_shaped_case(seed)
        for method in SHAPED_METHODS:
            query = case.releases[0][0]
            over.append(excess(case.chain, case.length, query, 1.0, method, case.secrets))
    reached = [one for one in over if one is not None]
    assert len(reached) > 60
    assert max(reached) <= 1e-9
    assert sum(one > -1e-6 for one in reached) > 10


def test_a_noise_off_by_five_per_cent_would_be_seen():
    found = [enumerate_leakage(random_case(seed)) for seed in range(30)]
    off = []
    for seed in range(30):
        case = random_case(seed)
        louder = [(query, 1.05 * scale) for query, scale in case.releases]
        off.append(qw.audit.leakage(case.chain, case.length, louder, secrets=case.secrets))
    changed = [abs(a - b) > 1e-6 for a, b in zip(found, off, strict=True) if a > 0]
    assert np.mean(changed) > 0.8


def test_the_worked_example_needs_a_quarter_of_what_the_quilt_mechanism_adds():
    count = queries.count(1)
    assert audit.leakage(CHAIN, 100, [(count, 12.84)]) == pytest.approx(0.2409, abs=5e-5)
    assert (
        audit.leakage(CHAIN, 100, [(count, 3.337)])
        < 1
        < audit.leakage(CHAIN, 100, [(count, 3.335)])
    )


def test_laplace_and_geometric_noise_leak_the_same_on_integers():
    releases = [(queries.count(1), 2.5)]
    found = {audit.leakage(CHAIN, 30, releases, noise=noise) for noise in ("laplace", "geometric")}
    assert len(found) == 1


def test_laplace_noise_tells_no_more_between_the_integers():
    paths = enumerated.all_paths(CHAIN, 6)
    answer = enumerated.answers(queries.count(1), CHAIN.states, paths[0])
    sigma, most = 0.7, 0.0
    for node in range(1, 7):
        laws = enumerated.laws_at(node, *paths, answer)
        outputs = np.linspace(-3, 9, 2401)
        density = [
            np.exp(-np.abs(outputs[:, None] - values[:, 0]) / sigma) @ mass
            for values, mass in laws.values()
        ]
        most = max(most, float(np.abs(np.log(density[0] / density[1])).max()))
    assert most == pytest.approx(audit.leakage(CHAIN, 6, [(queries.count(1), sigma)]), abs=1e-9)


def test_several_releases_are_audited_jointly_and_levels_need_not_add_up():
    both = [(queries.count(1), 2.0), (queries.count(0).on(2, 3), 3.0)]
    alone = [audit.leakage(CHAIN, 4, [one], secrets=(1, 2)) for one in both]
    joint = audit.leakage(CHAIN, 4, both, secrets=(1, 2))
    assert joint > sum(alone) > max(alone)


def test_the_worst_secret_and_output_reach_the_level():
    found = audit.worst_case(CHAIN, 9, [(queries.count(1), 1.5)])
    rows, weight = enumerated.all_paths(CHAIN, 9)
    answer = enumerated.answers(queries.count(1), CHAIN.states, rows)[:, 0]

    def density(state):
        given = rows[:, found.node - 1] == state
        kernel = np.exp(-np.abs(answer[given] - found.output[0]) / 1.5)
        return weight[given] @ kernel / weight[given].sum()

    one, other = found.states
    assert math.log(density(one) / density(other)) == pytest.approx(found.epsilon, abs=1e-9)
    assert found.per_node.max() == found.epsilon == found.per_node[found.node - 1]
    assert f"time point {found.node}" in found.explain()


def test_the_worst_belief_counts():
    other = qw.MarkovChain([[0.99, 0.01], [0.02, 0.98]])
    release = [(queries.count(1), 4.0)]
    found = audit.worst_case([CHAIN, other], 20, release)
    assert found.belief == 2
    assert found.epsilon == audit.leakage(other, 20, release)


def test_logarithms_and_floats_agree():
    laws = Laws(CHAIN, 60, joint([(queries.count(1), 3.0)], CHAIN.states, 60), range(1, 61))
    floats = leakage_by_laws(laws)
    logs = leakage_by_laws(laws, logs=True)
    assert logs.epsilon != floats.epsilon
    assert logs.epsilon == pytest.approx(floats.epsilon, abs=1e-9)
    assert np.allclose(logs.per_node, floats.per_node, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_days_and_hidden_states_are_audited_in_logarithms_and_in_integers_too(seed):
    case = random_shaped_case(seed)
    truth = enumerate_leakage(case)
    asked = joint(case.releases, case.chain.states, case.length)
    nodes = parse_secrets(case.secrets, case.length)
    found = leakage_by_laws(Laws(case.chain, case.length, asked, nodes), logs=True).epsilon
    assert found == pytest.approx(truth, abs=1e-8)
    enclosed = enclose(case.chain, case.length, case.releases, secrets=case.secrets)
    assert enclosed.lower - 1e-12 <= truth <= enclosed.upper + 1e-12


def test_noise_too_small_for_floats_is_still_audited():
    chain = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    found = audit.leakage(chain, 400, [(queries.count(1), 0.02)])
    assert found == pytest.approx(50, abs=1e-3)


def test_states_too_rare_for_floats_are_not_lost():
    tiny = 1e-30
    rows = [[1 - tiny, tiny, 0], [0, 1 - tiny, tiny], [0, 0, 1]]
    chain = qw.MarkovChain(rows, initial=[1 - tiny, tiny, 0])
    found = audit.leakage(chain, 5, [(queries.count(2), 1.0)])
    assert found == pytest.approx(5 * 1.0, rel=0.5)
    assert found > 2


def test_without_noise_an_answer_that_rules_out_a_state_leaks_everything():
    assert audit.leakage(CHAIN, 5, [(queries.count(1), 0)]) == math.inf
    sure = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    found = audit.worst_case(sure, 5, [(queries.count(1), 0)])
    assert found.epsilon == 0
    assert found.node is None
    assert "Nothing leaks" in found.explain()


def test_a_sum_of_coarse_values_costs_no_more_than_a_count():
    chain = qw.MarkovChain(CHAIN.transition, CHAIN.start, states=[0, 1000])
    truth = audit.leakage(CHAIN, 50, [(queries.count(1), 3)])
    for query in (queries.sum(0, 1000), queries.sum(0, 1000).refined(10, 50)):
        assert audit.leakage(chain, 50, [(query, 3000)]) == pytest.approx(truth, abs=1e-9)


def test_values_far_apart_are_followed_sparsely():
    chain = qw.MarkovChain(np.full((3, 3), 1 / 3), states=[0, 1, 1000])
    query = type(queries.sum(0, 1000))(lo=0, hi=1000, bits=0).refined(Fraction(1, 2), 6)
    paths = enumerated.all_paths(chain, 6)
    answer = enumerated.answers(query, chain.states, paths[0])
    scale = 300
    truth = enumerated.additive_leakage(paths, answer, [scale], range(1, 7))
    assert audit.leakage(chain, 6, [(query, scale)]) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(
    ("beliefs", "arguments", "message"),
    [
        (qw.MarkovChain(CHAIN.transition, "any"), {}, "initial='any'"),
        (qw.ChainBox([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]]), {}, "ChainBox"),
        (CHAIN, {"noise": "uniform"}, "'laplace', 'geometric' or 'gaussian'"),
        (CHAIN, {"noise": "gaussian"}, "give delta"),
        (CHAIN, {"delta": 1e-6}, "Leave it out"),
        (CHAIN, {"releases": []}, r"\(query, scale\) pairs"),
        (CHAIN, {"releases": [(queries.count(1),)]}, r"pair \(query, scale\)"),
        (CHAIN, {"releases": [(queries.count(1), -1)]}, "must not be negative"),
        (CHAIN, {"releases": [(queries.count("walk"), 1)]}, "not a state of the belief"),
        (CHAIN, {"releases": [(queries.most_common(), 1)]}, "most_common"),
        (CHAIN, {"releases": [(queries.count(1).on(3, 99), 1)]}, "does not fit"),
        (CHAIN, {"releases": [(queries.transitions(), 1)], "length": 99}, "audit.report"),
        (CHAIN, {"secrets": (3, 99)}, "last protected time point"),
        (CHAIN, {"length": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_reason(beliefs, arguments, message):
    given = {"length": 10, "releases": [(queries.count(1), 2.0)]} | arguments
    with pytest.raises(qw.QuiltworkError, match=message):
        audit.leakage(beliefs, **given)
