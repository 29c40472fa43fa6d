"""Every start at once: the closed form of one step, and states that only early nodes can take."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidence import sweep_program as linear
from evidence.random_chains import random_matrix
from evidence.random_sweeps import extreme_start
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant
from quiltwork.influence import calibrate
from quiltwork.influence.sweep import Levels, sweep_of
from quiltwork.influence.sweep.program import AnyStartProgram, RowPairs

LEFT_AT_ONCE = [[0, 0.6, 0.4], [0, 5 / 13, 8 / 13], [0, 3 / 8, 5 / 8]]
LINGERS = [[0.1, 0, 0.5, 0.4], [0, 0, 0.5, 0.5], [0, 0, 0.6, 0.4], [0, 0, 0.3, 0.7]]


def ratio(m, p, q, u) -> float:
    """Log of how far apart columns p and q of a matrix with rows weighted by m make u."""
    return math.log((m * p * u).sum() / (m * p).sum() / (m * q * u).sum() * (m * q).sum())


def metric_closure(limits: np.ndarray) -> np.ndarray:
    for z in range(len(limits)):
        limits = np.minimum(limits, limits[:, [z]] + limits[[z]])
    return limits


def columns(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = int(rng.integers(2, 6))
    p, q = rng.dirichlet(np.full(size, 0.7), 2)
    limits = rng.exponential(rng.choice([0.1, 1, 5]), (size, size)) * (1 - np.eye(size))
    return p, q, metric_closure(limits)


@pytest.mark.parametrize("seed", range(30))
def test_one_step_is_the_largest_over_all_weights_and_functions(seed):
    """Never exceeded at random, and attained by weights on two states."""
    rng = np.random.default_rng(seed)
    p, q, limits = columns(rng)
    program = AnyStartProgram(np.array([0]), len(p))
    bounds = program.solve(RowPairs(p[np.newaxis], q[np.newaxis]), limits[np.newaxis])
    for _ in range(200):
        u = np.exp((limits + rng.exponential(3, len(p))).min(axis=1))
        u = np.exp((limits + np.log(u)).min(axis=1))
        m = 10 ** -rng.uniform(0, 4, len(p))
        assert ratio(m, p, q, u) <= bounds.values[0]
    z, y = bounds.high[0, 0], bounds.low[0, 0]
    u = np.exp(limits[:, y])
    delta = math.log(p[z] * q[y] / (p[y] * q[z]))
    m = np.zeros(len(p))
    m[z], m[y] = 1 / math.sqrt(p[z] * q[z] * u[z]), 1 / math.sqrt(p[y] * q[y] * u[y])
    assert delta > 0
    assert ratio(m, p, q, u) == pytest.approx(bounds.values[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_slopes_are_differences(seed):
    p, q, limits = columns(np.random.default_rng(seed))
    program, rows = (
        AnyStartProgram(np.array([0]), len(p)),
        RowPairs(p[np.newaxis], q[np.newaxis]),
    )
    found = program.solve(rows, limits[np.newaxis])
    moved = limits.copy()
    moved[found.high[0, 0], found.low[0, 0]] += 1e-6
    rise = program.solve(rows, moved[np.newaxis]).values[0] - found.values[0]
    assert rise / 1e-6 == pytest.approx(found.slope[0, 0], abs=1e-4)


@pytest.mark.parametrize("length", [2, 10, 1000])
def test_a_state_that_nothing_leads_to_does_not_end_the_sweep(length):
    chain = MarkovChain(LEFT_AT_ONCE, "any")
    found = calibrate(chain, length, 1.0, "sweep").scale
    assert found <= calibrate(chain, length, 1.0, "exact").scale
    assert found == pytest.approx(1.2324 if length > 2 else 11 / 9, abs=5e-5)


@pytest.mark.parametrize("seed", range(8))
def test_no_mechanism_tells_more_whatever_the_start(seed):
    rng = np.random.default_rng(seed)
    matrix, length = random_matrix(rng, 3, "transient"), 5
    levels = rng.choice([0.2, 1.0, 2.0], length)
    said = sweep_of(MarkovChain(matrix, "any"), length).worst(
        Levels.of_points(levels), range(1, length + 1)
    )
    for _ in range(4):
        law = linear.chain_law(extreme_start(rng, 3), [matrix] * (length - 1))
        told = [linear.chain_supremum(law, levels, [node]) for node in range(length)]
        assert max(told) <= said.leak + 1e-7


@pytest.mark.parametrize("seed", range(12))
def test_a_longer_series_tells_no_less(seed):
    """A short one is swept from end to end, a long one from bounds of an endless series."""
    rng = np.random.default_rng(seed)
    shape = ("transient", "sparse", "absorbing")[seed % 3]
    chain = MarkovChain(random_matrix(rng, 4, shape), "any")
    for level in (0.01, 0.3):
        short, long = (
            sweep_of(chain, n).worst(Levels.constant(level, n), range(1, n + 1)).leak
            for n in (60, 2000)
        )
        assert long >= short * (1 - 1e-9)


def test_a_state_of_early_nodes_only_bounds_no_others():
    """State 1 is a first state alone; by way of it all others would be two levels apart for ever.

    But who is still in state 0 was there all the time, so that all releases tell of it.
    """
    chain = MarkovChain(LINGERS, "any")
    assert sweep_of(chain, 500).left.fixed(0.5) is None
    for length in (50, 500, 2000):
        assert calibrate(chain, length, 1.0, "sweep").scale == pytest.approx(length)


@pytest.mark.parametrize(
    ("matrix", "length", "epsilon"),
    [
        ([[3e-5, 1 - 3e-5], [0.5, 0.5]], 100, 1),
        ([[0.75, 0.25], [1 - 2e-6, 2e-6]], 20, 5),
        ([[0.98, 0.02], [0.3, 0.7]], 1000, 1),
    ],
)
def test_an_unlikely_step_needs_no_more_noise_than_quilts(matrix, length, epsilon):
    """One step allows for laws that no start leads to after two."""
    chain = MarkovChain(matrix, "any")
    quilts = calibrate(chain, length, epsilon, "exact")
    assert calibrate(chain, length, epsilon).scale < 0.9 * quilts.scale


@pytest.mark.parametrize("length", [16, 17, 40])
def test_noise_from_any_start_fits_its_own_account(length):
    """Long spans tell less than single steps add up to here, and both sides of the house know."""
    rows = [[0.25] * 4, [0.25] * 4, [0.1, 0.1, 0.1, 0.7], [1 / 12, 1 / 6, 2 / 3, 1 / 12]]
    chain = MarkovChain(rows, "any")
    found = calibrate(chain, length, 1)
    account = Accountant(chain, length, budget=1)
    account.spend(1 / found.exact_scale)
    assert account.epsilon() == pytest.approx(1, rel=1e-8)
