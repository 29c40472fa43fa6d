from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from papers.experiments.geometric import FIGURE_2, _short, example_2_2, figure_2
from papers.experiments.geometric_theorems import footnote_4, obliviousness, uniqueness


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


def test_theorem_6_1_proposition_6_2_and_footnote_4_are_found_by_programs():
    *unique, flat = uniqueness.function(quiet, largest=2).rows
    for row in (*unique, *obliviousness.function(quiet, consumers=2).rows[1:]):
        assert row.comparison() == "equal"
    assert flat.ours == 1  # for α = 1 every constant answer serves as well
    found = footnote_4.function(quiet).rows
    assert [row.ours for row in found] == [9, 0, "False", "-1", 2, "1/3", "5/6"]


def test_long_fractions_are_written_with_powers_of_two():
    assert _short(Fraction(1, 3 * 2**30)) == "1/(3·2^30)"
    assert _short(Fraction(2, 3)) == "2/3"
