"""Gaussian beliefs against their definition, on a sample; and the checks against wrong claims."""

from __future__ import annotations

import numpy as np
import pytest

from evidence import gaussian_reference as reference
from evidence.checks import gaussian as check
from quiltwork.beliefs import GaussianRows
from quiltwork.influence.gaussian import bounded_factor

KINDS = {
    "unclipped": (check.unclipped, check.claimed),
    "clipped": (check.clipped, check.claimed),
    "stretches": (check.stretches, check.claimed),
    "known rows": (check.known_rows, check.by_bayesian_dp),
}


def test_nothing_tells_more_than_is_claimed():
    found = check.run(lambda done, total: None, cases=12)
    assert found["unclipped sums"] == 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_five_percent_too_low_is_seen(kind):
    one, claim = KINDS[kind]
    random = np.random.default_rng(5)
    with pytest.raises(AssertionError, match=r"below the|above the"):
        _tried(400, one, random, lambda *asked: 0.95 * claim(*asked))


def _tried(times, one, random, claim):
    for _ in range(times):
        one(random, claim)


def test_the_factor_on_galtons_heights_is_sharp_and_below_that_of_lange_and_others():
    found = bounded_factor(GaussianRows(bounds=0.274, rows=3))
    assert found == pytest.approx(1.548) == check.worst_signs(3, 0.274)
    assert reference.bound_of_lange(3, 0.274) == pytest.approx(1.849, abs=1e-3)


def test_strong_correlations_of_any_sign_have_a_sharp_factor_too():
    found = bounded_factor(GaussianRows(bounds=0.9, rows=3))
    one = np.sqrt(1 - 0.9**2) * (1 - 1e-9)
    worst = np.array([[1, one, 0], [one, 1, 0.9], [0, 0.9, 1]])  # the third row is known
    assert found == pytest.approx(3.294157) == reference.worst_known_rows(worst)
    assert reference.bound_of_lange(3, 0.9) == pytest.approx(21.25)


@pytest.mark.parametrize(("rows", "largest"), [(3, 0.9), (3, 0.5), (4, 0.3)])
def test_no_correlations_up_to_the_bound_tell_more_and_some_tell_as_much(rows, largest):
    """Random matrices of any signs, and a search from the worst of them; any rows are known."""
    random = np.random.default_rng(rows)
    said, upper = bounded_factor(GaussianRows(bounds=largest, rows=rows)), np.triu_indices(rows, 1)

    def told(numbers):
        matrix = np.eye(rows)
        matrix[upper] = numbers
        matrix = matrix + matrix.T - np.eye(rows)
        possible = np.linalg.eigvalsh(matrix).min() > 1e-9
        return reference.worst_known_rows(matrix) if possible else 0.0

    drawn = random.uniform(-largest, largest, (60, len(upper[0])))
    drawn[::2] = largest * np.sign(drawn[::2])
    most, best = max(((told(one), one) for one in drawn), key=lambda pair: pair[0])
    for width in np.geomspace(0.3, 1e-4, 200):
        moved = np.clip(best + random.normal(0, width, len(best)), -largest, largest)
        if (found := told(moved)) > most:
            most, best = found, moved
    simple = max(1 + (rows - 1) * largest, 1 + 1 / (1 / largest - rows + 2))
    assert 0.99 * said < most <= said <= simple * (1 + 1e-9)
    if (rows, largest) == (3, 0.9):
        assert simple == pytest.approx(10.0)
        assert reference.bound_of_lange(rows, largest) == pytest.approx(21.25)
