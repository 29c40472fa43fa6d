"""The per-node profile, its runs and the figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evidence import enumeration
from quiltwork import queries
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.influence import calibrate, influence_curve
from tests.sizes import sample
from tests.strategies import chains

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])


@given(chains(2, 3, initials=("given", "stationary")), st.integers(1, 6), st.data())
@settings(max_examples=40)
def test_each_node_needs_the_best_over_its_separators(chain, length, data):
    epsilon = data.draw(st.sampled_from([0.3, 1, 3]))
    weighted = enumeration.paths(chain, length)
    found = calibrate(chain, length, epsilon, "exact").per_node()
    for node in range(1, length + 1):
        best = enumeration.best_scale(weighted, length, node, epsilon)
        assert found.at(node) == pytest.approx(best, rel=1e-9)


@given(chains(2, 4), st.integers(1, 80), st.data())
@example(MarkovChain([[0.5, 0.5], [0.5, 0.5]], initial=[1, 0]), 3, None)  # node 1 is known
@settings(max_examples=sample(10, full=40))
def test_the_worst_node_of_the_profile_is_the_calibration(chain, length, data):
    query = data and data.draw(st.sampled_from([None, queries.histogram(), queries.transitions()]))
    found = calibrate(chain, length, 1, query=query)
    nodes, scales = found.per_node().arrays()
    assert nodes.tolist() == list(range(1, length + 1))
    assert scales.max() == pytest.approx(found.scale, rel=1e-8)
    if found.nearby < length:  # else all nodes are paid for at once, and none is the worst
        assert scales[found.node - 1] == pytest.approx(found.scale, rel=1e-8)


@given(chains(2, 3), st.integers(2, 40), st.data())
@settings(max_examples=sample(6, full=25))
def test_a_node_of_the_profile_is_the_calibration_of_that_secret_alone(chain, length, data):
    node = data.draw(st.integers(1, length))
    alone = calibrate(chain, length, 1, "exact", secrets=(node, node))
    found = calibrate(chain, length, 1, "exact").per_node()
    assert found.at(node) == pytest.approx(alone.scale, rel=1e-9)
    swept = calibrate(chain, length, 1, secrets=(node, node))  # the profile tries some scales
    assert calibrate(chain, length, 1).per_node().at(node) >= swept.scale * (1 - 1e-8)


def test_a_long_series_is_a_few_runs():
    found = calibrate(CHAIN, 10**8, 1, "exact").per_node()
    assert len(found) < 500
    assert found.runs[0].first == 1
    assert found.runs[-1].last == 10**8
    assert all(a.last + 1 == b.first for a, b in zip(found.runs, found.runs[1:], strict=False))
    assert found.at(8) == pytest.approx(12.934051, abs=5e-7)
    assert found.at(10**7) == pytest.approx(12.839964, abs=5e-6)
    assert found.at(1) == 0


def test_a_ramp_of_a_hundred_million_nodes_is_bounded_by_few_runs():
    """Nothing two-sided is finite and the right side forgets: node i needs about i/ε."""
    box = ChainBox([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.5], [0.5, 1.0]])
    found = calibrate(box, 10**8, 1).per_node()
    assert len(found) < 10_000


def test_secrets_and_several_beliefs():
    other = MarkovChain([[0.6, 0.4], [0.3, 0.7]], initial=[1, 0])
    found = calibrate([CHAIN, other], 30, 1, "exact", secrets=(3, 9)).per_node()
    apart = [calibrate(belief, 30, 1, "exact").per_node() for belief in (CHAIN, other)]
    assert found.runs[0].first == 3
    assert found.runs[-1].last == 9
    for node in range(3, 10):
        assert found.at(node) == pytest.approx(max(one.at(node) for one in apart), rel=1e-9)
    with pytest.raises(KeyError):
        found.at(2)


def test_clusters_need_their_own_sizes():
    found = calibrate(Clusters(["a", "b", "a", "c"]), None, 0.5).per_node()
    assert found.arrays()[1].tolist() == [4, 2, 4, 2]


def test_the_figures_show_every_run_and_both_lines():
    pytest.importorskip("matplotlib")
    axes = calibrate(CHAIN, 100, 1, "exact").plot()
    assert axes.get_xlabel() == "time point"
    assert "12.93" in axes.get_legend().get_texts()[1].get_text()
    axes = influence_curve(CHAIN, 100).plot()
    belief, independent = axes.get_lines()
    assert (np.asarray(belief.get_ydata()) >= np.asarray(independent.get_ydata())).all()


def test_the_curve_of_known_nodes_can_be_drawn():
    pytest.importorskip("matplotlib")
    known = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    assert influence_curve(known, 5).plot().get_xlabel()
