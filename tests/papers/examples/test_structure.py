from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.checks import lp_vertices
from papers.examples.geometric import figure_2
from papers.examples.structure import (
    STATEMENTS,
    draw_constraints,
    structure_report,
)
from quiltwork.counts import GeometricMechanism, constraint_matrix, derive
from quiltwork.counts.optimality.exact_matrix import compose, deterministic
from quiltwork.errors import InvalidInputError, NotPrivateError
from tests.counts.oracle import ALPHAS, footnote_4, geometric
from tests.sizes import sample

FIGURE_3 = """\
↓ Z ↑ ↑ ↑ ↑
↓ Z S ↑ ↑ ↑
↓ Z ↓ ↑ ↑ ↑
↓ Z ↓ ↓ ↑ ↑
↓ Z ↓ ↓ ↓ ↑"""


def test_figure_3_is_the_constraint_matrix_of_figure_2():
    assert draw_constraints(constraint_matrix(figure_2(), 0.5)) == FIGURE_3
    floats = np.array(figure_2(), dtype=float)
    assert draw_constraints(constraint_matrix(floats, 0.5)) == FIGURE_3


@settings(max_examples=sample(20, full=40))
@given(st.integers(1, 7), ALPHAS)
def test_the_geometric_mechanism_is_tight_everywhere(n, alpha):
    states = constraint_matrix(geometric(n, alpha), alpha)
    assert states.tolist() == [["down" if r <= i else "up" for r in range(n + 1)] for i in range(n)]
    assert structure_report(geometric(n, alpha), alpha).holds


@pytest.mark.parametrize("seed", range(6))
def test_optimal_vertices_have_the_structure(seed):
    """A sample; `make evidence` runs 1,000 vertices."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        lp_vertices.check_vertex(*lp_vertices.random_program(rng))


def slope(rows):
    return [[Fraction(entry) for entry in row.split()] for row in rows]


BROKEN = {
    "Observation 5.3": slope(["1/2 1/2", "1/2 1/2"]),
    "Lemma 5.5": footnote_4()[0],
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_first_failing_statement_is_named(name):
    report = structure_report(BROKEN[name], 0.5)
    assert not report.holds
    assert report.failed == name
    assert report.detail
    assert name not in report.passed


def vertices_of_any_kind():
    """Vertices for arbitrary objectives: some break the lemmas that optimal ones satisfy."""
    from quiltwork.counts.optimality.consumer_program import solve

    rng = np.random.default_rng(0)
    for _ in range(40):
        costs = [[Fraction(int(c)) for c in row] for row in rng.integers(0, 100, (4, 4))]
        yield solve(costs, Fraction(1, 2))[0]


def test_every_statement_can_fail_or_hold():
    """No check is vacuous: over vertices of any kind some fail, and the report says which."""
    failed = {structure_report(x, 0.5, Fraction(1, 10**9)).failed for x in vertices_of_any_kind()}
    assert "Lemma 5.5" in failed


@settings(max_examples=40)
@given(st.integers(1, 6), ALPHAS, st.data())
def test_monotone_remaps_of_g_satisfy_all_lemmas_and_are_recovered(n, alpha, data):
    """Deterministic remaps of intervals: Lemma 5.10, and the vertex their constraints determine."""
    sizes = []
    while sum(sizes) < n + 1:
        sizes.append(data.draw(st.integers(1, n + 1 - sum(sizes))))
    targets = sorted(data.draw(st.permutations(range(n + 1)))[: len(sizes)])
    mapping = [t for t, size in zip(targets, sizes, strict=True) for _ in range(size)]
    induced = compose(geometric(n, alpha), deterministic(mapping))
    report = structure_report(induced, alpha)
    assert report.holds, (report.failed, report.detail)
    assert lp_vertices.vertex_of(report.constraints, alpha) == induced
    start = 0
    for target, size in zip(targets, sizes, strict=True):
        column = report.constraints[:, target].tolist()
        wanted = ["up"] * start + ["slack"] * (size - 1)
        assert column == wanted + ["down"] * (n - len(wanted))
        start += size


SIGNS = {"↓": "down", "↑": "up", "S": "slack", "Z": "zero"}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("Lemma 5.4", ["↓ ↓ Z", "↓ ↑ Z"]),
        ("Lemma 5.5", ["↓ S S", "↓ ↓ ↑"]),
        ("Lemma 5.6", ["↓ ↑ ↑", "↓ ↑ ↑"]),
        ("Corollary 5.7", ["↓ Z ↑", "↓ Z ↑"]),
        ("Lemma 5.8", ["S ↑ ↑", "↓ ↓ ↑"]),
        ("Lemma 5.9", ["↓ ↓ ↑", "↓ ↓ ↑"]),
        ("Lemma 5.10", ["↓ ↑ ↑", "S ↓ ↑"]),
    ],
)
def test_each_statement_refuses_states_that_break_it(name, rows):
    """States made by hand: some statements hold for every mechanism and can fail only so."""
    states = np.array([[SIGNS[sign] for sign in row.split()] for row in rows], dtype=object)
    assert STATEMENTS[name](states, Fraction(1, 2))
    assert not STATEMENTS[name](constraint_matrix(figure_2(), 0.5), Fraction(1, 2))


@pytest.mark.parametrize("alpha", [0, 1])
def test_the_ends_of_the_scale_have_no_constraint_matrix(alpha):
    with pytest.raises(InvalidInputError, match="0 < alpha < 1"):
        constraint_matrix(geometric(2, Fraction(1, 2)), alpha)


def test_a_mechanism_that_is_not_private_is_named():
    with pytest.raises(NotPrivateError, match="counts 0 and 1"):
        constraint_matrix([[1, 0], [0, 1]], 0.5)
    private = GeometricMechanism(3, alpha=0.5).matrix(exact=True)
    with pytest.raises(NotPrivateError, match=r"not 0\.6-private"):
        constraint_matrix(private, 0.6)


@pytest.mark.parametrize("matrix", [[[1]], [1, 2], [[1, 0], [1]], None])
def test_what_is_no_matrix_is_refused(matrix):
    with pytest.raises(InvalidInputError, match="matrix"):
        constraint_matrix(matrix, 0.5)


@pytest.mark.parametrize(
    "matrix", [[[0.5, 0.6], [0.5, 0.5]], [[1.5, -0.5], [0.5, 0.5]], [[1, 0], [Fraction(1, 2), 0]]]
)
def test_rows_that_are_no_distributions_are_refused(matrix):
    for ask in (constraint_matrix, derive):
        with pytest.raises(
            InvalidInputError, match=r"Row [01] of the mechanism is not a distribution"
        ):
            ask(matrix, 0.5)


def test_equations_without_one_solution_have_none():
    one = Fraction(1)
    assert lp_vertices.solve_exactly([[one, one], [one, one]], [one, one]) is None
    assert lp_vertices.solve_exactly([[one, one]], [one, 2 * one]) is None
    assert lp_vertices.solve_exactly([[one, one]], [2 * one, 2 * one]) == [2]


@pytest.mark.parametrize("entry", [float("nan"), float("inf"), np.float64("nan"), "x", None])
def test_an_entry_that_is_no_number_gets_a_sentence(entry):
    with pytest.raises(InvalidInputError, match="An entry of the mechanism"):
        constraint_matrix([[entry, 0], [0, 1]], 0.5)
