"""The engine of the f-sweep against the slow one, a linear program, and mechanisms in full."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from evidence import tradeoff_reference as slow
from evidence.checks import f_sweep
from evidence.tradeoff_reference import Grid
from quiltwork import ChainBox, CyclicChain, MarkovChain
from quiltwork.beliefs import HiddenChain
from quiltwork.influence.kernel.tradeoffs import CurveKernel
from quiltwork.influence.tradeoffs import largest_level
from quiltwork.influence.tradeoffs.chain_kernels import kernels_of
from quiltwork.influence.tradeoffs.curves import CurveGrid, gaussian_curve, gaussian_level
from quiltwork.influence.tradeoffs.sweep import TradeoffSweep, Window

GRID = Grid(0.05, 60)
UPPER = GRID.gamma[GRID.most :]
P = [[0.9, 0.1], [0.4, 0.6]]


def upper(curves):
    return curves[..., GRID.most :]


def random_curves(rng, size):
    """Curves of Gaussians whose means lie somewhere."""
    means = rng.uniform(0, 1, size)
    found = [[GRID.gaussian(abs(one - other)) for one in means] for other in means]
    return np.array(found)


def test_curves_compose_as_every_split_on_the_grid_says():
    rng, operations = np.random.default_rng(1), CurveKernel(1, UPPER)
    for _ in range(20):
        laws = rng.dirichlet(np.ones(5), 2)
        one = np.max([GRID.hockey_stick(*pair) for pair in (laws, laws[::-1])], axis=0)
        other = GRID.gaussian(float(rng.uniform(0.1, 1)))
        expected = upper(GRID.both_orders(one, other))
        found = operations.compose(upper(one), upper(other))
        assert (found >= expected * (1 - 1e-3) - 1e-12).all()
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-9)


def exact_hull(gamma, curve, back):
    """Corners of a curve that bounds both directions, below 1 from the reversed one, exactly."""
    corners = [(Fraction(0), Fraction(1))]
    for x, y in zip(gamma[:0:-1], back[:0:-1], strict=True):
        corners.append((1 / Fraction(x), 1 - 1 / Fraction(x) + Fraction(y) / Fraction(x)))
    corners += [(Fraction(x), Fraction(y)) for x, y in zip(gamma, curve, strict=True)]
    hull = []
    for x, y in corners:
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-1][0]) >= (
            y - hull[-1][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
    return hull


def exact_value(hull, x):
    for (left, high), (right, low) in itertools.pairwise(hull):
        if left <= x <= right:
            return high + (low - high) * (x - left) / (right - left)
    return hull[-1][1]


def exactly_composed(one, other, gamma):
    """min over γ₁ of a(γ₁) + γ₁·b(γ/γ₁): convex and made of lines, so least at a corner."""
    places = [x for x, _ in one] + [gamma / x for x, _ in other if x]
    return min(
        exact_value(one, x) + x * exact_value(other, gamma / x) if x else Fraction(1)
        for x in places
    )


@pytest.mark.parametrize("level", [0.01, 0.1, 0.6])
def test_no_rounding_takes_a_composition_below_exact_arithmetic(level):
    grid = CurveGrid(np.exp(np.concatenate([np.arange(0, 12) * level / 4, [3.0, 5.0]])))
    operations, gamma, lost = CurveKernel(1, grid.gamma), grid.gamma.tolist(), []
    one, other = grid.gaussian(level), grid.gaussian(level / 3)
    hulls = [exact_hull(gamma, curve.tolist(), curve.tolist()) for curve in (one, other)]
    found = operations.compose(one, other).tolist()
    for at, value in zip(gamma, found, strict=True):
        least = min(exactly_composed(*order, Fraction(at)) for order in (hulls, hulls[::-1]))
        assert Fraction(value) >= min(least, 1)
        lost += [float(Fraction(value) / least) - 1] if least else []
    assert sorted(lost)[len(lost) // 2] < 0.01


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_step_lies_between_the_program_and_the_slow_bounds(size):
    rng = np.random.default_rng(size)
    operations, apart = CurveKernel(size, UPPER), 1 - np.eye(size, dtype=np.uint8)
    compared = 0
    for _ in range(6):
        kernel = rng.dirichlet(np.full(size, 0.7), size)
        kernel = np.where(rng.random((size, size)) < 0.2, 0, kernel) + 1e-12 * np.eye(size)
        kernel /= kernel.sum(axis=1, keepdims=True)
        level, curves = GRID.gaussian(0.3), random_curves(rng, size)
        levels = np.broadcast_to(level, curves.shape)
        found = operations.step(upper(level), kernel, upper(curves), apart, np.ones(size))
        joint = slow.joined(GRID, levels, curves)
        expected = upper(slow.step_of(GRID, kernel, joint))
        for x, y in itertools.permutations(range(size), 2):
            assert (found[x, y] <= expected[x, y] * 1.01 + 1e-9).all()
            for n in (0, 3, 10, 25):
                exact = slow.program(GRID, kernel[x], kernel[y], slow.closed(GRID, joint), UPPER[n])
                assert found[x, y, n] >= exact * (1 - 1e-3) - 1e-6
                compared += exact > 1e-3
    assert compared > 20


def test_one_curve_for_all_pairs_is_the_slow_one():
    operations, level, curve = CurveKernel(1, UPPER), GRID.gaussian(0.3), GRID.gaussian(0.2)
    spread = slow.spread_of(GRID, 1.2)
    found = operations.spread_step(upper(level), upper(spread), upper(curve))
    expected = upper(slow.scalar_step(GRID, spread, GRID.both_orders(level, curve)))
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-9)
    assert CurveGrid(UPPER).spread(1.2) == pytest.approx(upper(spread), rel=1e-9)


@pytest.mark.parametrize("level", [1e-3, 0.07, 0.24, 1.0, 5.0])
def test_gaussian_curves_are_rounded_up_by_little(level):
    for epsilon in np.linspace(0, 12 * level, 40).tolist():
        with np.errstate(under="ignore"):
            high, low = ndtr(level / 2 - epsilon / level), ndtr(-level / 2 - epsilon / level)
        exact, found = high - math.exp(epsilon) * low, gaussian_curve(level, math.exp(epsilon))
        assert found >= exact - 1e-14 * high
        assert found == pytest.approx(exact, rel=1e-5, abs=1e-16)


def test_a_level_is_the_largest_that_keeps_epsilon_and_delta():
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-9), (4, 1e-5)):
        level = gaussian_level(epsilon, delta)
        assert gaussian_curve(level, math.exp(epsilon)) <= delta
        assert gaussian_curve(level * 1.0001, math.exp(epsilon)) > delta


def told(law, weights, epsilon):
    """The exact δ of the worst node: Σ of the points' weights and Gaussian noise of scale 1."""
    centres = sum(
        np.asarray(weights).reshape((1,) * t + (-1,) + (1,) * (law.ndim - t - 1))
        for t in range(law.ndim)
    ) + np.zeros(law.shape)
    worst = 0.0
    for t in range(law.ndim):
        worlds = f_sweep.given(law, [t])
        for a, b in itertools.permutations(worlds, 2):
            edges = np.linspace(centres.min() - 9, centres.max() + 9, 4001)
            where, place = np.unique(centres, return_inverse=True)
            cells = np.diff(ndtr(edges[None] - where[:, None]), axis=1)
            p, q = (np.bincount(place.ravel(), worlds[w].ravel()) @ cells for w in (a, b))
            worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return worst


def a_belief(kind, kernels, begin):
    rows = kernels[0]
    if kind == "cyclic":
        return CyclicChain(kernels[:2], initial=begin)
    if kind == "box":
        return ChainBox(rows, rows)
    initial = {"given": begin, "stationary": "stationary", "any": "any"}[kind]
    return MarkovChain(rows, initial)


@pytest.mark.parametrize("kind", ["given", "stationary", "any", "box", "cyclic"])
def test_calibrated_noise_leaks_no_more_than_delta(kind):
    rng = np.random.default_rng(len(kind))
    leaks = []
    for _ in range(6):
        size, length = int(rng.integers(2, 4)), int(rng.integers(2, 6))
        rows = rng.dirichlet(np.full(size, 1.0), size)
        begin = rng.dirichlet(np.ones(size))
        kernels = [rows] * (length - 1)
        if kind == "cyclic":
            other = rng.dirichlet(np.full(size, 1.0), size)
            length = max(length, 3)
            kernels = [(rows, other)[t % 2] for t in range(length - 1)]
        belief = a_belief(kind, kernels, begin)
        begin = belief.stationary if kind == "stationary" else begin
        law = f_sweep.Chain([begin], kernels).law
        level = largest_level(belief, Window(1, length, length), 0.5, 1e-3).level
        weights = rng.permutation(np.linspace(0, level, size))
        leaks.append(told(law, weights, 0.5) / 1e-3)
    assert max(leaks) <= 1 + 1e-6
    assert max(leaks) > 0.2


def test_two_states_need_little_more_than_an_exact_count_asks_for():
    level = largest_level(MarkovChain(P), Window(1, 6, 6), 1.0, 1e-6).level
    law = f_sweep.Chain([MarkovChain(P).stationary], [np.array(P)] * 5).law
    assert 0.1 < told(law, [0, level], 1.0) / 1e-6 <= 1
    assert told(law, [0, 1.25 * level], 1.0) / 1e-6 > 1


def test_short_windows_of_long_series_are_those_of_short_series_and_long_ones_settle():
    chain = MarkovChain(P)
    levels = [
        largest_level(chain, Window(first, first + points - 1, length), 1.0, 1e-6).level
        for first, points, length in ((1, 20, 20), (500, 20, 1000), (1, 48, 48), (1, 60, 60))
    ]
    assert levels[0] == pytest.approx(levels[1], rel=1e-3)
    assert levels[2] == pytest.approx(levels[3], rel=2e-3)
    assert levels[0] >= levels[3] * (1 - 1e-3)


def test_a_start_is_followed_until_its_law_settles():
    start = largest_level(MarkovChain(P, [1, 0]), Window(1, 1000, 1000), 1.0, 1e-6).level
    settled = largest_level(MarkovChain(P), Window(1, 1000, 1000), 1.0, 1e-6).level
    whatever = largest_level(MarkovChain(P, "any"), Window(1, 1000, 1000), 1.0, 1e-6).level
    assert whatever <= start * (1 + 1e-3)
    assert start <= settled * (1 + 1e-3)


def test_hidden_states_that_show_themselves_are_a_plain_chain():
    hidden = HiddenChain(P, ["a", "b"])
    for length in (8, 500):
        window = Window(1, length, length)
        found = largest_level(hidden, window, 1.0, 1e-6).level
        plain = largest_level(MarkovChain(P), window, 1.0, 1e-6).level
        assert found == pytest.approx(plain, rel=1e-9)


def test_every_iterate_bounds_the_fixed_point():
    """From η downwards, and from nothing upwards: the second never passes the first."""
    kernels, grid = kernels_of(MarkovChain(P), 10_000), CurveGrid.near(1.0, 0.02, 2)
    operations, level = CurveKernel(2, grid.gamma), grid.gaussian(0.07)
    apart, can = 1 - np.eye(2, dtype=np.uint8), np.ones(2, dtype=np.uint8)
    high, low = np.ones((2, 2, len(grid.gamma))), np.zeros((2, 2, len(grid.gamma)))
    for _ in range(60):
        high, low = (
            operations.step(level, kernels.right[0], one, apart, can) for one in (high, low)
        )
        assert (low <= high * (1 + 1e-12)).all()
    assert high[0, 1] == pytest.approx(low[0, 1], rel=1e-6, abs=1e-15)


def test_finer_grids_change_the_noise_by_less_than_a_percent():
    window = Window(1, 10_000, 10_000)
    for rows in (P, [[0.95, 0.05], [0.05, 0.95]], [[0.99, 0.01], [0.01, 0.99]]):
        chain = MarkovChain(rows)
        level = largest_level(chain, window, 1.0, 1e-6).level
        kernels = kernels_of(chain, window.length)
        fine = np.exp(
            np.concatenate([np.arange(0, 1.6, min(level / 32, 1e-3)), np.arange(1.6, 8, 0.05)])
        )
        sweep = TradeoffSweep(kernels, CurveGrid(fine), 1e-6)
        assert sweep.grid.epsilon(sweep.worst(level, window), 1e-6) <= 1.001
        assert sweep.grid.epsilon(sweep.worst(level * 1.01, window), 1e-6) > 1


def test_deterministic_and_unmixing_chains_get_group_privacy():
    window = Window(1, 60, 60)
    alone = gaussian_level(1.0, 1e-6)
    for belief in (MarkovChain(np.eye(2), "any"), MarkovChain([[0, 1], [1, 0]], [0.5, 0.5])):
        found = largest_level(belief, window, 1.0, 1e-6)
        assert found.method == "group"
        assert found.level == pytest.approx(alone / 60)


def test_independent_points_need_what_one_needs():
    found = largest_level(MarkovChain([[0.3, 0.7]] * 2), Window(1, 99, 99), 1.0, 1e-6)
    assert found.level == pytest.approx(found.alone, rel=1e-3)


def test_states_that_only_early_nodes_can_take_are_secrets_too():
    """Long windows of a start with a state of its own are swept as short ones are."""
    rows = [[0.0, 0.5, 0.5], [0.0, 0.8, 0.2], [0.0, 0.3, 0.7]]
    early = MarkovChain(rows, [0.5, 0.25, 0.25])
    window = Window(1, 400, 400)
    found = largest_level(early, window, 1.0, 1e-6).level
    short = largest_level(early, Window(1, 40, 40), 1.0, 1e-6).level
    assert found == pytest.approx(short, rel=3e-3)
