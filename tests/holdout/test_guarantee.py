"""The promise, by simulation with an analyst who overfits as hard as the answers allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.guarantee import dp_level, guarantee, noise_failure, overfit_width

QUESTIONS = 60


def worst_error(n, copies, beliefs, budget, threshold, noise, seed):
    """The largest error of any answer about fair coins, asked adaptively.

    Rows are `copies` copies of independent coins. The analyst asks about every column, then about
    votes of the columns that looked best so far, for as long as it is answered.
    """
    rng = np.random.default_rng(seed)
    width = QUESTIONS // 2 + 1

    def draw():
        return np.repeat(rng.integers(0, 2, (n // copies, width)).astype(bool), copies, axis=0)

    h = ReusableHoldout(draw(), draw(), beliefs, threshold=threshold, noise=noise, budget=budget)
    worst, looks = 0.0, []
    try:
        for column in range(width - 1):
            value = h.ask(lambda rows, c=column: rows[:, c] == rows[:, -1]).value
            worst = max(worst, abs(value - 0.5))
            looks.append(value)
        for count in range(2, width - 1):
            best = np.argsort(-np.abs(np.array(looks) - 0.5))[:count]
            straight = np.array(looks)[best] > 0.5

            def vote(rows, best=best, straight=straight):
                votes = (rows[:, best] == straight).sum(axis=1) * 2 > len(best) - 0.5
                return votes == rows[:, -1]

            worst = max(worst, abs(h.ask(vote).value - 0.5))
    except qw.BudgetExceeded:
        pass
    return worst


SMALL = {"budget": 1, "threshold": 0.05, "noise": 0.003}


@pytest.mark.parametrize("copies", [1, 4])
def test_no_answer_errs_by_more_than_promised(copies):
    n = 40_000 * copies
    beliefs = qw.Clusters([i // copies for i in range(n)]) if copies > 1 else None
    promise = guarantee(beliefs, n, SMALL["threshold"], SMALL["noise"], 1, QUESTIONS, 1 - 1e-9)
    assert promise.tolerance < 0.5
    for seed in range(3):
        assert worst_error(n, copies, beliefs, seed=seed, **SMALL) < promise.tolerance


def test_duplicated_rows_break_the_promise_of_independent_ones():
    """Negative control: 100 coins, each copied 400 times, promised as 40,000 independent rows."""
    n, copies = 40_000, 400
    promised = overfit_width(None, n, dp_level(n, 0.003, 1), QUESTIONS, 0.05)
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (n // copies, QUESTIONS))
    assert np.abs(coins.mean(axis=0) - 0.5).max() > promised
    honest = overfit_width(
        qw.Clusters([i // copies for i in range(n)]), n, dp_level(n, 0.003, 1), QUESTIONS, 0.05
    )
    assert honest > 0.5


def test_an_exact_answer_to_every_question_is_soon_off_by_more():
    """Negative control: the same analyst against exact answers, on the width for fixed questions.

    With 400 rows and 2,000 columns the vote on the holdout itself is far from ½."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (400, 2001)).astype(bool)
    agree = rows[:, :-1] == rows[:, -1:]
    straight = agree.mean(axis=0) > 0.5
    vote = (rows[:, :-1] == straight).sum(axis=1) * 2 > 2000
    claimed = (vote == rows[:, -1]).mean()
    assert claimed - 0.5 > overfit_width(None, 400, 0.0, 2001, 1e-9)


def test_the_width_is_the_formula_written_out():
    epsilon, n, m, beta = 0.01, 10**6, 1000, 0.025
    squares = n * epsilon**2
    exponent = math.log(4 * m / beta) + squares / 8
    exponent += math.sqrt(squares * math.log(2 / beta) / 2)
    assert overfit_width(None, n, epsilon, m, beta) == pytest.approx(
        math.sqrt(exponent / (2 * n)) + 2**-21, rel=1e-9
    )


def test_the_noise_fails_as_often_as_laplace_tails_add_up():
    found = noise_failure(0.01, 100, 5, 0.1, 0.2, 0.4)
    assert found == pytest.approx(5 * math.exp(-10) + 100 * math.exp(-10) + 5 * math.exp(-10), 1e-5)


def test_levels_and_bits_are_printed_with_their_theorems():
    found = guarantee(qw.Clusters([0, 0, 1, 1] * 1000), 4000, 0.05, 0.01, 3, 50)
    text = found.explain()
    assert found.epsilon == pytest.approx(9 * 3 / (4 * 0.01 * 4000))
    assert found.bayesian_epsilon == pytest.approx(2000 * found.epsilon)
    for words in ("DP for replacing a row", "Bayesian DP", "bits", "vacuous"):
        assert words in text


def test_statistics_with_a_declared_sensitivity_get_their_own_width_under_a_chain():
    chain = qw.MarkovChain([[0.7, 0.3], [0.3, 0.7]])
    means, any_statistic = (
        guarantee(chain, 10**6, 0.05, 0.01, 1, 10, means_only=flag) for flag in (True, False)
    )
    assert any_statistic.overfit_width > means.overfit_width
