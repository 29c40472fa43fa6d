"""Max-influence: any set of nodes, any belief."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.errors import InvalidInputError
from quiltwork.influence import max_influence
from tests.influence.paths import Paths
from tests.strategies import chains

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])


@given(chains(2, 3), st.integers(3, 30), st.data())
@settings(max_examples=40)
def test_only_the_nearest_node_on_each_side_matters(chain, length, data):
    node = data.draw(st.integers(1, length))
    others = st.sets(st.integers(1, length).filter(lambda t: t != node), max_size=5)
    quilt = data.draw(others)
    nearest = {max([q for q in quilt if q < node], default=0)}
    nearest |= {min([q for q in quilt if q > node], default=0)}
    assert max_influence(chain, node, quilt, length) == max_influence(
        chain, node, nearest - {0}, length
    )


@given(chains(2, 4), st.integers(2, 20), st.data())
@settings(max_examples=40)
def test_influence_falls_with_distance_on_each_side(chain, length, data):
    node = data.draw(st.integers(1, length - 1))
    right = [max_influence(chain, node, (q,), length) for q in range(node + 1, length + 1)]
    left = [max_influence(chain, node, (q,), length) for q in range(node - 1, 0, -1)]
    for side in (left, right):
        for near, far in itertools.pairwise(side):
            assert far <= near + 1e-12


def test_the_empty_quilt_and_known_nodes_have_none():
    assert max_influence(CHAIN, 5, (), 10) == 0
    assert max_influence(CHAIN, 1, (2,), 10) == 0
    assert max_influence(CHAIN, 5, (1,), 10) == 0


def test_states_that_exclude_each_other_have_infinite_influence():
    absorbing = MarkovChain([[0.5, 0.5], [0.0, 1.0]], initial=[1, 0])
    assert max_influence(absorbing, 3, (4,), 5) == math.inf


def test_any_start_takes_the_worst_row():
    """max over z, x ≠ x' of P^a(z,x)/P^a(z,x') · max over y of P^(i−1)(y,x')/P^(i−1)(y,x)."""
    matrix = np.array([[0.9, 0.1], [0.4, 0.6]])
    chain = MarkovChain(matrix, initial="any")
    squared, cubed = matrix @ matrix, matrix @ matrix @ matrix
    worst = max(
        math.log(squared[z, x] / squared[z, y] * cubed[w, y] / cubed[w, x])
        for x, y in ((0, 1), (1, 0))
        for z in (0, 1)
        for w in (0, 1)
    )
    assert max_influence(chain, 4, (2,), 9) == pytest.approx(worst, abs=1e-12)


def test_several_beliefs_take_the_worst():
    other = MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    apart = [max_influence(belief, 5, (3, 8), 10) for belief in (CHAIN, other)]
    assert max_influence([CHAIN, other], 5, (3, 8), 10) == max(apart)


@given(st.integers(0, 10**6), st.integers(2, 5), st.data())
@settings(max_examples=40)
def test_a_box_bounds_every_chain_in_it(seed, length, data):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    matrix = rng.dirichlet(np.ones(size), size=size)
    width = rng.uniform(0, 0.2, (size, size))
    box = ChainBox(np.maximum(matrix - width, 0), np.minimum(matrix + width, 1))
    node = data.draw(st.integers(1, length))
    quilt = tuple(t for t in range(1, length + 1) if t != node and rng.random() < 0.6)
    paths = Paths(matrix, rng.dirichlet(np.ones(size)), length)
    truth = paths.influence(node, quilt) if quilt else 0.0
    assert max_influence(box, node, quilt, length) >= truth - 1e-12


def test_clusters_are_all_or_nothing():
    homes = Clusters(["a", "b", "a", "b", "c"])
    assert max_influence(homes, 1, (2, 4, 5)) == 0
    assert max_influence(homes, 1, (2, 3)) == math.inf


@pytest.mark.parametrize(
    ("node", "quilt", "message"),
    [
        (0, (2,), "node must be at least 1"),
        (11, (2,), "node is 11, but there are only 10"),
        (3, (2, 11), "A quilt node is 11"),
        (3, (0,), "at least 1"),
        (3, (3, 5), "contains node 3 itself"),
        (2.5, (1,), "integer"),
    ],
)
def test_nodes_are_checked(node, quilt, message):
    with pytest.raises(InvalidInputError, match=message):
        max_influence(CHAIN, node, quilt, 10)


def test_a_chain_needs_a_length():
    with pytest.raises(InvalidInputError, match="length is missing"):
        max_influence(CHAIN, 3, (5,))
