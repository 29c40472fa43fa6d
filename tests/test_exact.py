from __future__ import annotations

import numpy as np
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, positive_fraction, to_fraction


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (lambda: to_fraction(np.float64("nan"), "alpha"), "alpha must be finite, not nan."),
        (lambda: to_fraction(np.float32("inf"), "alpha"), "alpha must be finite, not inf."),
        (lambda: to_fraction(np.bool_(True), "alpha"), "alpha must be a number, not True; give"),
        (lambda: positive_fraction(np.float64(-0.5), "epsilon"), "greater than 0, not -0.5."),
        (lambda: integer(np.float64(2.5), "n", 1), "n must be an integer, not 2.5."),
        (lambda: integer(np.int64(0), "n", 1), "n must be at least 1, not 0."),
    ],
)
def test_numpy_numbers_are_shown_as_plain_ones(read, shown):
    with pytest.raises(InvalidInputError) as refused:
        read()
    assert shown in str(refused.value)
    assert "np." not in str(refused.value)


def test_long_values_are_shown_in_part():
    with pytest.raises(InvalidInputError, match=r"n must be at least 1, not -1{39}… \(201 char"):
        integer(-int("1" * 200), "n", 1)
