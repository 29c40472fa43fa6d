"""Counting: the number of possible questions by enumeration, and analysts who try to climb."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork.holdout.counting import counting_width, fresh_width, log_possible_questions


def nodes(queries, overfits, values):
    """Questions of the tree, one by one: a child for the training answer, g+1 for the holdout's."""
    if queries == 0 or overfits == 0:
        return 0
    below = nodes(queries - 1, overfits, values)
    return 1 + below + (values + 1) * nodes(queries - 1, overfits - 1, values)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 3))
def test_the_number_of_questions_is_that_of_the_tree(queries, overfits, values):
    exact = math.log(nodes(queries, overfits, values))
    found = log_possible_questions(queries, overfits, values)
    assert exact <= found <= exact + 1e-8


@pytest.mark.parametrize(
    ("queries", "overfits", "values"), [(9000, 5000, 3), (9000, 8999, 1), (5000, 5000, 7)]
)
def test_many_rounds_are_never_counted_too_low(queries, overfits, values):
    exact, term = 0, queries  # C(m, b+1)·(g+1)^b, each from the one before
    for b in range(overfits):
        exact += term
        term = term * (queries - b - 1) * (values + 1) // (b + 2)
    bits = exact.bit_length() - 60
    found = log_possible_questions(queries, overfits, values)
    truth = math.log(exact >> bits) + bits * math.log(2)
    assert truth <= found <= 1.01 * truth


def test_counting_needs_the_rows_of_its_formula():
    """Written out again: 2N·exp(−2nw²) ≤ β at w = (1−c)τ/2."""
    plan = qw.plan_holdout(queries=100, overfits=5, tolerance=0.1)
    questions = sum(math.comb(100, b + 1) * 8**b for b in range(5))
    least = math.log(2 * questions / 0.05) / (2 * 0.025**2)
    assert (plan.mechanism, plan.values, plan.noise) == ("counting", 7, 0)
    assert least < plan.samples < least + 3  # 24,120, and the rounding of rows
    chain = qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    ours = qw.plan_holdout(chain, queries=100, overfits=5, tolerance=0.1)
    assert 1.5 * least < ours.samples < 1.5 * least + 5
    assert math.isinf(plan.epsilon)
    assert "not protected" in plan.explain()


def test_protected_rows_take_the_noise_of_algorithm_1_and_still_fewer_rows():
    plan = qw.plan_holdout(queries=100, overfits=5, tolerance=0.1, protect="rows")
    assert plan.mechanism == "counting"
    assert plan.noise == pytest.approx(0.05 / (12 * math.log(8000)))
    assert plan.samples == 98_968
    assert plan.epsilon == pytest.approx(9 * 5 / (4 * plan.noise * plan.samples))


def test_few_questions_get_fresh_parts_and_chains_never_do():
    plan = qw.plan_holdout(queries=5, overfits=5, tolerance=0.1)
    assert plan.mechanism == "fresh parts"
    part = math.log(2 * 5 / 0.05) / (2 * 0.1**2)
    assert plan.samples == 5 * math.ceil(part)
    with pytest.raises(qw.InvalidInputError, match="fresh part"):
        qw.ReusableHoldout.from_plan(plan, np.zeros((9, 1)), np.zeros((2000, 1)))
    chain = qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert qw.plan_holdout(chain, queries=5, overfits=5, tolerance=0.1).mechanism == "counting"
    with pytest.raises(qw.UnsupportedError, match="parts are not independent"):
        fresh_width(chain, 1000, 5, 0.05)
    with pytest.raises(qw.UnsupportedError, match="protects no row"):
        qw.plan_holdout(
            queries=5, overfits=5, tolerance=0.1, protect="rows", mechanism="fresh parts"
        )


def climb(holdout, features, rng):
    """Follow every answer: keep what the holdout praised, and ask for votes of it."""
    kept: list[int] = []
    for step in itertools.count():
        chosen = [*kept[-8:], int(rng.integers(features))]

        def accuracy(rows, chosen=tuple(chosen)):
            return (rows[:, list(chosen)].sum(axis=1) * 2 > len(chosen)) == (rows[:, -1] > 0)

        try:
            found = holdout.ask(accuracy)
        except qw.BudgetExceeded:
            return
        yield found
        if found.value > 0.5 or step % 3 == 0:
            kept.append(chosen[-1])


@pytest.mark.filterwarnings("ignore:Too coarse")
@pytest.mark.parametrize("protect", [None, "rows"])
def test_no_climber_gets_an_answer_beyond_the_promise(protect):
    """Labels that nothing predicts: the truth of every question is ½, and training sets mislead."""
    asked = {"queries": 60, "overfits": 6, "confidence": 0.9, "protect": protect}
    rows = 4000 if protect is None else 20_000
    plan = qw.plan_holdout(samples=rows, mechanism="counting", **asked)
    assert plan.tolerance < 0.5
    over = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        train, held = (rng.integers(0, 2, (n, 9)) for n in (7, rows))
        answers = list(climb(qw.ReusableHoldout.from_plan(plan, train, held), 8, rng))
        for one in answers:
            over += one.overfit
            assert abs(one.value - 0.5) <= plan.tolerance
            assert not one.overfit or (one.exact * plan.values).denominator == 1
    assert over  # the holdout was asked, so the grid was tried


def test_copies_of_rows_break_the_promise_for_independent_rows_and_not_their_own():
    values = 7
    independent = counting_width(None, 400, 10, 2, values, 0.1)
    clustered = counting_width(qw.Clusters([0] * 40), 400, 10, 2, values, 0.1)
    rng = np.random.default_rng(0)
    errors = abs(rng.integers(0, 2, (2000, 10)).mean(axis=1) - 0.5)  # ten coins, 40 copies of each
    assert (errors > independent).mean() > 0.1
    assert (errors > clustered).mean() == 0


def test_what_rounds_its_answers_says_so_and_takes_means_only(tmp_path):
    rows = np.random.default_rng(0).random((300, 2))
    held = qw.ReusableHoldout(
        rows, rows[::-1] ** 3, threshold=0.1, noise=0, values=4, budget=2, path=tmp_path / "h.jsonl"
    )
    assert held.ask(lambda data: data[:, 0]).value == 0.25
    with pytest.raises(qw.UnsupportedError, match="means over rows"):
        held.ask(lambda data: data.sum(), sensitivity=1)
    assert "not protected" in held.guarantee(10).explain()
    held.close()
    again = qw.ReusableHoldout.resume(tmp_path / "h.jsonl", rows, rows[::-1] ** 3)
    assert (again.remaining, again.transcript.rounds.settings.values) == (1, 4)
    again.close()
    with pytest.raises(qw.InvalidInputError, match="noise must be positive"):
        qw.ReusableHoldout(rows, rows[::-1], threshold=0.1, noise=0, budget=2)
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path / 'b.db'}")
    ledger.create("held", qw.Clusters(range(300)), None, 1)
    with pytest.raises(qw.UnsupportedError, match="no finite epsilon"):
        qw.ReusableHoldout(
            rows,
            rows[::-1],
            threshold=0.1,
            noise=0,
            values=4,
            budget=2,
            ledger=ledger,
            dataset="held",
        )
