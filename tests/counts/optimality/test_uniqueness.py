from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, derive, optimal_mechanism
from quiltwork.counts.optimality.exact_matrix import compose, mix_until_private
from quiltwork.counts.optimality.uniqueness import compare_with_geometric, least_error_weight
from quiltwork.errors import InvalidInputError
from tests.counts.oracle import ALPHAS, geometric, priors


@settings(max_examples=40)
@given(st.integers(1, 6), ALPHAS, st.data())
def test_g_under_new_names_is_recognised(n, alpha, data):
    order = data.draw(st.permutations(range(n + 1)))
    renamed = [[row[s] for s in order] for row in geometric(n, alpha)]
    found = compare_with_geometric(renamed, alpha)
    assert found.permutation == tuple(order)
    assert found.loss == found.best


@settings(max_examples=40)
@given(st.integers(1, 6), ALPHAS)
def test_the_column_weights_prove_the_witness_bound(n, alpha):
    """Σ_i v_i·α^|i−r| = 1 for every r, so no trace exceeds Σ v; G's trace is Σ v."""
    weights = [geometric(n, alpha)[r][r] for r in range(n + 1)]
    assert all(
        sum(weights[i] * alpha ** abs(i - r) for i in range(n + 1)) == 1 for r in range(n + 1)
    )
    assert all(weight > 0 for weight in weights)
    assert least_error_weight(n, alpha) == sum(weights)


def test_the_program_agrees_on_the_witness():
    found = compare_with_geometric(geometric(4, Fraction(2, 5)), 0.4)
    best = optimal_mechanism(Consumer("uniform", "binary"), 4, Fraction(2, 5))
    assert best.certificate.lower_bound == pytest.approx(found.best, abs=1e-12)


@settings(max_examples=30)
@given(st.integers(1, 4), ALPHAS, st.data())
def test_every_other_mechanism_fails_the_witness(n, alpha, data):
    """Private mechanisms of any kind: worse for the witness, unless they are G renamed."""
    raw = [data.draw(priors(n)) for _ in range(n + 1)]
    x, _ = mix_until_private(raw, alpha)
    found = compare_with_geometric(x, alpha)
    assert found.universal or found.loss > found.best
    remapped = compose(geometric(n, alpha), raw)
    other = compare_with_geometric(remapped, alpha)
    assert other.universal is (sorted(map(max, raw)) == [1] * (n + 1) and _is_permutation(raw))
    assert other.universal or other.loss > other.best


def _is_permutation(matrix):
    return all(
        sorted(column) == [0] * (len(matrix) - 1) + [1] for column in zip(*matrix, strict=True)
    )


def test_uniqueness_needs_alpha_below_one():
    """At α = 1 the constant mechanism and G serve everybody alike, and are no renaming."""
    with pytest.raises(InvalidInputError, match="alpha = 1"):
        compare_with_geometric(geometric(2, Fraction(1, 2)), 1)
    assert derive([[Fraction(1), 0, 0]] * 3, 1).derivable


def test_the_range_must_be_that_of_counts():
    with pytest.raises(InvalidInputError, match="square"):
        compare_with_geometric([[Fraction(1)], [Fraction(1)]], 0.5)
