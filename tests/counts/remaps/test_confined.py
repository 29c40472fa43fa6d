"""The search in convex rows against plain argmin, and how many costs it looks at."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.remaps import centres, confined
from quiltwork.counts.remaps.filters import posteriors


def quadratic(targets):
    return lambda rows, at: (at - targets[rows]) ** 2 + 1.0


@settings(max_examples=60)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=300), st.data())
def test_the_least_minimisers_are_found_from_any_guess(steps, data):
    targets = np.cumsum(steps) / 2  # halves tie two candidates; the smaller wins
    high = int(np.ceil(targets[-1])) + 3
    guess = data.draw(st.sampled_from([0, high, high // 2]))
    found = confined.convex_centres(
        np.full(len(targets), guess), 0, high, confined.falling(quadratic(targets))
    )
    assert found.tolist() == np.ceil(targets - 0.5).astype(int).tolist()


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
@pytest.mark.parametrize("shape", ["line", "stairs", "jump"])
def test_the_costs_looked_at_grow_linearly_whatever_the_guess(size, shape):
    rows = np.arange(size)
    targets = {
        "line": rows,
        "stairs": rows // 1000 * 1000,
        "jump": np.where(rows < size // 3, 0, size - 1),
    }[shape]
    looked = 0
    cost = quadratic(targets)

    def counted(rows, at):
        nonlocal looked
        looked += len(rows)
        return cost(rows, at)

    found = confined.convex_centres(
        np.zeros(size, dtype=int), 0, size - 1, confined.falling(counted)
    )
    assert np.array_equal(found, targets)
    assert looked <= 40 * size


def test_two_lumps_far_apart():
    """The centre of |i−c|^8 lies halfway, the mean, which is the guess, at the heavy lump."""
    prior = np.zeros(1001)
    prior[[0, 1000]] = [0.999, 0.001]
    costs = 0.999 * np.arange(1001.0) ** 8 + 0.001 * np.arange(1000.0, -1, -1) ** 8

    def cost(rows, at):
        return costs[at]

    guess = centres.nearest_to_mean(posteriors(prior, Fraction(1), 1))
    found = confined.convex_centres(guess, 0, 1000, confined.falling(cost))
    assert set(found.tolist()) == {int(np.argmin(costs))}
