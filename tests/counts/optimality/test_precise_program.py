from __future__ import annotations

from fractions import Fraction

import pytest

from evidence.precise_program import SparseRows, solve_precisely
from quiltwork.errors import QuiltworkError

ONE = Fraction(1)


def test_a_small_program_reaches_sixteen_digits():
    """Minimise z0 + z1 over z0 + 3·z1 = 1, 3·z0 + z1 = 1: both are 1/4, no float is."""
    third = Fraction(1, 3)
    matrix = SparseRows((((0, third), (1, ONE)), ((0, ONE), (1, third))), 2)
    solution = solve_precisely([ONE, ONE], matrix, [third, third])
    assert max(abs(z - Fraction(1, 4)) for z in solution.primal) < Fraction(1, 10**16)
    assert abs(sum(y * third for y in solution.dual) - Fraction(1, 2)) < Fraction(1, 10**16)


def test_tiny_coefficients_are_resolved():
    """z1 = 10^-12 is far below what the solver alone tells from 0."""
    tiny = Fraction(1, 10**12)
    matrix = SparseRows((((0, ONE), (1, ONE)), ((1, ONE),)), 2)
    solution = solve_precisely([ONE, ONE * 2], matrix, [ONE, tiny])
    assert abs(solution.primal[1] - tiny) < Fraction(1, 10**16)


def test_an_impossible_program_is_refused():
    matrix = SparseRows((((0, ONE),), ((0, ONE),)), 1)
    with pytest.raises(QuiltworkError, match="HiGHS"):
        solve_precisely([ONE], matrix, [ONE, 2 * ONE])
