from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linprog

from papers.examples.geometric import (
    example_2_2,
    figure_2,
    figure_2_consumer,
    laplace_comparison,
)
from papers.examples.structure import structure_report
from quiltwork.counts import GeometricMechanism, derive, optimal_mechanism
from quiltwork.errors import InvalidInputError
from tests.counts.oracle import ALPHAS, footnote_4, is_private

PRINTED = """\
2/3 0 1/4 1/24 1/48 1/48
1/3 0 1/2 1/12 1/24 1/24
1/6 0 1/2 1/6 1/12 1/12
1/12 0 1/4 1/3 1/6 1/6
1/24 0 1/8 1/6 1/3 1/3
1/48 0 1/16 1/12 1/6 2/3"""


def test_figure_2_is_the_printed_one_and_optimal():
    assert figure_2() == [[Fraction(e) for e in row.split()] for row in PRINTED.splitlines()]
    best = optimal_mechanism(figure_2_consumer(), 5, Fraction(1, 2))
    remap = GeometricMechanism(5, alpha=0.5).remap(figure_2_consumer())
    assert best.certificate.gap < Fraction(1, 10**12)
    assert remap.expected_loss == pytest.approx(float(best.certificate.lower_bound), abs=1e-12)


@given(st.integers(0, 20).map(lambda k: 2 * k + 1), ALPHAS)
def test_example_2_2_has_the_papers_two_losses(n, alpha):
    losses = example_2_2(n, alpha)
    assert losses.face_value == 2 * alpha / (1 + alpha)
    assert losses.remapped == alpha ** ((n + 1) // 2) / (1 + alpha)


def test_example_2_2_is_about_odd_n():
    with pytest.raises(InvalidInputError, match="odd"):
        example_2_2(4, 0.5)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.001])
def test_laplace_loses_by_a_factor_without_bound(alpha):
    geometric, laplace = laplace_comparison(alpha)
    assert geometric == pytest.approx(alpha / (1 + alpha))
    assert laplace == pytest.approx(math.sqrt(alpha) / 2)
    epsilon = -math.log(alpha)
    overlap, _ = quad(
        lambda t: min(
            epsilon / 2 * math.exp(-epsilon * abs(t)), epsilon / 2 * math.exp(-epsilon * abs(t - 1))
        ),
        -200 / epsilon,
        200 / epsilon,
        points=[0, 0.5, 1],
        limit=500,
    )
    assert laplace == pytest.approx(overlap / 2, rel=1e-6)
    assert laplace / geometric > 0.5 / math.sqrt(alpha)


@given(ALPHAS)
def test_footnote_4_has_a_vertex_that_no_remap_gives(alpha):
    vertex, mapping, better = footnote_4(alpha)
    assert is_private(vertex, alpha)
    assert not derive(vertex, alpha).derivable
    report = structure_report(vertex, alpha)
    assert "Observation 5.3" in report.passed
    assert report.failed == "Lemma 5.5"
    assert derive(better, alpha).mapping == mapping
    for i, r in product(range(3), range(3)):
        if i < 2:
            assert vertex[i][r] == better[i][r]
    assert better[2][2] > vertex[2][2]
    assert better[2][0] < vertex[2][0]
    assert better[2][1] == vertex[2][1] == 0


@pytest.mark.parametrize(
    ("mechanism", "some_consumer"), [("vertex", False), ("better", True), ("geometric", True)]
)
def test_footnote_4s_vertex_is_optimal_for_no_strictly_monotone_consumer(mechanism, some_consumer):
    """A program looks for costs (prior times loss) that would make a mechanism optimal."""
    unreachable, _, better = footnote_4()
    exact = {
        "vertex": unreachable,
        "better": better,
        "geometric": GeometricMechanism(2, alpha=0.5).matrix(exact=True),
    }[mechanism]
    vertex, alpha = np.array(exact, dtype=float), 0.5
    tight = []
    for i, r in product(range(2), range(3)):
        for a, b in ((i, i + 1), (i + 1, i)):
            if abs(alpha * vertex[a, r] - vertex[b, r]) < 1e-12:
                row = np.zeros((3, 3))
                row[a, r], row[b, r] = alpha, -1
                tight.append(-row.ravel())
    for i, r in product(range(3), range(3)):
        if vertex[i, r] == 0:
            tight.append(np.eye(9)[3 * i + r])
    free = [np.eye(3)[i].repeat(3) for i in range(3)]
    # costs = Σ multipliers ≥ 0 of tight constraints + free row multipliers; strictly monotone.
    generators = np.array(tight + free).T
    order = []
    equal = []
    for i, r, s in product(range(3), range(3), range(3)):
        difference = generators[3 * i + s] - generators[3 * i + r]
        if abs(i - r) < abs(i - s):
            order.append(-difference)
        elif abs(i - r) == abs(i - s) and r < s:
            equal.append(difference)
    found = linprog(
        np.zeros(generators.shape[1]),
        A_ub=order,
        b_ub=-np.ones(len(order)),
        A_eq=equal,
        b_eq=np.zeros(len(equal)),
        bounds=[(0, None)] * len(tight) + [(None, None)] * len(free),
    )
    assert (found.status == 0) is some_consumer
    assert (found.status == 2) is not some_consumer
