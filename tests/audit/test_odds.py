"""What one output told: posteriors by enumeration, and no odds move further than the level."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from quiltwork import audit, queries

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@pytest.mark.parametrize("output", [-4, 0, 3, 7, 40])
def test_posteriors_equal_enumeration(output):
    release = [(queries.count(1), 1.5)]
    seen = audit.odds(CHAIN, 7, release, [output])
    rows, weight = enumerated.all_paths(CHAIN, 7)
    answer = enumerated.answers(queries.count(1), CHAIN.states, rows)[:, 0]
    likelihood = weight * np.exp(-np.abs(answer - output) / 1.5)
    for index, node in enumerate(seen.nodes):
        given = rows[:, node - 1] == 1
        expected = likelihood[given].sum() / likelihood.sum()
        assert seen.posterior[index, 1] == pytest.approx(expected, abs=1e-9)
        assert seen.prior[index, 1] == pytest.approx(weight[given].sum())
    assert seen.moved.max() <= audit.leakage(CHAIN, 7, release) + 1e-12


def test_some_output_reaches_the_level():
    release = [(queries.count(1), 1.5)]
    worst = audit.worst_case(CHAIN, 7, release)
    seen = audit.odds(CHAIN, 7, release, worst.output)
    assert seen.moved[worst.node - 1] == pytest.approx(worst.epsilon, abs=1e-9)


def test_figures_are_drawn():
    release = [(queries.count(1), 1.5)]
    seen = audit.odds(CHAIN, 7, release, [3])
    before, after = (line.get_ydata().tolist() for line in seen.plot().lines)
    assert before == seen.prior[:, -1].tolist()
    assert after == seen.posterior[:, -1].tolist()
    worst = audit.worst_case(CHAIN, 7, release)
    assert max(worst.plot().lines[0].get_ydata()) == worst.epsilon


def test_an_output_that_does_not_fit_is_refused():
    with pytest.raises(qw.InvalidInputError, match="numbers"):
        audit.odds(CHAIN, 7, [(queries.count(1), 1.5)], [1, 2])
    with pytest.raises(qw.UnsupportedError, match="scale here is 0"):
        audit.odds(CHAIN, 7, [(queries.count(1), 0)], [1])
    sure = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    with pytest.raises(qw.UnsupportedError, match="every time point is known"):
        audit.odds(sure, 7, [(queries.count(1), 1)], [1])
