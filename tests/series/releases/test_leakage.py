"""The true leakage of releases, by enumerating all paths, never exceeds what was promised.

The integers that a release adds noise to are computed for every path; the probability of every
relevant output given a state of one time point follows from the noise's probabilities at the scale
that was used. Between the values of the integers the likelihood ratio is monotone in each
coordinate and beyond them constant, so the product grid of values holds its maximum.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from quiltwork import Clusters, MarkovChain, queries, release
from tests.sizes import sample
from tests.strategies import chains

STATES = (0, 1)


def paths_of(chain, length):
    """All paths of positive probability, with their log-probabilities."""
    paths = np.array(list(product(range(chain.size), repeat=length)), dtype=np.int64)
    probability = np.array(chain.start)[paths[:, 0]]
    for t in range(1, length):
        probability = probability * chain.transition[paths[:, t - 1], paths[:, t]]
    kept = probability > 0
    return paths[kept], np.log(probability[kept])


def log_likelihoods(answer, answers, scale):
    """log P(output | path), for every path and every output that matters."""
    if scale == 0:
        outputs = np.unique(answers, axis=0)
        same = (answers[:, None, :] == outputs[None, :, :]).all(axis=2)
        return np.where(same, 0.0, -np.inf)
    if answer.mechanism == "exponential":
        weights = answers / scale
        return weights - logsumexp(weights, axis=1, keepdims=True)
    outputs = np.array(list(product(*(np.unique(column) for column in answers.T))))
    return -np.abs(answers[:, None, :] - outputs[None, :, :]).sum(axis=2) / scale


def leakage(answer, paths, log_probability, answers, scale=None):
    """max log P(output | X_i = a)/P(output | X_i = b) over time points, states and outputs."""
    scale = float(answer.noise_scale) if scale is None else scale
    joint = log_probability[:, None] + log_likelihoods(answer, answers, scale)
    worst = 0.0
    for column in paths.T:
        given_state = [
            logsumexp(joint[column == a], axis=0) - logsumexp(log_probability[column == a])
            for a in np.unique(column)
        ]
        given_state = np.array(given_state)
        most, least = given_state.max(axis=0), given_state.min(axis=0)
        possible = most > -np.inf
        worst = max(worst, float((most[possible] - least[possible]).max()))
    return worst


def released(chain, length, query, epsilon, **options):
    paths, log_probability = paths_of(chain, length)
    data = [chain.states[code] for code in paths[0]]
    answer = release(data, query, chain, epsilon=epsilon, **options)
    answers = np.array([answer.query.evaluate(p, chain.states) for p in paths], dtype=float)
    return answer, paths, log_probability, answers


QUERIES = [
    queries.count(1),
    queries.histogram(),
    queries.frequencies(),
    queries.transitions(),
    queries.most_common(),
    queries.sum(0, 1),
    queries.mean(-1, 3),
    queries.custom(lambda x: (x[1:] != x[:-1]).sum() / 3, lipschitz=2 / 3, name="switches"),
]
WINDOWS = [(1, None), (1, 2), (2, 3), (4, 4)]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.kind)
@given(
    chain=chains(min_states=2, max_states=2, initials=("given", "stationary")),
    window=st.sampled_from(WINDOWS),
    epsilon=st.sampled_from([0.2, 1.0, 5.0]),
)
@settings(max_examples=sample(6, full=12))
def test_no_release_leaks_more_than_epsilon(query, chain, window, epsilon):
    parts = released(chain, 4, query.on(*window), epsilon)
    assert leakage(*parts) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("query", [q for q in QUERIES[:4] if q.kind != "frequencies"])
@given(chain=chains(min_states=3, max_states=3, initials=("given", "stationary")))
@settings(max_examples=6)
def test_three_states(query, chain):
    parts = released(chain, 3, query, 1.0)
    assert leakage(*parts) <= 1 + 1e-9


@pytest.mark.parametrize(
    "query",
    [
        queries.count(1),
        queries.histogram(),
        queries.frequencies(),
        queries.sum(0, 1),
        queries.mean(0, 1),
        queries.custom(lambda x: x.sum(), lipschitz=1, name="ones"),
        queries.count(1).on(2, 3),
    ],
    ids=lambda q: q.kind,
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_independent_points_leak_exactly_epsilon_and_more_with_5_percent_less_noise(query, epsilon):
    coin = MarkovChain([[0.7, 0.3], [0.7, 0.3]])
    parts = released(coin, 4, query, epsilon)
    scale = float(parts[0].noise_scale)
    assert leakage(*parts) <= epsilon * (1 + 1e-9)
    assert leakage(*parts) == pytest.approx(epsilon, rel=1e-4)
    assert leakage(*parts, scale=0.95 * scale) > epsilon


def test_two_copies_of_one_coin_leak_epsilon_through_transitions_and_windows():
    """Fully dependent points: the whole series is one secret, and group noise is needed."""
    frozen = MarkovChain([[1.0, 0.0], [0.0, 1.0]], initial=[0.5, 0.5])
    for query, moves in ((queries.count(1), 4), (queries.count(1).on(3, 4), 2)):
        parts = released(frozen, 4, query, 1.0)
        assert float(parts[0].noise_scale) == pytest.approx(moves)
        assert leakage(*parts) == pytest.approx(1.0)
        assert leakage(*parts, scale=0.95 * float(parts[0].noise_scale)) > 1


def test_noise_for_one_point_would_leak_through_a_chain():
    """A negative control: with plain DP noise the enumeration finds the correlation."""
    sticky = MarkovChain([[0.95, 0.05], [0.05, 0.95]])
    parts = released(sticky, 5, queries.count(1), 1.0)
    assert leakage(*parts) <= 1 + 1e-9
    assert leakage(*parts, scale=1.0) > 2


@pytest.mark.parametrize("window", [(1, 5), (2, 3), (3, 5)])
def test_fewer_protected_points_need_no_more_noise_and_leak_at_most_epsilon(window):
    """A window that remote points alone answer may need none, and then the truth is released."""
    sticky = MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    query = queries.histogram().on(*window)
    answer, paths, log_probability, answers = released(sticky, 5, query, 1.0, secrets=(1, 1))
    assert answer.noise_scale <= released(sticky, 5, query, 1.0)[0].noise_scale
    assert leakage(answer, paths[:, :1], log_probability, answers) <= 1 + 1e-9


def test_pooled_subjects_of_unequal_length_leak_at_most_epsilon():
    chain = MarkovChain([[0.8, 0.2], [0.3, 0.7]], initial=[0.4, 0.6])
    for query in (queries.histogram(), queries.transitions(), queries.mean(0, 1)):
        answer = release([[0, 1], [1, 1, 0]], query, chain, epsilon=1.0)
        short, long = paths_of(chain, 2), paths_of(chain, 3)
        pairs = list(product(range(len(short[0])), range(len(long[0]))))
        paths = np.array([np.concatenate([short[0][a], long[0][b]]) for a, b in pairs])
        weights = np.array([short[1][a] + long[1][b] for a, b in pairs])
        answers = np.array(
            [
                answer.query.evaluate(p[:2], STATES) + answer.query.evaluate(p[2:], STATES)
                for p in paths
            ],
            dtype=float,
        )
        assert leakage(answer, paths, weights, answers) <= 1 + 1e-9


def test_clusters_pay_for_their_largest_member_count():
    """Rows 1 and 3 are copies, row 2 is free: a count moves by 2 when the copies change."""
    homes = Clusters(["a", "b", "a"])
    answer = release([0, 1, 0], queries.count(1), homes, epsilon=1.0)
    paths = np.array([p for p in product((0, 1), repeat=3) if p[0] == p[2]])
    answers = np.array([answer.query.evaluate(p, STATES) for p in paths], dtype=float)
    weights = np.full(len(paths), -np.log(len(paths)))
    assert leakage(answer, paths, weights, answers) == pytest.approx(1.0)
    assert float(answer.noise_scale) == pytest.approx(2.0)
