"""The f-sweep against mechanisms written out in full; what is wrong must be caught."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from evidence import tradeoff_reference as slow
from evidence.checks import f_sweep
from evidence.tradeoff_reference import Grid


def test_no_mechanism_tells_more_than_the_f_sweep_says():
    found = f_sweep.check(3)
    assert found["violations"] == 0
    assert found["values compared"] > 3_000


def caught(kind, seeds=range(60)):
    """Whether some case of a kind contradicts a broken claim."""
    for seed in seeds:
        try:
            kind(np.random.default_rng([seed, 5]), f_sweep.Tally())
        except AssertionError:
            return True
    return False


def test_a_state_that_cannot_occur_is_no_reference(monkeypatch):
    """X_1 = X_2 is never 2; X_1 is shown, and X_3 is X_2 most of the time."""
    laws = [np.array([0.5, 0.5, 0.0])] * 2 + [np.array([0.5, 0.5, 0.0])]
    follow = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.4, 0.4, 0.2]])
    chain = f_sweep.Chain(laws, [np.eye(3), follow])
    answers = np.broadcast_to(np.eye(3)[:, None, None], (3, 3, 3, 3))
    shown = f_sweep.table(answers)
    worlds = f_sweep.given(chain.law, [2])
    true = shown.tradeoff(worlds[0,], worlds[1,])[f_sweep.GRID.most]
    assert true == pytest.approx(0.8)

    def claim():
        left = slow.left_of(f_sweep.GRID, chain.laws, chain.kernels, shown.levels)[2]
        return slow.leak(f_sweep.GRID, shown.levels[2], left, left * 0 + f_sweep.GRID.nothing)

    assert claim()[0, 1, f_sweep.GRID.most] == pytest.approx(true)
    step = slow.step_of

    def without_trap(grid, rows, joint, possible=None):
        return step(grid, rows, joint)

    monkeypatch.setattr(slow, "_impossible", lambda law: np.zeros((len(law),) * 2, dtype=bool))
    monkeypatch.setattr(slow, "step_of", without_trap)
    assert claim()[0, 1, f_sweep.GRID.most] < 0.1


def test_total_variation_that_is_too_small_is_caught(monkeypatch):
    right = f_sweep.slow.leak
    monkeypatch.setattr(f_sweep.slow, "leak", lambda *given: 0.95 * right(*given))
    assert caught(f_sweep.nodes)


def test_compositions_that_forget_the_factor_are_caught(monkeypatch):
    def forgetful(grid, a, b):
        n = np.arange(len(a))
        rest = n[:, None] - n[None] + grid.most
        inside = np.where(rest < 0, 1.0, b[np.clip(rest, 0, len(a) - 1)])
        return (a[None] + np.minimum(grid.gamma[None], 1) * inside).min(axis=1)

    monkeypatch.setattr(Grid, "compose", forgetful)
    assert caught(f_sweep.nodes) or caught(f_sweep.episodes)


def test_gaussian_shifts_compose_to_the_sum_of_their_levels():
    grid = Grid(0.02, 150)
    both = grid.compose(grid.gaussian(0.5), grid.gaussian(0.7))
    assert both == pytest.approx(grid.gaussian(1.2), abs=2e-3)
    assert (both >= grid.gaussian(1.2) - 1e-12).all()


def test_windows_forbid_convolution():
    """X_1 = X_2 is a fair coin and X_1 + X_2 is released with noise 1."""
    grid = Grid(0.02, 150)
    one = np.array([[0.0, 1.0], [1.0, 0.0]])[..., None] * grid.gaussian(1.0)
    level = np.maximum(one, grid.nothing)
    right = slow.step_of(grid, np.eye(2), slow.joined(grid, level, _nothing(grid)))
    claim = slow.leak(grid, level, _nothing(grid), right)[0, 1, grid.most]
    true = 2 * ndtr(1) - 1
    assert true == pytest.approx(0.6827, abs=1e-4)
    assert true <= claim < 0.684
    assert 2 * ndtr(math.sqrt(0.5)) - 1 < 0.521 < true  # what squares that add would say


def _nothing(grid):
    return np.broadcast_to(grid.nothing, (2, 2, len(grid.gamma)))


def gaussian(mu, gamma):
    e = np.log(gamma)
    return ndtr(mu / 2 - e / mu) - gamma * ndtr(-mu / 2 - e / mu)


def both_sides(curve, gamma):
    """A curve of γ ≥ 1 for a pair that is its own reverse, at any γ > 0."""
    mirrored = 1 - gamma + gamma * curve(1 / np.minimum(gamma, 1))
    return np.where(gamma >= 1, curve(np.maximum(gamma, 1)), mirrored)


def through_a_step(mu, gamma, stay=0.9):
    eta = np.maximum(stay - gamma * (1 - stay), 0)
    inside = 1 + (gamma - 1) / np.where(eta > 0, eta, 1)
    return np.where(eta > 0, eta * gaussian(mu, inside), 0)


def test_each_plan_keeps_delta_about_both_points_and_choosing_by_the_first_outcome_does_not():
    """X_1 is released with μ = .1875, then X_1 again or X_2; ε = 1 and δ = 1e-6."""
    first = 0.1875
    whole = brentq(lambda mu: gaussian(mu, math.e) - 1e-6, 0.05, 1)
    again = math.sqrt(whole**2 - first**2)
    y = np.linspace(-9, 9, 100_001)
    weight = np.exp(-(y**2) / 2) / math.sqrt(2 * math.pi) * (y[1] - y[0])

    def after(shown, curve, mu):
        """The excess left after each outcome of the secret itself, shown with a level."""
        left = math.e / np.exp(shown * y + shown**2 / 2)
        return both_sides(lambda gamma: curve(mu, gamma), left)

    other = brentq(lambda mu: weight @ after(first, through_a_step, mu) - 1e-6, 0.01, 2)
    assert (again, other) == pytest.approx((0.14447, 0.18198), abs=1e-5)
    about_first = {
        "again": after(first, gaussian, again),
        "other": after(first, through_a_step, other),
    }
    for plan in about_first.values():
        assert weight @ plan == pytest.approx(1e-6, rel=1e-6)
    # About X_2 the second release is of the secret, and the first one passes a step.
    assert through_a_step(whole, math.e) == pytest.approx(6.254e-10, rel=1e-3)
    assert weight @ after(other, through_a_step, first) == pytest.approx(8.614e-7, rel=1e-3)
    assert weight @ np.maximum(*about_first.values()) == pytest.approx(1.0125e-6, rel=1e-4)


@pytest.mark.parametrize(
    ("second", "shown", "secret", "delta"),
    [
        (0.14447, 0, 0, 9.998e-7),
        (0.14447, 0, 1, 6.253e-10),
        (0.18198, 1, 0, 9.998e-7),
        (0.18198, 1, 1, 8.611e-7),
    ],
)
def test_the_excess_of_both_plans_is_that_of_their_densities_in_the_plane(
    second, shown, secret, delta
):
    """Integrated over both outcomes, without curves: plan A shows X_1 again, plan B X_2."""
    y = np.linspace(-9, 9, 1_501)
    step = y[1] - y[0]

    def bell(mean):
        return np.exp(-((y - mean) ** 2) / 2) / math.sqrt(2 * math.pi)

    worlds = [np.zeros((len(y), len(y))) for _ in range(2)]
    for path in np.ndindex(2, 2):
        chance = 0.9 if path[0] == path[1] else 0.1
        worlds[path[secret]] += chance * np.outer(
            bell(0.1875 * path[0]), bell(second * path[shown])
        )
    excess = np.maximum(worlds[1] - math.e * worlds[0], 0).sum() * step**2
    assert excess == pytest.approx(delta, rel=2e-3)
    assert excess <= 1e-6
