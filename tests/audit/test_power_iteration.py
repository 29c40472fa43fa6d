"""Products of matrices of any number, against exact fractions and steps one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quiltwork.audit.power_iteration import OutOfRangeError, iterate

ERROR = 20 * 2.0**-53


def hilbert(one, other) -> float:
    return float(np.ptp(np.asarray(one) - np.asarray(other)))


def exactly(vector, legs):
    """Every vector in fractions, as logarithms of shares."""
    current = [Fraction(x) for x in vector]
    yield np.log([float(x / max(current)) for x in current])
    for matrix, steps in legs:
        rows = [[Fraction(x) for x in row] for row in matrix]
        for _ in range(steps):
            current = [sum(a * x for a, x in zip(row, current, strict=True)) for row in rows]
            current = [x / max(current) for x in current]
            yield np.log([float(x) for x in current])


def test_every_vector_lies_within_its_slack_of_the_truth():
    legs = [(np.array([[3.0, 0.5], [0.25, 1.0]]), 7), (np.array([[0.5, 0.5], [0.125, 2.0]]), 20)]
    found = iterate(np.array([1.0, 0.25]), legs, ERROR)
    for distance, truth in enumerate(exactly([1.0, 0.25], legs)):
        logs, slack = found.at(np.array([distance]))
        assert hilbert(logs[0], truth) <= slack[0] + 1e-15


@pytest.mark.parametrize("k", [2, 5])
def test_the_limit_stands_for_all_later_vectors(k):
    draw = np.random.default_rng(k)
    matrix = 0.5 * np.eye(k) + draw.random((k, k)) * np.exp(draw.normal(size=k))
    start = draw.random(k)
    found = iterate(start, [(matrix, 10**12), (np.eye(k) + 0.1, 3)], ERROR)
    assert len(found.starts) < 5000
    current = start
    for distance in range(1, 3000):
        current = matrix @ current
        current /= current.max()
        logs, slack = found.at(np.array([distance]))
        assert hilbert(logs[0], np.log(current)) <= slack[0] + 1e-13
        assert slack[0] < 1e-9
    assert hilbert(found.at(np.array([10**12]))[0][0], np.log(current)) < 1e-9
    after = (np.eye(k) + 0.1) @ current
    assert hilbert(found.at(np.array([10**12 + 1]))[0][0], np.log(after)) < 1e-9


def test_zeros_stay_zeros_and_what_floats_lose_is_refused():
    found = iterate(np.array([1.0, 0.0]), [(np.array([[1.0, 1.0], [0.0, 2.0]]), 5)], ERROR)
    assert (found.logs[:, 1] == -np.inf).all()
    with pytest.raises(OutOfRangeError):
        iterate(np.array([1.0, 1e-250]), [(np.eye(2), 1)], ERROR)
    with pytest.raises(OutOfRangeError):
        iterate(np.ones(2), [(np.array([[1.0, 1e-150], [1.0, 1.0]]), 1)], ERROR)
    with pytest.raises(OutOfRangeError):
        iterate(np.ones(2), [(np.diag([1.0, 1e-9]), 100)], ERROR)
    with pytest.raises(OutOfRangeError):
        iterate(np.ones(2), [(np.eye(2), 10**9)], ERROR)
