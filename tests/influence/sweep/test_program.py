"""The program behind the sweep against a general solver of linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from quiltwork.influence.sweep.program import RatioProgram, RowPairs, metric_closure


def by_solver(p, q, limits):
    """max log p·u − log q·u, u(z) ≤ e^A[z,y]·u(y), with q·u = 1."""
    size, rows = len(p), []
    for z in range(size):
        for y in range(size):
            if z != y:
                row = np.zeros(size)
                row[z], row[y] = np.exp(-max(limits[z, y], 0)), -np.exp(min(limits[z, y], 0))
                rows.append(row)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(-p, rows, np.zeros(len(rows)), [q], [1], options=tight)
    return np.log(-found.fun)


def random_case(rng, size=None):
    size, pairs = size or int(rng.integers(2, 6)), 4
    p, q = (rng.dirichlet(np.ones(size) * rng.choice([0.3, 1, 5]), pairs) for _ in range(2))
    if rng.random() < 0.3:
        p[rng.random(p.shape) < 0.3] = 0
        q[rng.random(p.shape) < 0.3] = 0
    p[:, 0], q[:, 0] = p[:, 0] + 1e-3, q[:, 0] + 1e-3
    limits = rng.gamma(1, rng.choice([0.1, 1, 3]), (2, size, size))
    if rng.random() < 0.5:
        tilt = rng.normal(size=(2, size))
        limits += tilt[:, :, np.newaxis] - tilt[:, np.newaxis, :]
    limits[:, np.arange(size), np.arange(size)] = 0
    return p, q, limits


def test_bounds_are_those_of_a_solver_and_never_below():
    rng = np.random.default_rng(1)
    for case in range(25):
        p, q, limits = random_case(rng, 16 if case < 3 else None)
        program, group = RatioProgram(np.array([0, 1, 0, 1]), p.shape[1]), [0, 1, 0, 1]
        for _ in range(2):  # the second time from kept trees
            found = program.bound(RowPairs(p, q), limits)
            expected = [by_solver(p[m], q[m], limits[g]) for m, g in enumerate(group)]
            assert found == pytest.approx(expected, abs=1e-7)
            assert (found >= np.array(expected) - 2e-9).all()
            limits = limits * rng.uniform(0.8, 1.3)


def test_states_that_are_hardly_ever_met_hardly_count():
    """Entries of 10⁻²⁰ or less move no bound, on either side of rows that share no state."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        p, q, limits = random_case(rng, int(rng.integers(3, 6)))
        q[:, 1] += 1e-3
        apart = rng.random((4, 1)) < 0.5
        p[:, 1:], q[:, :1] = np.where(apart, 0, p[:, 1:]), np.where(apart, 0, q[:, :1])
        rare = rng.random(p.shape) < 0.4
        rare[:, :2] = False
        p, q = (np.where(rare, 0, row / row.sum(axis=1, keepdims=True)) for row in (p, q))
        tiny = np.where(rare, 10.0 ** -rng.uniform(20, 60, p.shape), 0)
        first = rng.random((4, 1)) < 0.5
        group = np.array([0, 1, 0, 1])
        without = RatioProgram(group, p.shape[1]).bound(RowPairs(p, q), limits)
        rows = RowPairs(p + tiny * first, q + tiny * ~first)
        found = RatioProgram(group, p.shape[1]).bound(rows, limits)
        assert found == pytest.approx(without, abs=1e-9)


def test_slopes_are_the_derivatives_in_the_limits():
    rng = np.random.default_rng(2)
    for _ in range(20):
        p, q, limits = random_case(rng)
        for z in range(p.shape[1]):  # no limit is implied by two others
            limits = np.minimum(limits, limits[:, :, [z]] + limits[:, [z], :])
        apart = ~np.eye(p.shape[1], dtype=bool)
        program = RatioProgram(np.array([0, 1, 0, 1]), p.shape[1])
        found = program.solve(RowPairs(p, q), limits + 1e-3 * apart)
        raised = program.bound(RowPairs(p, q), limits + (1e-3 + 1e-6) * apart)
        assert raised - found.values == pytest.approx(1e-6 * found.slope.sum(axis=1), abs=2e-8)


def test_rows_are_rounded_towards_privacy():
    tiny = RowPairs(np.array([[1.0, 1e-300]]), np.array([[1.0, 1e-300]]))
    assert tiny.above[0, 1] > 1e-200
    assert tiny.below[0, 1] == 0
    limits = np.array([[[0.0, 5.0], [5.0, 0.0]]])
    assert RatioProgram(np.array([0]), 2).bound(tiny, limits)[0] >= 0


def test_limits_of_states_that_rows_do_not_reach_do_not_count():
    p, q = np.array([[0.5, 0.5, 0.0]]), np.array([[0.4, 0.6, 0.0]])
    limits = np.array([[[0, 1, 900], [1, 0, 900], [np.inf, np.inf, 0]]], dtype=float)
    pair = RatioProgram(np.array([0]), 2).bound(RowPairs(p[:, :2], q[:, :2]), limits[:, :2, :2])
    assert RatioProgram(np.array([0]), 3).bound(RowPairs(p, q), limits) == pytest.approx(
        pair, abs=1e-9
    )


def test_limits_by_way_of_a_state_that_cannot_be_there_say_nothing():
    limits = np.array([[[0, np.inf, 1.0], [-np.inf, 0, -np.inf], [2.0, np.inf, 0]]])
    assert np.array_equal(metric_closure(limits), limits)
