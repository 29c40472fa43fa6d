"""The paper's definitions on tables, against enumeration written another way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import quiltwork as qw
from papers.examples import adversaries as paper
from papers.experiments.holdout_theorems import adversaries, theorems

JOINT = paper.chain_table((0.3, 0.7), ((0.8, 0.2), (0.3, 0.7)), 3)
KERNEL = paper.randomized_response((2, 2, 2), 0.4)


def brute(target, known):
    """Equation (3) with dictionaries: every pair of values, every known part, every output."""
    worst = 0.0
    for seen in itertools.product(range(2), repeat=len(known)):
        law = {}
        for value in (0, 1):
            total, out = 0.0, dict.fromkeys(itertools.product(range(2), repeat=3), 0.0)
            for x in itertools.product(range(2), repeat=3):
                if x[target] == value and all(x[k] == s for k, s in zip(known, seen, strict=True)):
                    total += JOINT[x]
                    for y in out:
                        out[y] += JOINT[x] * KERNEL[(*x, *y)]
            law[value] = {y: p / total for y, p in out.items()}
        worst = max(worst, *(abs(math.log(law[0][y] / law[1][y])) for y in law[0]))
    return worst


def test_equation_3_is_that_of_the_definition_and_bounded_by_the_lemmas():
    leaks = {one: paper.leakage(JOINT, KERNEL, *one) for one in paper.adversaries(3)}
    for one, leak in leaks.items():
        assert leak == pytest.approx(brute(*one))
    chain = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.3, 0.7])
    tight = qw.bayesian_dp(chain, 0.4, length=3)
    assert max(leaks.values()) <= tight <= qw.bayesian_dp(chain, 0.4, length=3, bound="paper")


def test_equation_6_is_nothing_behind_what_is_known_and_5_is_its_case():
    assert paper.influence(JOINT, 2, (0,), (1,)) == pytest.approx(0, abs=1e-12)
    step = np.array([[0.8, 0.2], [0.3, 0.7]])
    assert paper.influence(JOINT, 1, (2,)) == pytest.approx(np.abs(np.log(step[0] / step[1])).max())


def test_both_experiments_give_the_numbers_that_the_slips_are_about():
    rows = {row.quantity: row for row in theorems.function(lambda *_: None, finest=1).rows}
    assert rows["Theorem 2, rows by (8), independent"].ours == 5_823_704
    assert rows["one cluster of 250 copies, rows by (8)"].ours == pytest.approx(248.2, abs=0.1)
    told = {row.quantity: row.ours for row in adversaries.function(lambda *_: None, rows=4).rows}
    assert told["(6), on a row behind a known neighbour"] == 0
    assert told["(4), the worst of all adversaries"] <= told["our tight bound"]
