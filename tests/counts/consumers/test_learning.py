from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import GeometricMechanism
from quiltwork.counts.consumers.learning import kernel_sum, learn_from_release, learn_from_table
from quiltwork.errors import InvalidInputError
from tests.counts.oracle import ALPHAS, geometric, priors


@settings(max_examples=40)
@given(st.integers(1, 8).flatmap(priors), ALPHAS, st.integers(-3, 12))
def test_one_release_gives_its_posterior(base, alpha, released):
    n = len(base) - 1
    found = learn_from_release(released, n, alpha, base)
    matrix = geometric(n, alpha)
    answer = min(max(released, 0), n)
    exact = [base[i] * matrix[i][answer] for i in range(n + 1)]
    assert np.allclose(found, [float(e / sum(exact)) for e in exact], atol=1e-12)


def test_releases_add_up_and_drift_widens():
    once = learn_from_release(4, 10, 0.5)
    twice = learn_from_release([4, 6], 10, [0.5, 0.5])
    by_steps = learn_from_release(6, 10, 0.5, base=once)
    assert np.allclose(twice, by_steps)
    wider = learn_from_release(4, 10, 0.5, drift=0.8)
    assert wider.sum() == pytest.approx(1)
    assert wider[4] < once[4]
    assert wider[10] > once[10]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(0.01, 0.99))
def test_kernel_sums_follow_their_definition(values, decay):
    exact = [sum(v * decay ** abs(i - j) for i, v in enumerate(values)) for j in range(len(values))]
    assert np.allclose(kernel_sum(np.array(values), decay), exact, atol=1e-12)


def test_many_releases_recover_the_prior_they_came_from():
    """Two lumps: the learned prior finds both, and explains the releases at least as well."""
    rng = np.random.default_rng(5)
    truth = np.zeros(41)
    truth[[5, 30]] = [0.7, 0.3]
    matrix = GeometricMechanism(40, alpha=0.5).matrix()
    released = np.array([rng.choice(41, p=matrix[rng.choice(41, p=truth)]) for _ in range(3000)])
    learned = learn_from_table(released, 40, 0.5)
    assert learned.sum() == pytest.approx(1)
    assert learned[3:8].sum() == pytest.approx(0.7, abs=0.05)
    assert learned[28:33].sum() == pytest.approx(0.3, abs=0.05)
    assert learned.min() > 0
    seen = np.bincount(released, minlength=41)

    def likelihood(prior):
        return float(seen @ np.log(prior @ matrix))

    assert likelihood(learned) > likelihood(np.full(41, 1 / 41))
    assert likelihood(learned) > likelihood(0.999 * truth + 0.001 / 41) - 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: learn_from_release(1, 3, 0), "strictly"),
        (lambda: learn_from_release([1, 2], 3, [0.5]), "one for each"),
        (lambda: learn_from_release(1, 3, 0.5, drift=1), "drift"),
        (lambda: learn_from_release(1.5, 3, 0.5), "released"),
        (lambda: learn_from_table([], 3, 0.5), "at least one"),
        (lambda: learn_from_table([0.5], 3, 0.5), "integers"),
        (lambda: learn_from_table([1], 3, Fraction(1)), "strictly"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()
