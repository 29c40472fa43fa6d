"""Plans against the formulae written out again, and against each other."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import quiltwork as qw
from papers.examples.adversaries import lemma_1_rows, paper_quilt_rows
from quiltwork.holdout.counting import fresh_width
from quiltwork.holdout.guarantee import max_information
from quiltwork.holdout.holdout_plan import (
    fixed_questions_width,
)
from quiltwork.holdout.max_information import max_information_of_paper

EXAMPLE = {
    "queries": 100,
    "overfits": 5,
    "tolerance": 0.1,
    "confidence": 0.95,
    "mechanism": "max-information",
}


def holds(n, m=100, budget=5, tau=0.1, beta=0.05, c=0.5, size=1):
    """Theorem 2 for clusters of one size, written out without the package's functions."""
    sigma = (1 - c) * tau / (12 * math.log(4 * m / beta))
    bad = budget * math.exp(-(1 - c) * tau / 12 / sigma)
    bad += m * math.exp(-(1 - c) * tau / 6 / (2 * sigma))
    bad += budget * math.exp(-(3 + c) * tau / 4 / (4 * sigma))
    left = beta - bad
    level = size * 9 * budget / (4 * sigma * n)
    squares = n / size * level**2
    exponent = math.log(4 * m / left) + squares / 8 + math.sqrt(squares * math.log(2 / left) / 2)
    return exponent <= 2 * n / size * ((1 - c) * tau / 4 - 2**-21) ** 2


@pytest.mark.parametrize("size", [1, 4])
def test_the_rows_are_the_least_for_which_theorem_2_holds(size):
    beliefs = None if size == 1 else qw.Clusters([0] * size)
    plan = qw.plan_holdout(beliefs, **EXAMPLE)
    assert holds(plan.samples * (1 + 1e-6), size=size)
    assert not holds(plan.samples * (1 - 1e-4), size=size)


def test_the_example_of_the_paper_with_each_constant():
    plan = qw.plan_holdout(**EXAMPLE)
    assert plan.samples == 579_960
    assert plan.noise == pytest.approx(0.05 / (12 * math.log(8000)))
    assert plan.threshold == pytest.approx(0.075)
    assert plan.epsilon == pytest.approx(9 * 5 / (4 * plan.noise * plan.samples))
    text = plan.explain()
    assert "579,960" in text


def test_equation_31_as_printed_is_a_slip():
    noise = 0.05 / (12 * math.log(8000))
    printed = 9 * 5 / (4 * noise * (0.1 / 3))  # τ where Theorem 1 is applied at (1−c)τ/4
    assert round(printed) == 727_963
    assert round(paper_quilt_rows(5, noise, 0.0125, 0.05 / 200)) == 5_823_704


def test_the_papers_formula_accepts_copies_of_one_coin_and_ours_does_not():
    """One cluster of 250 rows: (8) asks for 248.2 rows, yet the answer is always off by ½."""
    assert paper_quilt_rows(1, 17, 0.4, 0.05, nearby=250) == pytest.approx(248.2, abs=0.05)
    one = qw.Clusters([0] * 250)
    plan = qw.plan_holdout(one, queries=1, overfits=1, tolerance=0.4, mechanism="max-information")
    assert not plan.feasible
    assert plan.samples > 250 * 250


def test_influence_that_is_too_large_needs_infinitely_many_rows():
    assert paper_quilt_rows(1, 0.01, 0.1, 0.05, influence=0.1 / 12) == math.inf


@pytest.mark.parametrize(
    ("unknown", "relation"), [("tolerance", 1e-3), ("queries", 0), ("overfits", 0)]
)
def test_solving_for_another_number_gives_the_same_plan(unknown, relation):
    plan = qw.plan_holdout(**EXAMPLE)
    rest = {name: value for name, value in EXAMPLE.items() if name != unknown}
    again = qw.plan_holdout(samples=plan.samples, **rest)
    assert getattr(again, unknown) == pytest.approx(EXAMPLE[unknown], rel=relation or 1e-12)
    assert again.feasible
    assert again.solved_for == unknown


def test_more_rows_never_promise_less_and_clusters_cost_their_size():
    widths = [
        qw.plan_holdout(queries=100, overfits=5, samples=n).tolerance for n in (10**4, 10**5, 10**6)
    ]
    assert widths == sorted(widths, reverse=True)
    single, five = (qw.plan_holdout(qw.Clusters([0] * size), **EXAMPLE) for size in (1, 5))
    assert five.samples == pytest.approx(5 * single.samples, rel=1e-5)


def test_chains_need_more_rows_the_slower_they_forget():
    quick, slow = (
        qw.plan_holdout(qw.MarkovChain([[p, 1 - p], [1 - p, p]]), **EXAMPLE).samples
        for p in (0.6, 0.8)
    )
    assert 579_960 < quick < slow


def test_too_few_rows_are_not_feasible_and_the_alternatives_are_named():
    plan = qw.plan_holdout(qw.Clusters(range(100)), **EXAMPLE)
    assert not plan.feasible
    assert plan.available == 100
    assert "does not hold" in plan.explain()
    assert "Ladder" in plan.explain()


def test_a_vacuous_promise_is_called_so():
    plan = qw.plan_holdout(queries=1000, overfits=5, samples=1000)
    assert plan.vacuous
    assert not plan.feasible
    assert "vacuous" in plan.explain()
    with pytest.raises(qw.InvalidInputError, match="vacuous"):
        qw.ReusableHoldout.from_plan(plan, [[0.0]] * 10, [[1.0]] * 1000)


def test_hopeless_sizes_say_what_it_would_take():
    with pytest.raises(qw.InvalidInputError, match="that takes"):
        qw.plan_holdout(overfits=5, tolerance=0.1, samples=1000)
    with pytest.raises(qw.InvalidInputError, match="rows do not give"):
        qw.plan_holdout(queries=5, tolerance=0.1, samples=1000)
    assert not qw.plan_holdout(queries=5, overfits=1, samples=1).feasible


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tolerance": None}, "Left out"),
        ({"samples": 10}, "none"),
        ({"queries": 0}, "queries"),
        ({"overfits": 101}, "more than"),
        ({"tolerance": 1}, "between 0 and 1"),
        ({"confidence": 1}, "confidence"),
        ({"overfit_at": 0}, "overfit_at"),
        ({"tolerance": float("nan")}, "finite"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(change, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        qw.plan_holdout(**{**EXAMPLE, **change})


def test_lemma_1_follows_from_max_information():
    """ε = .92·√κ·τ and β = 2e^(−κnτ²/4) give 4e^(−κnτ²/4), by THEORY's and by our constant."""
    for rate in (2.0, 0.4):
        for n, tau in ((10**4, 0.05), (10**5, 0.02), (10**6, 0.01)):
            epsilon = 0.92 * math.sqrt(rate) * tau
            beta = 2 * math.exp(-rate * n * tau**2 / 4)
            bits = max_information(n * epsilon**2, beta)
            by_max_information = 2**bits * 2 * math.exp(-rate * n * tau**2) + beta
            assert by_max_information <= 4 * math.exp(-rate * n * tau**2 / 4) * (1 + 1e-9)
            assert bits < max_information_of_paper(epsilon, n, beta)


def test_lemma_1_asks_for_the_number_in_the_theory():
    noise = 0.05 / (12 * math.log(8000))
    assert math.ceil(lemma_1_rows(2, 5, noise, 0.0125, 0.05 / 200)) == 1_492_022


def test_fixed_questions_have_hoeffdings_width():
    hoeffding = math.sqrt(math.log(2 * 100 / 0.05) / (2 * 10**4))
    assert fixed_questions_width(None, 10**4, 100, 0.05) == pytest.approx(hoeffding + 2**-21)
    pairs = qw.Clusters([i // 2 for i in range(10**4)])
    by_inequality = math.sqrt(2) * hoeffding + 2**-21
    assert fixed_questions_width(pairs, 10**4, 100, 0.05) == pytest.approx(by_inequality)


def test_fresh_parts_are_hoeffdings_numbers():
    assert fresh_width(None, 10**4, 100, 0.05) == pytest.approx(
        math.sqrt(math.log(2 * 100 / 0.05) / (2 * 100))
    )
    assert fresh_width(None, 10, 100, 0.05) == math.inf


def test_tables_and_figures_show_the_same_numbers():
    plan = qw.plan_holdout(**EXAMPLE)
    table = plan.table([10**5, 10**6])
    assert table[0] == (
        10**5,
        qw.plan_holdout(
            queries=100, overfits=5, samples=10**5, mechanism="max-information"
        ).tolerance,
    )
    axes = plan.plot()
    ours = axes.get_lines()[0]
    assert list(ours.get_xdata()) == [n for n, _ in plan.table()]
    assert list(ours.get_ydata()) == [width for _, width in plan.table()]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tolerance": 1e-300}, "tolerance is 1e-300"),
        ({"confidence": Fraction(10**21 - 1, 10**21)}, "confidence is"),
        ({"confidence": 1e-13}, "confidence is"),
        ({"overfit_at": Fraction(10**21 - 1, 10**21)}, "overfit_at is"),
        ({"queries": 10**400}, "queries must be at most"),
        ({"overfits": 10**400, "queries": 10**18}, "overfits must be at most"),
        ({"tolerance": None, "samples": 10**5000}, "samples must be at most"),
    ],
)
def test_numbers_that_floats_cannot_follow_are_refused(change, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        qw.plan_holdout(**{**EXAMPLE, **change})


def test_the_finest_numbers_still_plan():
    extreme = {"confidence": Fraction(10**12 - 1, 10**12), "queries": 1 << 60, "overfits": 1}
    assert qw.plan_holdout(tolerance=0.1, **extreme).feasible
    with pytest.raises(qw.UnsupportedError, match=r"2\^60"):
        qw.plan_holdout(tolerance=1e-9, queries=1, overfits=1)


@pytest.mark.parametrize("leaving", [1e-9, 1e-6])
def test_a_chain_that_hardly_mixes_is_refused_without_a_single_translation(monkeypatch, leaving):
    """Concentration alone asks for more rows than any series has, whatever the answers tell."""

    def translate(*_):
        raise AssertionError("translated into Bayesian DP")

    monkeypatch.setattr("quiltwork.holdout.guarantee.bayesian_epsilon", translate)
    chain = qw.MarkovChain([[1 - leaving, leaving], [leaving, 1 - leaving]])
    with pytest.raises(qw.UnsupportedError, match="10,000,000,000,000"):
        qw.plan_holdout(
            chain, queries=100, overfits=5, tolerance=0.001, mechanism="max-information"
        )


def test_rows_that_promise_nothing_say_so():
    plan = qw.plan_holdout(queries=100, overfits=5, samples=1, mechanism="max-information")
    assert math.isinf(plan.tolerance)
    assert not plan.feasible
    assert plan.explain().startswith("Promise: none. 1 rows are too few")
    with pytest.raises(qw.InvalidInputError, match=r"takes .* rows\.$"):
        qw.plan_holdout(overfits=5, tolerance=0.1, samples=1)


def test_a_plan_too_coarse_to_choose_models_by_says_so_and_what_the_rows_could_do():
    coarse = qw.plan_holdout(queries=200, overfits=10, samples=3000)
    assert 0.3 < coarse.tolerance < 0.5
    text = coarse.explain()
    ladder = qw.plan_holdout(queries=200, samples=3000)
    once = math.sqrt(math.log(2 / 0.05) / 6000)
    assert f"a Ladder if you only need the best score (within {ladder.tolerance:.3g})" in text
    assert f"(within {once:.3g})" in text
    for other in ("a fresh part of the rows", "a Ladder", "a plain holdout, asked once"):
        assert f"  {other}" in text
    fine = qw.plan_holdout(queries=100, overfits=5, tolerance=0.1).explain()
    assert "Too coarse" not in fine
