"""The tightest box with the same rows, against linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from quiltwork import ChainBox, InvalidInputError
from quiltwork.beliefs.box import clip_to_row_sums
from tests.sizes import sample
from tests.strategies import boxes, stochastic_matrices


@settings(max_examples=sample(10, full=20))
@given(boxes(max_states=4))
def test_every_bound_is_reached_by_a_row_of_the_box(box):
    bounds = [list(zip(a, b, strict=True)) for a, b in zip(box.lower, box.upper, strict=True)]
    for x, y in np.ndindex(box.lower.shape):
        for sign, claimed in ((1, box.lower[x, y]), (-1, box.upper[x, y])):
            goal = sign * (np.arange(box.size) == y)
            found = linprog(goal, A_eq=np.ones((1, box.size)), b_eq=[1], bounds=bounds[x])
            assert found.success
            assert sign * found.fun == pytest.approx(claimed, abs=1e-6)  # 1e-7 is HiGHS's own


@given(boxes(max_states=5))
def test_clipping_twice_changes_no_bit(box):
    low, high = clip_to_row_sums(box.lower, box.upper)
    assert (low.tobytes(), high.tobytes()) == (box.lower.tobytes(), box.upper.tobytes())


@given(stochastic_matrices(max_states=6))
def test_clipping_never_cuts_off_the_matrix_the_box_was_drawn_around(matrix):
    low, high = clip_to_row_sums(np.zeros_like(matrix), matrix.copy())
    assert (low <= matrix * (1 + 1e-15)).all()
    low, high = clip_to_row_sums(matrix.copy(), np.ones_like(matrix))
    assert (high >= matrix * (1 - 1e-15)).all()


def test_bounds_are_read_as_their_decimals():
    box = ChainBox([[0.9, 0], [0, 0]], [[1, 1], [0.7, 1]])
    assert box.upper.tolist() == [[1, 0.1], [0.7, 1]]
    assert box.lower.tolist() == [[0.9, 0], [0, 0.3]]
    assert ChainBox([[1, 0], [0, 1]], np.ones((2, 2))).upper.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        ([[0.5, 0.6], [0, 0]], np.ones((2, 2)), "Row 1 of lower sums to 1.1"),
        (np.zeros((2, 2)), [[1, 1], [0.5, 0.4]], "Row 2 of upper sums to 0.9"),
        ([[0, 0], [0.3, 0]], [[1, 1], [0.2, 1]], "Row 2: lower is 0.3 and upper is 0.2 in posi"),
        (np.zeros((2, 2)), np.ones((3, 3)), "lower has 2 rows and upper has 3"),
        ([[float("nan")]], [[1]], "Row 1 of lower has nan"),
        ([[0]], [[2]], "Row 1 of upper has 2.0"),
        ([[0, 0]], [[1, 1]], "square"),
    ],
)
def test_an_impossible_box_is_refused_by_its_row(low, high, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        ChainBox(low, high)
