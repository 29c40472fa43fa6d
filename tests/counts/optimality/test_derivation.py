from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from papers.examples.geometric import figure_2
from papers.examples.vertices import vertex_remap
from quiltwork.counts import Consumer, GeometricMechanism, derive
from quiltwork.counts.optimality.exact_matrix import (
    best_remap,
    compose,
    mix_until_private,
    smallest_slack,
)
from quiltwork.errors import NotPrivateError
from tests.counts.oracle import ALPHAS, NAMED, bayes, footnote_4, geometric, priors


@st.composite
def stochastic(draw, rows, columns):
    return [draw(priors(columns - 1)) for _ in range(rows)]


@settings(max_examples=40)
@given(st.data(), st.integers(1, 5), ALPHAS)
def test_randomized_remaps_are_recovered(data, n, alpha):
    remap = data.draw(stochastic(n + 1, n + 1))
    found = derive(compose(geometric(n, alpha), remap), alpha)
    assert found.derivable
    assert found.remap == remap


@settings(max_examples=25)
@given(st.data(), st.integers(2, 3), st.sampled_from([Fraction(1, 4), Fraction(1, 2)]))
def test_derivability_agrees_with_a_search_for_the_remap(data, n, alpha):
    """Private mechanisms of any kind against a linear program for y ≥ 0 with y∘G = x."""
    raw = data.draw(stochastic(n + 1, n + 1))
    x, _ = mix_until_private(raw, alpha)
    assert smallest_slack(x, alpha) >= 0
    found = derive(x, alpha)
    g = np.array(geometric(n, alpha), dtype=float)
    equations = np.kron(g, np.eye(n + 1))
    residual = linprog(
        np.concatenate([np.zeros((n + 1) ** 2), np.ones(2 * (n + 1) ** 2)]),
        A_eq=np.hstack([equations, np.eye((n + 1) ** 2), -np.eye((n + 1) ** 2)]),
        b_eq=np.array(x, dtype=float).ravel(),
    ).fun
    least = min(min(row) for row in found.remap)
    if abs(least) > Fraction(1, 1000):
        assert (residual < 1e-7) is found.derivable


def test_a_mechanism_beyond_g_is_told_where_it_fails():
    found = derive(footnote_4()[0], 0.5)
    assert not found.derivable
    assert "< 0" in found.detail
    assert found.mapping is None


def test_the_ends_of_the_scale():
    assert derive([[1, 0], [0, 1]], 0).mapping == (0, 1)
    same = [[Fraction(1, 3), Fraction(2, 3)]] * 2
    assert derive(same, 1).derivable
    assert not derive([[1, 0], [0, 1]], 1).derivable


def test_floats_are_forgiven_their_rounding():
    floats = GeometricMechanism(6, alpha=0.7).matrix()
    assert derive(floats, 0.7).mapping == tuple(range(7))
    assert derive(floats[:, ::-1], 0.7).mapping == tuple(range(7))[::-1]
    nearly = np.full((3, 3), 1 / 3)
    nearly[0] += [1e-12, 0, -1e-12]
    assert derive(nearly, 1).derivable


def test_figure_2_comes_from_the_remap_that_example_5_2_names():
    assert vertex_remap(figure_2(), 0.5) == (0, 2, 2, 3, 4, 5)
    assert derive(figure_2(), 0.5).mapping == (0, 2, 2, 3, 4, 5)


def test_lemma_5_11_needs_the_structure():
    with pytest.raises(NotPrivateError, match=r"Lemma 5\.5"):
        vertex_remap(footnote_4()[0], 0.5)


@settings(max_examples=20)
@given(st.integers(1, 5).flatmap(priors), ALPHAS, st.sampled_from(NAMED))
def test_the_best_remap_of_any_mechanism_is_bayes_rule(prior, alpha, loss):
    n = len(prior) - 1
    mapping, value = best_remap(geometric(n, alpha), Consumer(prior, loss))
    assert (mapping, value) == bayes(geometric(n, alpha), prior, loss)[:2]


@settings(max_examples=20)
@given(st.data(), st.integers(1, 4), ALPHAS)
def test_no_randomized_remap_beats_bayes_rule(data, n, alpha):
    prior = data.draw(priors(n))
    loss = data.draw(st.sampled_from(NAMED))
    remapped = compose(geometric(n, alpha), data.draw(stochastic(n + 1, n + 1)))
    other = sum(
        prior[i] * remapped[i][r] * loss.exact(i, r) for i in range(n + 1) for r in range(n + 1)
    )
    assert best_remap(geometric(n, alpha), Consumer(prior, loss))[1] <= other
