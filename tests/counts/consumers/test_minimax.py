from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from quiltwork.counts import GeometricMechanism
from quiltwork.counts.consumers.losses import CallableLoss
from quiltwork.counts.consumers.minimax import minimax_remap
from quiltwork.errors import InvalidInputError, UnsupportedError
from tests.counts.oracle import ALPHAS, NAMED


def least_worst_case(n, alpha, loss, low, high):
    """Over all α-private mechanisms with answers 0..n, from SciPy alone."""
    size = n + 1
    rows = []
    for i in range(n):
        for r in range(size):
            for a, b in ((i, i + 1), (i + 1, i)):
                row = np.zeros(size * size + 1)
                row[a * size + r], row[b * size + r] = alpha, -1
                rows.append(row)
    for i in range(low, high + 1):
        row = np.zeros(size * size + 1)
        row[i * size : (i + 1) * size] = [float(loss.exact(i, r)) for r in range(size)]
        row[-1] = -1
        rows.append(row)
    sums = np.hstack([np.kron(np.eye(size), np.ones((1, size))), np.zeros((size, 1))])
    costs = np.eye(size * size + 1)[-1]
    tight = {f"{side}_feasibility_tolerance": 1e-10 for side in ("primal", "dual")}
    sides = {"b_ub": np.zeros(len(rows)), "b_eq": np.ones(size)}
    return linprog(costs, A_ub=rows, A_eq=sums, **sides, options=tight).fun


@settings(max_examples=25)
@given(st.integers(1, 6), ALPHAS, st.sampled_from(NAMED), st.data())
def test_no_private_mechanism_has_a_smaller_worst_case(n, alpha, loss, data):
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    found = minimax_remap(GeometricMechanism(n, alpha=alpha), loss, low, high)
    reference = least_worst_case(n, float(alpha), loss, low, high)
    assert float(found.worst_loss) == pytest.approx(reference, rel=1e-6, abs=1e-7)
    assert 0 <= found.gap <= Fraction(1, 10**9) * max(1, found.worst_loss)
    assert found.worst_loss <= found.face_value_loss
    assert all(sum(row) == 1 and min(row) >= 0 for row in found.remap)
    assert sum(found.prior) == 1


def test_randomizing_can_be_necessary():
    """On 0..2 at α = 1/2 every deterministic remap has a worse worst case for binary loss."""
    mechanism = GeometricMechanism(2, alpha=Fraction(1, 2))
    found = minimax_remap(mechanism, "binary")
    g = mechanism.matrix(exact=True)
    deterministic = min(
        max(sum(g[i][s] for s in range(3) if mapping[s] != i) for i in range(3))
        for mapping in np.ndindex(3, 3, 3)
    )
    assert found.worst_loss < deterministic


def test_readings_stay_in_the_known_range():
    found = minimax_remap(GeometricMechanism(10, alpha=0.7), "absolute", 3, 6)
    assert {found(r) for r in range(-5, 16) for _ in range(5)} <= {3, 4, 5, 6}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"lower": 5, "upper": 5}, InvalidInputError),
        ({"lower": 7, "upper": 3}, InvalidInputError),
        ({"upper": 101}, InvalidInputError),
        ({"lower": -1}, InvalidInputError),
        ({"lower": 0, "upper": 90}, UnsupportedError),
        ({"loss": CallableLoss(lambda i, r: (i + r) % 2), "upper": 5}, UnsupportedError),
    ],
)
def test_ranges_and_losses_without_a_proof_are_refused(arguments, error):
    with pytest.raises(error):
        minimax_remap(GeometricMechanism(100, alpha=0.5), **{"loss": "absolute"} | arguments)
