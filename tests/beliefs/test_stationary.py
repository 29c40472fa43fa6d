"""Stationary distributions and gaps against exact fractions."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import MarkovChain, UnsupportedError
from quiltwork.beliefs.stationary import irreducible_stationary, relative_error
from tests.strategies import chains, exact_rows, positive_chains


def solve_stationary(rows):
    """π of an irreducible matrix of fractions, by Gauss–Jordan on πP = π, Σπ = 1."""
    k = len(rows)
    system = [[rows[x][y] - (x == y) for x in range(k)] + [Fraction(0)] for y in range(k)]
    system[-1] = [Fraction(1)] * (k + 1)
    for column in range(k):
        pivot = next(r for r in range(column, k) if system[r][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [v / system[column][column] for v in system[column]]
        for r in range(k):
            if r != column and system[r][column] != 0:
                factor = system[r][column]
                system[r] = [a - factor * b for a, b in zip(system[r], system[column], strict=True)]
    return [row[-1] for row in system]


def largest_relative_error(found, exact):
    return max(abs(Fraction(a) / b - 1) for a, b in zip(found.tolist(), exact, strict=True))


@given(chains(max_states=6, initials=("any",)))
def test_stationary_matches_exact_elimination(chain):
    if len(chain.recurrent_classes) > 1:
        return
    inside = chain.recurrent_class
    rows = exact_rows(chain.transition[np.ix_(inside, inside)])
    found = chain.stationary
    assert largest_relative_error(found[inside], solve_stationary(rows)) <= relative_error(6) * 2
    assert found.sum() == pytest.approx(1, abs=1e-14)
    assert not np.delete(found, inside).any()


@given(st.lists(st.integers(-150, 0), min_size=6, max_size=6))
def test_every_entry_keeps_its_relative_accuracy_however_stiff_the_chain(exponents):
    """Off-diagonal entries from 1e-150 to 0.3: an eigenvalue solver loses all digits here."""
    a, b, c, d, e, f = (0.3 * 10.0**n for n in exponents)
    matrix = np.array([[1 - a - b, a, b], [c, 1 - c - d, d], [e, f, 1 - e - f]])
    exact = [[Fraction(v) for v in row] for row in matrix.tolist()]
    for x in range(3):  # GTH reads the off-diagonal entries; the diagonal is what they leave
        exact[x][x] = 1 - sum(exact[x][y] for y in range(3) if y != x)
    found = irreducible_stationary(matrix)
    assert largest_relative_error(found, solve_stationary(exact)) <= relative_error(3)


def test_a_span_beyond_double_precision_is_refused_not_rounded():
    tiny = 1e-200
    walk = [[1 - tiny, tiny, 0], [0.5, 0.5 - tiny, tiny], [0, 0.5, 0.5]]
    with pytest.raises(UnsupportedError, match="initial='any'"):
        _ = MarkovChain(walk).stationary


def exact_gap_of_three_states(rows):
    """1 − λ₂(P·P*) of three states: one eigenvalue is 1, the others solve a quadratic."""
    pi = solve_stationary(rows)
    back = [[pi[y] * rows[y][x] / pi[x] for y in range(3)] for x in range(3)]
    m = [[sum(rows[x][z] * back[z][y] for z in range(3)) for y in range(3)] for x in range(3)]
    rest = sum(m[x][x] for x in range(3)) - 1
    det = sum(
        m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3])
        for i in range(3)
    )
    inside = max(rest * rest - 4 * det, Fraction(0))
    with localcontext() as context:
        context.prec = 60
        root = (Decimal(inside.numerator) / Decimal(inside.denominator)).sqrt()
        return 1 - (Decimal(rest.numerator) / Decimal(rest.denominator) + root) / 2


@given(positive_chains(min_states=3, max_states=3))
def test_the_gap_is_never_above_the_exact_one_and_hardly_below(chain):
    exact = exact_gap_of_three_states(exact_rows(chain.transition))
    assert Decimal(chain.eigengap) <= exact + Decimal("1e-15")
    assert Decimal(chain.eigengap) >= exact - Decimal("1e-12")


def test_a_repeated_eigenvalue_one_gives_gap_zero():
    """P·P* has the eigenvalues {1, 1, ¼}: skipping all that equal 1 would claim 0.75."""
    chain = MarkovChain([[0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]])
    assert chain.is_irreducible
    assert chain.is_aperiodic
    assert chain.eigengap == 0.0


def test_the_gaps_of_the_papers_chain():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    assert chain.eigengap == pytest.approx(0.75, abs=1e-13)
    assert chain.eigengap <= 0.75


@given(chains(initials=("any",)))
def test_gaps_are_defined_for_every_chain(chain):
    assert 0 <= chain.eigengap <= 1
    if not chain.is_irreducible or chain.period > 1:
        assert chain.eigengap == 0


@given(positive_chains(max_states=5), st.integers(1, 12))
def test_the_singular_value_bounds_every_step_of_forgetting(chain, steps):
    """|P^n(x,y)/π(y) − 1| ≤ σ₂^n/√(π(x)π(y)), reversible or not."""
    pi = chain.stationary
    power = np.linalg.matrix_power(chain.transition, steps)
    allowed = chain.second_singular_value**steps / np.sqrt(np.outer(pi, pi))
    assert (np.abs(power / pi - 1) <= allowed + 1e-12).all()


def test_independent_draws_have_gap_one():
    assert MarkovChain([[0.3, 0.7], [0.3, 0.7]]).eigengap == pytest.approx(1, abs=1e-12)
    assert MarkovChain([[1.0]]).eigengap == pytest.approx(1, abs=1e-12)


@given(positive_chains(max_states=5))
def test_reversal_is_detailed_balance_and_its_own_inverse(chain):
    back = chain.reversed()
    flow = chain.stationary[:, None] * chain.transition
    assert np.allclose(back.stationary[:, None] * back.transition, flow.T, rtol=1e-10, atol=0)
    assert np.allclose(back.reversed().transition, chain.transition, rtol=1e-10, atol=0)
    assert back.eigengap == pytest.approx(chain.eigengap, abs=1e-9)
    assert chain.is_reversible == np.allclose(back.transition, chain.transition, rtol=1e-8)


def test_a_reducible_chain_has_no_reversal():
    with pytest.raises(UnsupportedError, match="irreducible"):
        MarkovChain([[0.5, 0.5], [0, 1]]).reversed()
