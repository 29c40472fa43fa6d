"""Timelines: supports until they repeat, marginals until they have converged."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import MarkovChain
from quiltwork.influence.timeline import marginals, projective_distance, supports
from tests.sizes import sample
from tests.strategies import chains


@given(chains(1, 4), st.integers(1, 60), st.data())
@settings(max_examples=80)
def test_supports_are_those_of_the_chain_at_every_time(chain, length, data):
    possible = supports(chain, length)
    node = data.draw(st.integers(1, length))
    assert possible.at(node).tolist() == chain.support(node).tolist()
    known = [chain.support(t).sum() == 1 for t in range(1, length + 1)]
    prefix = known.index(False) if False in known else length
    assert min(possible.known_prefix, length) == prefix or prefix == length


@given(chains(1, 4, initials=("given",)), st.integers(1, 60), st.data())
@settings(max_examples=sample(30, full=60))
def test_marginals_are_those_of_the_chain_and_come_ever_closer_to_their_limit(chain, length, data):
    possible = supports(chain, length)
    found = marginals(chain, possible, length)
    for t, law in enumerate(found.values, start=1):
        assert np.allclose(law, chain.marginal(t), rtol=1e-12)
    if found.limit is not None and possible.settled is not None:
        first = data.draw(st.integers(possible.settled, 60))
        later = data.draw(st.integers(first, 500))
        near, far = (
            projective_distance(chain.marginal(t), found.limit, possible.at(t))
            for t in (later, first)
        )
        assert near <= far + 1e-12


def test_a_chain_mixes_if_it_is_in_one_phase_of_one_class():
    two_phases = [[0, 0, 0.7, 0.3], [0, 0, 0.2, 0.8], [0.6, 0.4, 0, 0], [0.3, 0.7, 0, 0]]
    assert supports(MarkovChain(two_phases, [0.5, 0.5, 0, 0]), 100).mixes
    assert supports(MarkovChain(two_phases, [0.5, 0.5, 0, 0]), 100).period == 2
    assert not supports(MarkovChain(two_phases, [0.5, 0, 0.5, 0]), 100).mixes
    assert not supports(MarkovChain([[0.5, 0.5], [0, 1]], [1, 0]), 100).mixes
    assert supports(MarkovChain([[0.5, 0.5], [0, 1]], [0, 1]), 100).mixes
    assert not supports(MarkovChain(np.eye(2), [0.5, 0.5]), 100).mixes


def test_marginals_of_a_slow_chain_stop_when_converged():
    slow = MarkovChain([[0.99, 0.01], [0.01, 0.99]], initial=[1, 0])
    found = marginals(slow, supports(slow, 10**8), 10**8)
    assert len(found.values) == 2048  # the first power of two beyond 2^36·e^(−0.0202·n) = 1
    assert math.log(2**36) / 0.0202 < 2048
