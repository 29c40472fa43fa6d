"""Confidence boxes: the intervals in exact fractions, Ville's inequality, coverage of chains."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evidence.checks.box_coverage import misses_in, random_chain
from quiltwork import ChainBox, InvalidInputError, MarkovChain
from quiltwork.beliefs.confidence import lower_ends, parse_count_bounds

ERROR = Fraction(1, 20)


def lower(successes, failures, error=ERROR):
    return float(lower_ends(np.array([successes]), np.array([failures]), math.log(error))[0])


def upper(successes, failures, error=ERROR):
    return 1 - lower(failures, successes, error)


def mixture(s, f):
    """B(s+½, f+½)/B(½, ½) is rational: (2s)!(2f)!/(4^(s+f)·s!·f!·(s+f)!)."""
    top = math.factorial(2 * s) * math.factorial(2 * f)
    return Fraction(
        top, 4 ** (s + f) * math.factorial(s) * math.factorial(f) * math.factorial(s + f)
    )


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([ERROR, Fraction(1, 10**6)]))
def test_the_lower_end_solves_its_equation_from_outside(s, f, error):
    end, threshold = Fraction(lower(s, f, error)), error * mixture(s, f)
    assert end**s * (1 - end) ** f <= threshold
    inside = end * (1 + Fraction(1, 10**6))
    assert inside**s * (1 - inside) ** f > threshold


def test_nothing_seen_nothing_excluded():
    assert (lower(0, 0), upper(0, 0)) == (0.0, 1.0)
    assert lower(0, 50) == 0.0
    assert upper(50, 0) == 1.0


@given(st.integers(0, 200), st.integers(0, 200))
def test_ends_grow_with_successes_and_fall_with_failures(s, f):
    assert lower(s, f) <= lower(s + 1, f)
    assert lower(s, f + 1) <= lower(s, f)


def chance_of_ever_missing(p, intervals, draws):
    """The probability that some n ≤ draws has p outside its interval, by recursion over n.

    `alive[s]` is the probability of s successes so far and no miss so far.
    """
    alive, missed = np.array([1.0]), 0.0
    for n in range(1, draws + 1):
        following = np.append(alive * (1 - p), 0) + np.append(0, alive * p)
        successes = np.arange(n + 1)
        low, high = intervals(successes, n - successes)
        outside = ~((low <= p) & (p <= high))
        missed += following[outside].sum()
        alive = np.where(outside, 0, following)
    return missed


def time_uniform(s, f):
    return lower_ends(s, f, math.log(ERROR)), 1 - lower_ends(f, s, math.log(ERROR))


def clopper_pearson(s, f, error=0.05):
    low = stats.beta.ppf(error / 2, np.maximum(s, 1e-300), f + 1)
    high = stats.beta.ppf(1 - error / 2, s + 1, np.maximum(f, 1e-300))
    return np.where(s > 0, low, 0.0), np.where(f > 0, high, 1.0)


@pytest.mark.parametrize("p", [0.5, 0.02])
def test_the_intervals_hold_for_all_sample_sizes_at_once(p):
    """Ville's inequality, computed; intervals for a fixed sample size fail the same test."""
    assert 0.005 < chance_of_ever_missing(p, time_uniform, draws=300) <= ERROR
    assert chance_of_ever_missing(p, clopper_pearson, draws=300) > 1.5 * ERROR


@pytest.mark.parametrize("n", [10, 100, 1000, 100_000])
@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_the_price_of_a_random_sample_size_is_less_than_twice_clopper_pearson(n, rate):
    s = round(n * rate)
    low, high = clopper_pearson(s, n - s, error=0.05 / 9)
    width = upper(s, n - s, ERROR / 9) - lower(s, n - s, ERROR / 9)
    assert high - low < width < 2 * (high - low)


def test_a_hundred_simulated_chains_are_covered():
    """The full count, 1,000 chains, is evidence/checks/box_coverage.py; 0.05·100 may be missed."""
    assert sum(misses_in(seed, confidence=0.95) for seed in range(100)) <= 5


def test_the_coverage_test_would_notice_intervals_that_ignore_the_union():
    """Clopper–Pearson per entry, each at 95 %: most boxes miss some entry of larger chains."""
    missed = 0
    for seed in range(30):
        chain, length = random_chain(seed, size=6, length=2000)
        path = chain.sample(length, seed)
        counts = np.zeros((6, 6), dtype=int)
        np.add.at(counts, (path[:-1], path[1:]), 1)
        for x, y in np.ndindex(6, 6):
            low, high = clopper_pearson(counts[x, y], counts[x].sum() - counts[x, y])
            if not low <= chain.transition[x, y] <= high:
                missed += 1
                break
    assert missed > 10


def test_a_state_never_left_keeps_an_open_row():
    box = ChainBox.fit(["a", "a", "a", "b"], states=["a", "b", "c"])
    assert box.lower[1:].tolist() == [[0, 0, 0]] * 2
    assert box.upper[1:].tolist() == [[1, 1, 1]] * 2
    assert (box.upper[0] > 0).all()


def test_more_data_and_less_confidence_narrow_the_box():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    short, long = chain.sample(1000, 1), chain.sample(100_000, 1)
    widths = [
        float((box.upper - box.lower).max())
        for box in (
            ChainBox.fit(short, confidence=0.99),
            ChainBox.fit(short, confidence=0.5),
            ChainBox.fit(long, confidence=0.5),
        )
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.03


def test_several_sequences_count_together():
    data = [[0, 1, 1, 0, 0], [1, 0, 1, 1]]
    expected = ChainBox.from_counts([[1, 2], [2, 2]], [[1, 2], [2, 2]])
    assert ChainBox.fit(data) == expected


counts = st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=3, max_size=3)


@settings(max_examples=50)
@given(counts, counts, counts)
def test_bounds_on_counts_give_a_box_around_the_box_of_every_count_between(true, below, above):
    true, below, above = map(np.array, (true, below, above))
    known = ChainBox.from_counts(true, true)
    unsure = ChainBox.from_counts(true - below - 0.4, true + above + 0.4)
    assert (unsure.lower <= known.lower).all()
    assert (unsure.upper >= known.upper).all()


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "0.95", True])
def test_confidence_lies_strictly_between_zero_and_one(confidence):
    with pytest.raises(InvalidInputError, match="confidence must"):
        ChainBox.fit([0, 1, 0], confidence=confidence)


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        ([[1, 2]], [[1, 2]], "square matrix"),
        ([[1]], [[1, 2], [3, 4]], "shape"),
        ([[2.4]], [[2.6]], "No count lies between 2.4 and 2.6"),
        ([[5]], [[4]], "No count lies between"),
        ([[-9]], [[-1]], "No count lies between"),
        ([[float("nan")]], [[1]], "NaN"),
        ([["a"]], [[1]], "square matrix"),
    ],
)
def test_impossible_bounds_on_counts_get_a_sentence(low, high, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        parse_count_bounds(low, high)
