"""Supports, classes and periods against graph algorithms and enumeration."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.beliefs import structure
from tests.strategies import stochastic_matrices


def graph_of(step):
    return nx.from_numpy_array(step.astype(int), create_using=nx.DiGraph)


def reached_by_walking(step, start, steps):
    current = {int(x) for x in np.flatnonzero(start)}
    for _ in range(steps):
        current = {y for x in current for y in range(len(step)) if step[x, y]}
    return current


def period_by_powers(step, state):
    """The gcd of the lengths of closed walks from a state, long enough to see every cycle."""
    found, power = 0, step.copy()
    for length in range(1, 2 * len(step) ** 2 + 1):
        if power[state, state]:
            found = math.gcd(found, length)
        power = structure.boolean_product(power, step)
    return found


@given(stochastic_matrices(max_states=6), st.integers(0, 40), st.data())
def test_states_possible_after_n_steps_match_walking(matrix, steps, data):
    step = matrix > 0
    start = np.zeros(len(step), dtype=bool)
    start[data.draw(st.integers(0, len(step) - 1))] = True
    expected = reached_by_walking(step, start, steps)
    assert set(np.flatnonzero(structure.reach_in_steps(start, step, steps))) == expected
    power = structure.boolean_power(step, steps)
    assert set(np.flatnonzero(power[start].any(axis=0))) == expected


@given(stochastic_matrices(max_states=6))
def test_far_times_agree_with_the_period_of_the_support(matrix):
    """From k² steps on, supports repeat with a period that divides lcm(1..k)."""
    step = matrix > 0
    start = np.arange(len(step)) == 0
    cycle = math.lcm(*range(1, len(step) + 1))
    near = structure.reach_in_steps(start, step, len(step) ** 2)
    far = structure.reach_in_steps(start, step, len(step) ** 2 + cycle * 10**7)
    assert np.array_equal(near, far)


@given(stochastic_matrices(max_states=7))
def test_recurrent_classes_are_the_attracting_components(matrix):
    step = matrix > 0
    found = {tuple(c) for c in structure.recurrent_classes(step)}
    assert found == {tuple(sorted(c)) for c in nx.attracting_components(graph_of(step))}


@given(stochastic_matrices(max_states=6))
def test_the_period_is_the_gcd_of_closed_walks(matrix):
    step = matrix > 0
    for found in structure.recurrent_classes(step):
        block = step[np.ix_(found, found)]
        assert structure.class_period(block) == period_by_powers(block, 0)


def test_a_cycle_of_thirty_and_one_of_seven():
    ring = np.roll(np.eye(30, dtype=bool), 1, axis=1)
    assert structure.class_period(ring) == 30
    ring[6, 0] = True
    assert structure.class_period(ring) == 1
