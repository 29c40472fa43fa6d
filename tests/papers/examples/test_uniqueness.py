"""Theorem 6.1: among mechanisms with answers 0..n, only G serves every consumer, up to renaming.

The witness is the consumer with a uniform prior and binary loss.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, optimal_mechanism
from quiltwork.counts.geometric_matrix import column_weights
from quiltwork.counts.optimality.exact_matrix import best_remap, compose, mix_until_private
from tests.counts.oracle import ALPHAS, geometric, priors

WITNESS = Consumer("uniform", "binary")


def is_geometric_renamed(x, alpha):
    """Whether x is G up to a permutation of its answers."""
    own, others = (sorted(zip(*m, strict=True)) for m in (x, geometric(len(x) - 1, alpha)))
    return own == others


def witness_losses(x, alpha):
    """What the witness loses with its best remap of x, and by the bound at least."""
    n = len(x) - 1
    trace = sum(geometric(n, alpha)[r][r] for r in range(n + 1))
    return best_remap(x, WITNESS)[1], 1 - trace / (n + 1)


@settings(max_examples=40)
@given(st.integers(1, 6), ALPHAS, st.data())
def test_g_under_new_names_is_recognised(n, alpha, data):
    order = data.draw(st.permutations(range(n + 1)))
    renamed = [[row[s] for s in order] for row in geometric(n, alpha)]
    loss, best = witness_losses(renamed, alpha)
    assert is_geometric_renamed(renamed, alpha)
    assert loss == best


@settings(max_examples=40)
@given(st.integers(1, 6), ALPHAS)
def test_the_column_weights_prove_the_witness_bound(n, alpha):
    """Σ_i v_i·α^|i−r| = 1 for every r, so no trace exceeds Σ v; G's trace is Σ v."""
    weights = [geometric(n, alpha)[r][r] for r in range(n + 1)]
    assert all(
        sum(weights[i] * alpha ** abs(i - r) for i in range(n + 1)) == 1 for r in range(n + 1)
    )
    assert all(weight > 0 for weight in weights)
    assert column_weights(n, alpha, exact=True).tolist() == weights


def test_the_program_agrees_on_the_witness():
    _, least = witness_losses(geometric(4, Fraction(2, 5)), Fraction(2, 5))
    best = optimal_mechanism(WITNESS, 4, Fraction(2, 5))
    assert best.certificate.lower_bound == pytest.approx(least, abs=1e-12)


@settings(max_examples=30)
@given(st.integers(1, 4), ALPHAS, st.data())
def test_every_other_mechanism_fails_the_witness(n, alpha, data):
    """Private mechanisms of any kind: worse for the witness, unless they are G renamed."""
    raw = [data.draw(priors(n)) for _ in range(n + 1)]
    x, _ = mix_until_private(raw, alpha)
    loss, best = witness_losses(x, alpha)
    assert is_geometric_renamed(x, alpha) or loss > best
    remapped = compose(geometric(n, alpha), raw)
    universal = is_geometric_renamed(remapped, alpha)
    assert universal is (sorted(map(max, raw)) == [1] * (n + 1) and _is_permutation(raw))
    loss, best = witness_losses(remapped, alpha)
    assert universal or loss > best


def _is_permutation(matrix):
    return all(
        sorted(column) == [0] * (len(matrix) - 1) + [1] for column in zip(*matrix, strict=True)
    )
