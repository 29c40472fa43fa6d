"""Scales are those of the noise actually added: every way in against enumeration of all paths.

Values, answers and densities are written out here from their definitions; of the package only the
released scale is used.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import quiltwork as qw
from evidence.enclosure import enclose
from evidence.informed_adversaries import strongest_adversary
from quiltwork import audit, queries

T = 6
CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=[0, 100])
UNEVEN = qw.MarkovChain(
    [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], [0.5, 0.3, 0.2], states=[0, 30, 100]
)
ANSWERS = {
    "count": (queries.count(100), lambda path: [path.count(100)]),
    "sum": (queries.sum(0, 100), lambda path: [sum(path)]),
    "mean": (queries.mean(0, 100), lambda path: [sum(path) / len(path)]),
    "wide": (queries.sum(-50, 300), lambda path: [sum(path)]),
    "window": (queries.mean(0, 100).on(2, 4), lambda path: [sum(path[1:4]) / 3]),
    "frequencies": (
        queries.frequencies(),
        lambda path: [path.count(s) / len(path) for s in (0, 100)],
    ),
}


def truth(chain, answer, scale, length=T):
    """max log p(w | X_i = a)/p(w | X_i = b) over all outputs at kinks of the densities."""
    paths = list(itertools.product(range(chain.size), repeat=length))
    weight = np.array(
        [
            chain.start[p[0]] * math.prod(chain.transition[a, b] for a, b in itertools.pairwise(p))
            for p in paths
        ]
    )
    values = np.array([answer([chain.states[s] for s in p]) for p in paths], dtype=float)
    outputs = np.array(list(itertools.product(*(np.unique(column) for column in values.T))))
    kernel = np.exp(-np.abs(outputs[:, None, :] - values[None]).sum(axis=2) / scale)
    worst = 0.0
    for node in range(length):
        rows = [np.array([p[node] == s for p in paths]) for s in range(chain.size)]
        laws = [kernel[:, row] @ weight[row] / weight[row].sum() for row in rows]
        spread = [np.log(a / b).max() for a, b in itertools.permutations(laws, 2)]
        worst = max(worst, *spread)
    return float(worst)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("as_released", [False, True])
def test_every_way_in_equals_enumeration_with_the_noise_actually_added(name, as_released):
    query, answer = ANSWERS[name]
    released = qw.release([0, 100, 100, 0, 0, 100], query, CHAIN, epsilon=1)
    known = truth(CHAIN, answer, released.scale)
    asked = [(released.query if as_released else query, released.scale)]
    rounded = name == "wide" and as_released
    near = pytest.approx(known, abs=1 / 1024 if rounded else 1e-9)
    assert audit.leakage(CHAIN, T, asked) == near
    found = audit.report(CHAIN, T, asked, claimed=1)
    assert (found.lower, found.upper) == (near, near)
    assert found.sound is True
    assert found.dp_epsilon == pytest.approx(released.dp_epsilon)
    enclosed = enclose(CHAIN, T, asked)
    assert (enclosed.lower, enclosed.upper) == (near, near)
    worst = audit.worst_case(CHAIN, T, asked)
    moved = audit.odds(CHAIN, T, asked, worst.output).moved
    assert moved.max() == near
    assert strongest_adversary(CHAIN, T, asked, known=[]).epsilon == near
    assert truth(CHAIN, answer, 1.05 * released.scale) != near


@pytest.mark.parametrize("method", ["exact", "optimal-scale"])
@pytest.mark.parametrize("name", [n for n in ANSWERS if n != "wide"])
def test_a_calibration_is_in_units_of_the_answer_too(name, method):
    query, answer = ANSWERS[name]
    found = qw.calibrate(CHAIN, T, 1, method, query)
    released = qw.release([0, 100, 100, 0, 0, 100], query, CHAIN, epsilon=1, method=method)
    assert found.scale == pytest.approx(released.scale, rel=1e-12)
    level = truth(CHAIN, answer, found.scale)
    assert level <= 1 + 1e-9
    if method == "optimal-scale":
        assert level > 0.999
    assert max(run.scale for run in found.per_node()) == pytest.approx(found.scale, rel=1e-6)


def test_outputs_are_answers_and_not_steps_of_a_grid():
    assert audit.worst_case(CHAIN, T, [(queries.sum(0, 100), 600)]).output == (600,)
    fine = qw.release([0, 100] * 3, queries.mean(0, 100), CHAIN, epsilon=1)
    assert audit.worst_case(CHAIN, T, [(fine.query, fine.scale)]).output == (100,)


def test_values_between_the_bounds_are_not_rounded_to_them():
    query, answer = queries.sum(0, 100), lambda path: [sum(path)]
    for scale in (20, 150):
        found = audit.leakage(UNEVEN, 4, [(query, scale)])
        assert found == pytest.approx(truth(UNEVEN, answer, scale, 4), abs=1e-9)


def test_the_exact_calibration_never_takes_values_for_equal_that_are_not():
    chain = qw.MarkovChain(CHAIN.transition, CHAIN.start, states=[0, 0.4])
    released = qw.release(
        [0, 0.4] * 3, queries.mean(0, 1), chain, epsilon=1, method="optimal-scale"
    )
    low, high = (float(value) for value in released.query.values((0, 0.4)))

    def on_grid(path):
        return [sum(low if s == 0 else high for s in path) / len(path)]

    assert 0.99 < truth(chain, on_grid, released.scale) <= 1


def test_a_noise_beyond_all_floats_gets_one_sentence():
    for scale in (1e-320, 10**400, 10**5000):
        with pytest.raises(qw.InvalidInputError, match="far outside the range"):
            audit.leakage(CHAIN, T, [(queries.count(0), scale)])
    assert audit.report(CHAIN, 10**15, [(queries.count(0), 1)]).dp_epsilon == 1
