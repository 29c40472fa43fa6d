"""Bounds: Lemma 2.3 with its preconditions, contraction, boxes, and what they never undercut."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import max_influence
from quiltwork.influence.diameters import (
    _one_step_more,
    _overlapping,
    box_diameter,
    cycle_diameters,
    diameters,
)
from quiltwork.influence.quilts import distance_bounds
from tests.strategies import boxes, positive_chains, stochastic_matrices

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
DISTANCES = np.arange(1, 60)


def spectral_side(gap: float, least: float, a: int) -> float:
    """Lemma 2.3 for one side."""
    decay = math.exp(-gap * a / 2)
    return math.log((least + decay) / (least - decay)) if decay < least else math.inf


def test_the_left_side_pays_twice_and_small_distances_nothing_is_claimed_for():
    left, right = distance_bounds.spectral(CHAIN, DISTANCES)
    for a, twice, once in zip(DISTANCES.tolist(), left, right, strict=True):
        expected = spectral_side(0.75, 0.2, a)
        assert once == pytest.approx(expected, rel=1e-9)
        assert twice == pytest.approx(2 * expected, rel=1e-9)
    assert np.isinf(right[: math.floor(2 * math.log(5) / 0.75)]).all()


def test_the_sharper_gap_is_minus_two_log_lambda():
    _, right = distance_bounds.sharper_spectral(CHAIN, DISTANCES)
    for a, found in zip(DISTANCES.tolist(), right, strict=True):
        assert found == pytest.approx(spectral_side(-2 * math.log(0.5), 0.2, a), rel=1e-8)


@pytest.mark.parametrize(
    ("gap", "scale"), [(-2 * math.log(0.5), 16.594), (1.0, 23.506), (0.75, 31.710)]
)
def test_the_scales_of_the_three_gaps(gap, scale):
    """MQMApprox over all quilts of X_50 of 100, with the gap as given."""
    best = math.inf
    for a, b in itertools.product(range(1, 50), repeat=2):
        e = 2 * spectral_side(gap, 0.2, a) + spectral_side(gap, 0.2, b)
        if e < 1:
            best = min(best, (a + b - 1) / (1 - e))
    assert best == pytest.approx(scale, abs=5e-4)


def test_contraction_of_the_example():
    delta = math.log(0.9 * 0.6 / (0.1 * 0.4))
    left, right = distance_bounds.contraction(CHAIN, DISTANCES)
    expected = delta * math.tanh(delta / 4) ** (DISTANCES - 1)
    assert left == pytest.approx(expected, rel=1e-9)
    assert (left == right).all()
    assert (left >= expected).all()


@given(
    positive_chains(2, 4, initials=("stationary", "any", "given")), st.integers(1, 12), st.data()
)
@settings(max_examples=60)
def test_every_bound_is_at_or_above_the_exact_influence(chain, distance, data):
    length = 2 * distance + 3
    at = np.array([distance])
    node = data.draw(st.integers(distance + 1, length - distance))
    left = max_influence(chain, node, (node - distance,), length)
    right = max_influence(chain, node, (node + distance,), length)
    for name in ("spectral", "sharper_spectral", "contraction", "smallest"):
        bound = getattr(distance_bounds, name)
        on_left, on_right = bound(chain, at)
        assert on_left[0] >= left - 1e-12
        assert on_right[0] >= right - 1e-12


@given(stochastic_matrices(2, 4), st.integers(1, 20))
@settings(max_examples=60)
def test_chains_with_zeros_are_bounded_through_their_powers(matrix, distance):
    chain = MarkovChain(matrix, initial="any")
    on_left, on_right = distance_bounds.smallest(chain, np.array([distance]))
    length = 3 * distance
    node = distance + 1
    assert on_left[0] >= max_influence(chain, node, (1,), length) - 1e-12
    assert on_right[0] >= max_influence(chain, node, (node + distance,), length) - 1e-12


def test_a_primitive_chain_with_zeros_has_a_finite_bound():
    chain = MarkovChain([[0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]])
    left, right = distance_bounds.contraction(chain, np.array([3, 4, 200]))
    assert np.isinf(left[0])
    assert np.isfinite(left[1:]).all()
    assert right[2] < 0.01


def test_the_repeated_eigenvalue_is_not_dropped_twice():
    """As printed, Lemma 2.3 would use the gap 0.75 and claim 0.8993 at b = 6; the truth is more."""
    chain = MarkovChain([[0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]])
    printed = spectral_side(0.75, float(chain.stationary.min()), 6)
    truth = max_influence(chain, 1, (7,), 10)
    assert printed == pytest.approx(0.8993, abs=5e-5)
    assert truth == pytest.approx(0.9163, abs=5e-5)
    assert np.isinf(distance_bounds.spectral(chain, np.array([6, 1000]))[1]).all()


def test_a_chain_is_bounded_where_it_lives():
    """State 2 is left at once and never again; a stationary chain has never been there."""
    matrix = [[0.9, 0.1, 0], [0.4, 0.6, 0], [0.5, 0.5, 0]]
    recurrent = distance_bounds.restrict_to_recurrent(MarkovChain(matrix))
    assert recurrent.transition.tolist() == [[0.9, 0.1], [0.4, 0.6]]
    assert distance_bounds.restrict_to_recurrent(MarkovChain(matrix, initial="any")).size == 3


def test_spectral_needs_an_irreducible_aperiodic_chain():
    with pytest.raises(UnsupportedError, match="aperiodic"):
        distance_bounds.spectral(MarkovChain([[0, 1], [1, 0]]), DISTANCES)


def one_step(matrix: np.ndarray) -> float:
    (steps, diameter), *_ = cycle_diameters(matrix[np.newaxis])
    assert steps == 1
    return diameter


@given(stochastic_matrices(2, 4, ("positive",)))
def test_the_diameter_is_the_largest_cross_ratio(matrix):
    true = max(
        math.log(matrix[x, z] * matrix[y, w] / (matrix[x, w] * matrix[y, z]))
        for x, y, z, w in itertools.product(range(len(matrix)), repeat=4)
    )
    assert one_step(matrix) >= true - 1e-14
    assert one_step(matrix) == pytest.approx(true, abs=1e-12)
    never = np.insert(matrix, 0, 0, axis=1)  # a state that nothing leads to is in nobody's past
    padded = np.insert(never, 0, never[-1], axis=0)
    assert one_step(padded) == pytest.approx(true, abs=1e-12)
    assert box_diameter(matrix, matrix) == pytest.approx(true, abs=1e-11)


@given(boxes(2, 4))
@settings(max_examples=40)
def test_the_diameter_of_a_box_is_the_largest_over_its_bounds(box):
    low, high = box.lower, box.upper
    found = box_diameter(low, high)
    if not (low > 0).all():
        independent = bool((low == high).all() and (low == low[0]).all())
        assert found == (0 if independent else math.inf)
        return
    true = max(
        math.log(high[x, z] * high[y, w] / (low[x, w] * low[y, z]))
        for x, y in itertools.permutations(range(box.size), 2)
        for z, w in itertools.permutations(range(box.size), 2)
    )
    assert found >= true
    assert found == pytest.approx(true, abs=1e-9)


@given(boxes(2, 3), st.integers(0, 10**6))
@settings(max_examples=40)
def test_products_of_matrices_from_a_box_stay_within_its_diameters(box, seed):
    rng = np.random.default_rng(seed)
    for steps, diameter in diameters(box):
        product = np.eye(box.size)
        for _ in range(steps):
            product = product @ inside(box, rng)
        assert one_step(product) <= diameter * (1 + 1e-9) + 1e-9


@given(boxes(2, 4), st.sampled_from([0.1, 1.0, 5.0, 30.0]))
@settings(max_examples=40)
def test_rows_of_a_box_differ_by_the_worst_of_their_corners_and_of_all_bounded_vectors(box, apart):
    found = _overlapping(box.lower, box.upper, apart)
    vectors = np.array(list(itertools.product((1.0, math.exp(apart)), repeat=box.size)))
    sums = [corners(low, high) @ vectors.T for low, high in zip(box.lower, box.upper, strict=True)]
    for x, y in itertools.permutations(range(box.size), 2):
        true = math.log((sums[x].max(axis=0) / sums[y].min(axis=0)).max())
        assert true <= found[x, y] * (1 + 1e-12)
        assert apart > 5 or found[x, y] <= true * 1.01 + 1e-9  # e^30 feels the rounding


def corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Every corner of the rows between two bounds: all entries but one are at a bound."""
    rows = []
    for free in range(len(low)):
        for ends in itertools.product(*zip(low, high, strict=True)):
            row = np.array(ends)
            row[free] = 1 - np.delete(row, free).sum()
            if low[free] - 1e-12 <= row[free] <= high[free] + 1e-12:
                rows.append(np.clip(row, low, high))
    return np.array(rows)


def test_a_box_that_was_fitted_forgets_with_the_steps_that_its_chains_share():
    chain = MarkovChain([[0.93, 0.06, 0.01], [0.25, 0.69, 0.06], [0.1, 0.5, 0.4]])
    box = ChainBox.fit(chain.sample(20_000, seed=1))
    steps, diameter = diameters(box)[-1]
    assert diameter <= 2 < box_diameter(*wide(box, steps))


def wide(box: ChainBox, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the probabilities of so many steps alone."""
    low, high = np.array(box.lower), np.array(box.upper)
    for _ in range(steps - 1):
        low, high = _one_step_more(box, low, high)
    return low, high


def inside(box: ChainBox, rng) -> np.ndarray:
    """A random matrix of the box: fill each row from its lower bounds in random order."""
    rows = np.array(box.lower)
    for row, upper in zip(rows, box.upper, strict=True):
        for y in rng.permutation(box.size):
            row[y] += min(upper[y] - row[y], 1 - row.sum())
    return np.maximum(rows, 0)


def test_a_box_with_unseen_transitions_is_bounded_by_its_steps():
    """Lower bounds of 0 for transitions that were never seen; two steps reach everywhere."""
    lower = np.array([[0.4, 0.4, 0], [0, 0.4, 0.4], [0.4, 0, 0.4]])
    box = ChainBox(lower, np.minimum(lower + 0.25, 1))
    assert diameters(box)[0][0] == 2
    assert np.isfinite(distance_bounds.contraction(box, np.array([2, 9]))[0]).all()


def test_a_chain_as_a_box_has_the_bounds_of_the_chain():
    box = ChainBox(CHAIN.transition, CHAIN.transition)
    one, other = (distance_bounds.contraction(b, DISTANCES)[0] for b in (CHAIN, box))
    assert one[0] == pytest.approx(other[0], rel=1e-9)
    assert (other <= one * (1 + 1e-9)).all()  # of a box more steps are tried
