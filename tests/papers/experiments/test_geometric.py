from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from papers.experiments.geometric import FIGURE_2, _short, example_2_2, figure_2


def quiet(done: int, total: int) -> None:
    pass


def test_figure_2_is_as_printed_and_private():
    """The printed rows add up to 1 and are 1/2-private; ours are the same fractions."""
    printed = [[Fraction(cell) for cell in row.split()] for row in FIGURE_2]
    assert all(sum(row) == 1 for row in printed)
    for upper, lower in pairwise(printed):
        for a, b in zip(upper, lower, strict=True):
            assert a <= 2 * b
            assert b <= 2 * a
    result = figure_2.function(quiet)
    assert all(row.comparison() == "equal" for row in result.rows)
    assert len(result.sheets[0].rows) == 36


def test_example_2_2_matches_its_formulae():
    result = example_2_2.function(quiet, largest=49)
    assert len(result.rows) == 50
    assert all(row.comparison() == "equal" for row in result.rows)


def test_long_fractions_are_written_with_powers_of_two():
    assert _short(Fraction(1, 3 * 2**30)) == "1/(3·2^30)"
    assert _short(Fraction(2, 3)) == "2/3"
