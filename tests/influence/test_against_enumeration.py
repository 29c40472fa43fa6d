"""Influence, calibration and the curve against the enumeration of all paths and separators."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork import ChainBox, MarkovChain, calibrate, influence_curve, max_influence, queries
from quiltwork.errors import QuiltworkWarning, UnsupportedError
from tests.influence.paths import Paths, separators
from tests.sizes import sample
from tests.strategies import chains

EXAMPLE = [[0.9, 0.1], [0.4, 0.6]]
small = st.integers(2, 5)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuiltworkWarning)
        yield


def paths_of(chain: MarkovChain, length: int) -> Paths:
    return Paths(chain.transition, chain.start, length)


@settings(max_examples=60)
@given(chains(max_states=3, initials=("given", "stationary")), small, st.data())
def test_max_influence_is_the_definition(chain, length, data):
    node = data.draw(st.integers(1, length))
    others = [t for t in range(1, length + 1) if t != node]
    quilt = tuple(sorted(data.draw(st.sets(st.sampled_from(others)))))
    truth = paths_of(chain, length).influence(node, quilt) if quilt else 0.0
    found = max_influence(chain, node, quilt, length)
    assert found >= truth - 1e-12  # the enumeration rounds too
    assert found == pytest.approx(max(truth, 0.0), rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(
    chains(max_states=3, initials=("given", "stationary")), small, st.sampled_from([0.3, 1.0, 4.0])
)
def test_no_separator_beats_the_minimal_quilts(chain, length, epsilon):
    """Lemma 2.5: all subsets of nodes as quilts give the same scale."""
    paths = paths_of(chain, length)
    scores = [0.0]
    for node in range(1, length + 1):
        if len(paths.given(node)) == 1:
            continue
        scores.append(
            min(
                nearby / (epsilon - e)
                if (e := paths.influence(node, q) if q else 0.0) < epsilon
                else math.inf
                for q, nearby in separators(node, length)
            )
        )
    exact = calibrate(chain, length, epsilon, "exact")
    assert exact.scale == pytest.approx(max(scores), rel=1e-9)
    assert calibrate(chain, length, epsilon).scale <= max(scores) * 1.01


@settings(max_examples=40)
@given(
    chains(max_states=3, initials=("given", "stationary")),
    small,
    st.sampled_from([0.01, 0.2, 1.0, 5.0]),
)
def test_the_curve_is_the_worst_node_at_its_best_quilt(chain, length, level):
    paths = paths_of(chain, length)
    leaks = [
        min(
            nearby * level + (paths.influence(node, q) if q else 0.0)
            for q, nearby in separators(node, length)
        )
        for node in range(1, length + 1)
        if len(paths.given(node)) > 1
    ] or [0.0]
    curve = influence_curve(chain, length, "exact")
    assert influence_curve(chain, length).epsilon(level) <= max(leaks) * 1.01 + 1e-12
    assert curve.epsilon(level) == pytest.approx(max(leaks), rel=1e-9)
    assert curve.epsilon(level) >= max(leaks) - 1e-12  # the enumeration rounds too


@settings(max_examples=25)
@given(
    chains(max_states=3, initials=("given", "stationary")),
    small,
    st.sampled_from(["sweep", "exact", "approx", "spectral", "contraction", "group"]),
    st.sampled_from([0.2, 1.0, 3.0]),
    st.data(),
)
def test_no_method_leaks_more_than_epsilon(chain, length, method, epsilon, data):
    start = data.draw(st.integers(1, length))
    stop = data.draw(st.integers(start, length))
    secret = data.draw(st.sampled_from([None, (1, 1), (length, length), (start, stop)]))
    state = data.draw(st.sampled_from(range(chain.size)))
    query = queries.count(chain.states[state]).on(start, stop)
    try:
        scale = calibrate(chain, length, epsilon, method, query, secret).scale
    except UnsupportedError:
        return
    paths = paths_of(chain, length)
    answers = (paths.states[:, start - 1 : stop] == state).sum(axis=1, keepdims=True)
    nodes = None if secret is None else range(secret[0], secret[1] + 1)
    if scale == 0:
        scale = 1e-3  # as good as none: outside the secrets, the plain answer may be allowed
    assert paths.leakage(answers, scale, nodes) <= epsilon * (1 + 1e-12)


@settings(max_examples=30)
@given(chains(max_states=3, initials=("given", "stationary")), small, st.sampled_from([0.5, 2.0]))
def test_transition_counts_leak_no_more_than_epsilon(chain, length, epsilon):
    scale = calibrate(chain, length, epsilon, query=queries.transitions()).scale
    paths = paths_of(chain, length)
    pairs = list(pairwise(range(length)))
    first = np.array([[row[a], row[b]] for row in paths.states for a, b in pairs])
    code = (first[:, 0] * chain.size + first[:, 1]).reshape(len(paths.states), len(pairs))
    used = np.unique(code)[:3]  # three cells: a part of the answer tells no more than the whole
    answers = np.stack([(code == cell).sum(axis=1) for cell in used], axis=1)
    if scale > 0:
        assert paths.leakage(answers, scale) <= epsilon * (1 + 1e-12)


@settings(max_examples=40)
@given(st.data(), small, st.sampled_from([0.5, 1.0, 3.0]))
def test_any_start_covers_every_start(data, length, epsilon):
    chain = data.draw(chains(max_states=3))
    anywhere = MarkovChain(chain.transition, initial="any")
    scale = calibrate(anywhere, length, epsilon, query=queries.count(0)).scale
    start = data.draw(st.lists(st.integers(0, 9), min_size=chain.size, max_size=chain.size))
    if sum(start) == 0:
        start[0] = 1
    paths = Paths(chain.transition, np.array(start) / sum(start), length)
    answers = (paths.states == 0).sum(axis=1, keepdims=True)
    if scale > 0:
        assert paths.leakage(answers, scale) <= epsilon * (1 + 1e-12)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([1.0, 3.0]))
def test_a_box_covers_time_varying_chains_inside_it(seed, length, epsilon):
    simulated = np.random.default_rng(seed)
    size = int(simulated.integers(2, 4))
    centre = simulated.dirichlet(np.ones(size) * 3, size=size)
    width = simulated.uniform(0.01, 0.15)
    box = ChainBox(np.maximum(centre - width, 0.01), np.minimum(centre + width, 1))
    scale = calibrate(box, length, epsilon, query=queries.count(0)).scale
    steps = []
    for _ in range(length - 1):
        other = simulated.dirichlet(np.ones(size), size=size)
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            mixed = (1 - middle) * centre + middle * other
            fits = (mixed >= box.lower).all() and (mixed <= box.upper).all()
            low, high = (middle, high) if fits else (low, middle)
        steps.append((1 - low) * centre + low * other)
    start = simulated.dirichlet(np.ones(size))
    paths = Paths(steps[0], start, length)
    chance = start[paths.states[:, 0]]
    for t, step in enumerate(steps, 1):
        chance = chance * step[paths.states[:, t - 1], paths.states[:, t]]
    paths.chance = chance
    answers = (paths.states == 0).sum(axis=1, keepdims=True)
    assert paths.leakage(answers, scale) <= epsilon * (1 + 1e-12)


@settings(max_examples=sample(30, full=60))
@given(chains(max_states=4), st.integers(1, 60), st.sampled_from([0.2, 1.0, 5.0]))
def test_exact_is_at_most_approx_is_at_most_spectral(chain, length, epsilon):
    exact = calibrate(chain, length, epsilon, "exact").scale
    approx = calibrate(chain, length, epsilon, "approx").scale
    assert exact <= approx * (1 + 1e-12)
    assert approx <= length / epsilon * (1 + 1e-12)
    if chain.is_irreducible and chain.is_aperiodic:
        assert approx <= calibrate(chain, length, epsilon, "spectral").scale * (1 + 1e-12)


@pytest.mark.parametrize(
    ("chain", "scale", "node", "quilt"),
    [
        (MarkovChain(EXAMPLE, initial=[1, 0]), 12.934051, 8, (1, 13)),
        (MarkovChain(EXAMPLE, initial="any"), 13.021923, 8, (3, 13)),
        (MarkovChain([[0.8, 0.2], [0.3, 0.7]], initial=[0.9, 0.1]), 10.640193, 6, (10,)),
    ],
)
def test_worked_examples(chain, scale, node, quilt):
    found = calibrate(chain, 100, 1.0, "exact")
    assert found.scale == pytest.approx(scale, abs=5e-7)
    assert (found.node, found.quilt) == (node, quilt)
    assert calibrate(chain, 100, 1.0).scale < scale / 2


@pytest.mark.parametrize(
    ("method", "scale"), [("contraction", 15.903), ("approx", 15.652), ("spectral", 31.710)]
)
def test_bounded_methods_on_the_example(method, scale):
    chain = MarkovChain(EXAMPLE, initial=[0.8, 0.2])
    assert calibrate(chain, 100, 1.0, method).scale == pytest.approx(scale, abs=5e-4)


def test_ten_releases_cost_far_less_than_ten_epsilons():
    chain = MarkovChain(EXAMPLE, initial=[0.8, 0.2])
    scale = calibrate(chain, 100, 1.0, "exact").scale
    quilts = influence_curve(chain, 100, "exact")
    assert quilts.epsilon(10 / scale) == pytest.approx(4.298114, abs=5e-7)
    assert influence_curve(chain, 100).epsilon(10 / scale) == pytest.approx(2.675, abs=5e-4)


def test_the_corrected_lemma_counts_a_repeated_eigenvalue_one():
    """Dropping every eigenvalue 1 of P·P* would claim 0.8993 at b = 6, below the truth 0.9163."""
    chain = MarkovChain([[0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]])
    truth = Paths(chain.transition, chain.start, 8).influence(1, (7,))
    assert truth == pytest.approx(0.9163, abs=5e-5)
    assert max_influence(chain, 1, (7,), 8) == pytest.approx(truth, rel=1e-9)
    assert chain.eigengap == 0
    assert calibrate(chain, 50, 1.0, "spectral").scale == pytest.approx(50)


@pytest.mark.parametrize("length", [1, 2, 17, 10**8])
def test_independent_time_points_are_plain_differential_privacy(length):
    from fractions import Fraction

    chain = MarkovChain([[0.3, 0.7], [0.3, 0.7]])
    assert calibrate(chain, length, 0.1).exact_scale == Fraction(10)
    assert influence_curve(chain, length).epsilon(0.1) == 0.1


def test_a_hundred_million_points_cost_what_ten_thousand_do():
    chain = MarkovChain(EXAMPLE, initial=[1, 0])
    for method in (None, "exact"):
        short = calibrate(chain, 10**4, 1.0, method).scale
        assert calibrate(chain, 10**8, 1.0, method).scale == pytest.approx(short, rel=1e-8)
