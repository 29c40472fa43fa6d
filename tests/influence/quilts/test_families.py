"""Families: every node once, the trivial quilt always there, tables that agree with their parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import Clusters, MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import max_influence, quilt_families
from quiltwork.influence.quilts.families import IntervalFamily
from tests.influence.quilts.listed import Listed
from tests.sizes import sample
from tests.strategies import chains

METHODS = ("exact", "approx", "contraction", "group", "entry")


@given(chains(1, 4), st.integers(1, 90), st.integers(1, 20), st.sampled_from(METHODS))
@settings(max_examples=80)
def test_families_hold_every_node_once_and_so_do_their_refinements(chain, length, reach, method):
    seen: Counter[int] = Counter()
    waiting = list(quilt_families(chain, length, reach, method))
    while waiting:
        family = waiting.pop()
        parts = list(family.refined())
        if parts:
            inside = sorted(int(node) for part in parts for node in part.nodes)
            assert inside == [int(node) for node in family.nodes]
            waiting += parts
        else:
            seen.update(int(node) for node in family.nodes)
    assert seen == Counter(range(1, length + 1))


@given(chains(2, 3), st.integers(1, 12), st.data())
@settings(max_examples=sample(30, full=60))
def test_every_candidate_of_an_exact_family_has_its_quilts_influence(chain, length, data):
    """At blocks of many nodes it may be higher, never lower; at single nodes it is equal."""
    reach = data.draw(st.integers(1, 14))
    for family in quilt_families(chain, length, reach, "exact"):
        node = data.draw(st.sampled_from(list(family.nodes)))
        intervals = isinstance(family, IntervalFamily)
        every = Listed(family).at(node) if intervals else family
        for candidate in data.draw(
            st.lists(st.sampled_from(range(len(every.influence))), max_size=6)
        ):
            quilt, runs = every.quilts[candidate], every.owner == candidate
            ends = zip(every.start[runs], every.stop[runs], strict=True)
            nearby = [t for first, last in ends for t in range(first, last + 1)]
            assert not set(quilt) & set(nearby)
            if intervals:
                assert node in nearby
                assert separated(nearby, quilt, length)
            true = max_influence(chain, node, quilt, length)
            assert every.influence[candidate] >= true - 1e-12


@given(chains(2, 3), st.integers(1, 12), st.integers(1, 14))
@settings(max_examples=30)
def test_the_quilt_that_leaves_everything_unknown_nearby_is_always_there(chain, length, reach):
    for family in quilt_families(chain, length, reach, "exact"):
        if isinstance(family, IntervalFamily):
            every = Listed(family).at(family.nodes[0])
            trivial = every.start[0], every.stop[0], every.influence[0]
            assert trivial == (family.origin, length, 0)
            assert all(chain.support(t).sum() == 1 for t in range(1, family.origin))


def separated(nearby, quilt, length: int) -> bool:
    """Whether walking along the chain from the nearby set meets the quilt before anything else."""
    edges = {min(nearby) - 1, max(nearby) + 1} & set(range(1, length + 1))
    return edges <= set(quilt)


def test_a_larger_reach_only_adds_candidates():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    near, far = (Listed(*quilt_families(chain, 100, reach, "exact")) for reach in (5, 20))
    kept = (far.left < 5) & (far.right < 5)
    assert far.influence[kept].tolist() == near.influence.tolist()
    assert not far.family.complete
    assert next(iter(quilt_families(chain, 100, 99, "exact"))).complete


def test_a_known_first_node_ends_the_nearby_set():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    family = next(f for f in quilt_families(chain, 100, 50, "exact") if 8 in f.nodes)
    start, stop = family.span(8, np.array([-1]), np.array([4]))
    assert (start[0], stop[0]) == (2, 12)
    assert family.separator(8, -1, 4) == (1, 13)


def test_clusters_cut_into_runs():
    homes = Clusters(["a", "a", "b", "a", "b", "b"])
    (family,) = quilt_families(homes, None, 10, "exact")
    three, four = family.of(3), family.of(4)
    assert [x.tolist() for x in (four.owner, four.start, four.stop)] == [[0, 0], [1, 4], [2, 4]]
    assert [x.tolist() for x in (three.owner, three.start, three.stop)] == [[0, 0], [3, 5], [3, 6]]
    assert three.quilts == ((),)


def test_something_else_is_no_belief():
    with pytest.raises(UnsupportedError, match="not defined for a dict"):
        quilt_families({}, 10, 5, "exact")
