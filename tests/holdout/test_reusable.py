"""The holdout as people use it: answers, budgets, mistakes, copies, crashes."""

from __future__ import annotations

import math
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.algorithm import AlgorithmSettings
from quiltwork.holdout.evaluation import _mixes_rows, sums_in_private
from quiltwork.holdout.transcript import HOLDOUT, BoardEntry

SECRET = 0.7291834655


SETTINGS = AlgorithmSettings.choose(100, 0.1, 0.01, 1)


def rows(n=400, columns=3, seed=0):
    return np.random.default_rng(seed).random((n, columns))


def make(budget=3, threshold=0.1, noise=0.0005, **options):
    return ReusableHoldout(
        rows(seed=1), rows(seed=2), threshold=threshold, noise=noise, budget=budget, **options
    )


TRAIN_KEYS = rows(seed=1)[:, 0]


def over(amount):
    """A statistic whose training mean is 1 and whose holdout mean is `amount` off."""
    return lambda data: np.where(np.isin(data[:, 0], TRAIN_KEYS), 1.0, 1.0 - amount)


def test_agreement_is_answered_from_the_training_set_and_costs_nothing():
    h = make()
    for _ in range(20):
        found = h.ask(lambda data: data[:, 0])
        assert not found.overfit
        assert found.remaining == 3
        assert found.value == pytest.approx(rows(seed=1)[:, 0].mean(), abs=2**-20)


def test_overfitting_is_answered_from_the_holdout_until_the_budget_is_gone():
    h = make()
    for left in (2, 1, 0):
        found = h.ask(over(0.9))
        assert found.overfit
        assert found.remaining == left
        assert abs(found.value - 0.1) < 4 * 0.0005 * 25
    with pytest.raises(qw.BudgetExceeded, match="All 3 rounds"):
        h.ask(over(0.9))
    with pytest.raises(qw.BudgetExceeded):
        h.ask(lambda data: data[:, 0])


def test_answers_vary_with_the_scale_of_the_paper():
    """Mean |noise| of answers is 4σ; off by a quarter would be seen (each fails at 1e-9)."""
    h = make(budget=3000, noise=0.01)
    answers = h.ask_many(lambda data: np.repeat(over(0.9)(data)[:, None], 3000, axis=1))
    errors = np.abs([one.value - 0.1 for one in answers])
    assert len(answers) == 3000
    spread = 6.8 / 3000**0.5  # of the mean of exponential variables, relative
    assert abs(errors.mean() / 0.04 - 1) < spread < 0.25 / 2


def test_many_questions_at_once_are_columns_and_stop_with_the_budget():
    h = make(budget=2)
    same = h.ask_many(lambda data: data)
    assert [one.value for one in same] == pytest.approx(rows(seed=1).mean(axis=0), abs=2**-20)
    cut = h.ask_many([over(0.9), over(0.8), over(0.7)])
    assert [one.remaining for one in cut] == [1, 0]
    assert h.asked == 5


def test_many_questions_are_tried_on_the_training_rows_before_any_is_answered():
    h = make()
    with pytest.raises(qw.InvalidInputError, match="failed on the training rows"):
        h.ask_many([over(0.9), lambda data: data[:, 9]])
    with pytest.raises(qw.InvalidInputError, match="function"):
        h.ask_many(iter([over(0.9), 3]))
    assert (h.asked, h.remaining) == (0, 3)
    assert h.ask_many([]) == []


def test_answers_beyond_floats_are_infinite_and_kept():
    for sign in (1, -1):
        found = BoardEntry(1, "", Fraction(sign * 10**400), HOLDOUT, 0).answer(SETTINGS)
        assert (found.value, found.exact) == (sign * np.inf, sign * 10**400)


def test_one_question_has_one_column():
    with pytest.raises(qw.InvalidInputError, match="ask_many"):
        make().ask(lambda data: data)


def test_booleans_integers_and_floats_are_read_alike():
    h = make()
    values = [
        h.ask(lambda data, kind=kind: (data[:, 0] > 0.5).astype(kind)).exact
        for kind in (bool, int, float, np.float32)
    ]
    assert len(set(values)) == 1


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (lambda data: data[:, 0] * 2, "must lie in"),
        (lambda data: np.full(len(data), np.nan), "must lie in"),
        (lambda data: data[:5, 0], "shape"),
        (lambda data: data[:, 0].mean(), "sensitivity"),
        (lambda data: data[:, 9], "failed on the training rows"),
        (lambda data: np.array(["a"] * len(data)), "numbers"),
        (lambda data: data[:, 0] > data[:, 0].mean(), "other rows"),
        (3, "function"),
    ],
)
def test_mistakes_show_on_the_training_rows_and_cost_nothing(statistic, words):
    h = make()
    with pytest.raises(qw.InvalidInputError, match=words):
        h.ask(statistic)
    assert (h.remaining, h.asked) == (3, 0)


def with_secret():
    inside = rows(seed=2)
    inside[7, 0] = SECRET
    return ReusableHoldout(rows(seed=1), inside, threshold=0.1, noise=0.0005, budget=3)


def picky(data):
    """Fails if it meets the secret."""
    if (data[:, 0] == SECRET).any():
        raise ValueError(f"found {SECRET}")
    return data[:, 1]


def test_a_statistic_that_fails_on_the_holdout_betrays_nothing():
    """The failing row counts as 0; the answer is that of agreement, as without the row."""
    h = with_secret()
    found = h.ask(picky)
    assert not found.overfit
    assert found.value == pytest.approx(rows(seed=1)[:, 1].mean(), abs=2**-20)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -5.0])
def test_wild_values_on_the_holdout_count_as_their_share_at_most(wild):
    h = with_secret()
    found = h.ask(lambda data: np.where(data[:, 0] == SECRET, wild, data[:, 1]))
    assert not found.overfit


def test_nothing_that_is_printed_carries_the_holdout(capsys, caplog):
    h = with_secret()
    h.ask(picky)
    shown = [repr(h), str(vars(h)), repr(h.transcript), h.guarantee(10).explain()]
    shown += [*h.transcript.lines(), capsys.readouterr().out, caplog.text]
    with pytest.raises(qw.QuiltworkError) as failure:
        h.ask(lambda data: data[:, 0] / 0 if len(data) else 0)
    shown.append(str(failure.value))
    assert not any(str(SECRET)[:8] in text for text in shown)


def test_a_number_needs_a_sensitivity_and_is_answered_in_its_units():
    h = make(threshold=0.2, noise=0.001)

    def total_income(data):
        return 1000 * float(data[:, 0].sum())

    found = h.ask(total_income, sensitivity=1000)
    assert not found.overfit
    assert found.value == pytest.approx(total_income(rows(seed=1)), rel=1e-3)
    far = h.ask(lambda data: 1e5 * (data[0, 0] == rows(seed=1)[0, 0]), sensitivity=100)
    assert far.overfit
    assert abs(far.value) < 4 * 0.001 * 400 * 100 * 25
    with pytest.raises(qw.InvalidInputError, match="one number"):
        h.ask(lambda data: data[:, 0], sensitivity=0.1)
    with pytest.raises(qw.InvalidInputError, match="greater than 0"):
        h.ask(total_income, sensitivity=0)


def test_threads_that_ask_together_let_no_warning_out():
    """The filters belong to the process: the first to leave must not open them for the others."""
    data = np.full((100, 1), 0.5)
    h = ReusableHoldout(data, np.zeros((100, 1)), threshold=0.9, noise=0.01, budget=9)
    quick_inside, slow_inside, quick_left = (threading.Event() for _ in range(3))

    def quick(rows):
        if not rows.any():
            quick_inside.set()
            slow_inside.wait(10)
        return rows[:, 0]

    def slow(rows):
        if not rows.any():
            slow_inside.set()
            quick_left.wait(10)
            warnings.warn("a zero in the holdout", stacklevel=1)
        return rows[:, 0]

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first = threading.Thread(target=lambda: (h.ask(quick), quick_left.set()))
        second = threading.Thread(target=lambda: h.ask(slow))
        first.start()
        quick_inside.wait(10)
        second.start()
        first.join()
        second.join()
        warnings.warn("a usual one", stacklevel=1)
    assert [str(one.message) for one in seen] == ["a usual one"]


def test_a_statistic_cannot_change_the_rows():
    def vandal(data):
        data[:, 0] = 0
        return data[:, 0]

    with pytest.raises(qw.InvalidInputError, match="read-only"):
        make().ask(vandal)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"noise": 0}, "noise"),
        ({"threshold": -0.1}, "threshold"),
        ({"beliefs": qw.Clusters([1, 2])}, "400"),
        ({"ledger": object()}, "dataset"),
        ({"ledger": object(), "dataset": "d"}, "must be an open ledger"),
        ({"ledger": "sqlite:///budget.db", "dataset": "d"}, "must be an open ledger"),
        ({"threshold": 10**400}, "threshold"),
        ({"noise": 10**400}, "noise"),
        ({"budget": 10**400}, "budget"),
        ({"queries": 0}, "queries"),
        ({"about": {"identity": "id"}}, "about"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(change, words):
    options = {"budget": 1, "noise": 0.01, "threshold": 0.1, **change}
    with pytest.raises(qw.InvalidInputError, match=words):
        ReusableHoldout(rows(seed=1), rows(seed=2), **options)


@pytest.mark.filterwarnings("ignore:Too coarse")
def test_a_plan_sets_everything_and_is_refused_for_too_few_rows():
    plan = qw.plan_holdout(queries=2, overfits=1, tolerance=0.45, protect="rows")
    n = plan.samples
    data = np.random.default_rng(0).integers(0, 2, (2 * n, 1)).astype(bool)
    h = ReusableHoldout.from_plan(plan, data[:n], data[n:])
    assert (h.budget, h.rows) == (1, n)
    assert h.epsilon == pytest.approx(plan.epsilon)
    h.ask(lambda part: part[:, 0])
    h.ask(lambda part: part[:, 0])
    with pytest.raises(qw.BudgetExceeded, match="All 2 questions"):
        h.ask(lambda part: part[:, 0])
    with pytest.raises(qw.InvalidInputError, match="needs"):
        ReusableHoldout.from_plan(plan, data[:n], data[n:-1])


def pair_of_sets(budget=2):
    train, held = np.full((100, 1), 0.5), np.full((100, 1), 0.5)
    held[::2] = 0.0
    return ReusableHoldout(train, held, threshold=0.9, noise=0.01, budget=budget)


def test_no_warning_of_a_statistic_gets_out_of_the_holdout():
    def logarithm(rows):
        if (rows == 0).any():
            warnings.warn("a zero in the holdout", stacklevel=1)
        return np.clip(-np.log(rows[:, 0]), 0, 1) + 0 / rows[:, 0]

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pair_of_sets().ask(logarithm)
        pair_of_sets().ask(lambda rows: float(np.log(rows).min()), sensitivity=1)
    assert seen == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_no_exit_of_a_statistic_gets_out_of_the_holdout(kind):
    def leaving(rows):
        if (rows == 0).any():
            raise kind("there is a zero in the holdout")
        return rows[:, 0]

    h = pair_of_sets()
    assert h.ask(leaving).value == 0.5
    assert h.ask(lambda rows: float(leaving(rows).sum()), sensitivity=1).value == 50
    assert h.asked == 2


def test_statistics_that_look_at_other_rows_are_found_by_rows_alone():
    with pytest.raises(qw.InvalidInputError, match="depends on other rows"):
        pair_of_sets().ask(lambda rows: rows[:, 0] * (1 if len(rows) >= 8 else 0.5))
    first = np.arange(20_000) % 16 == 7  # every sixteenth row looks at the next one

    def looking(some):
        return first[some] & (np.roll(some, -1) == some + 1)

    assert all(_mixes_rows(looking, first) for _ in range(200))


def test_on_the_holdout_a_row_counts_by_itself_even_if_the_statistic_mixes_rows():
    """One large value in the holdout, none in the training rows, would move every other row."""
    rows = np.full((1000, 1), 0.5)
    rows[3] = 1000.0

    def scaled(some):
        return some[:, 0] / max(1, some[:, 0].max())

    (total,) = sums_in_private(scaled, rows, 20, None)
    assert total == 999 * (1 << 19) + (1 << 20)


def test_what_is_no_list_and_no_array_is_refused():
    with pytest.raises(qw.InvalidInputError, match="ask_many takes"):
        pair_of_sets().ask_many(5)
    with pytest.raises(qw.InvalidInputError, match="train cannot be read"):
        ReusableHoldout([[1], [1, 2]], [[1]], threshold=0.1, noise=0.1, budget=1)


@pytest.mark.parametrize(("noise", "sensitivity"), [(0.001, None), (0.01, None), (0.01, 0.002)])
def test_an_answer_says_the_spread_that_its_noise_has(noise, sensitivity):
    """600 fresh answers from the holdout: their spread is what each of them says, not σ."""
    held = np.zeros((1000, 1))
    h = ReusableHoldout(held + 1, held, threshold=0.1, noise=noise, budget=600)
    if sensitivity is None:
        answers = [h.ask(lambda rows: rows[:, 0]) for _ in range(600)]
    else:
        answers = [h.ask(lambda rows: float(500 * rows[0, 0]), sensitivity) for _ in range(600)]
    assert all(one.overfit for one in answers)
    spread = np.std([one.value for one in answers])
    said = answers[0].noise_sd
    assert spread == pytest.approx(said, rel=0.2)
    assert said == pytest.approx(math.sqrt(2) * 4 * noise * (1000 * (sensitivity or 1 / 1000)))
    assert f"noise of standard deviation {said:.3g}" in answers[0].explain()
    assert f"standard deviation {math.sqrt(32) * noise:.3g}" in h.guarantee(queries=9).explain()


def test_an_answer_says_where_it_is_exact_and_to_what_it_is_rounded():
    held = np.zeros((1000, 1))
    h = ReusableHoldout(held + 1, held, threshold=0.1, noise=0, values=4, budget=3)
    told, same = h.ask(lambda rows: rows[:, 0]), h.ask(lambda rows: rows[:, 0] >= 0)
    assert (told.noise_sd, told.step, told.source) == (0, 0.25, "from the holdout, rounded to 0.25")
    assert (same.noise_sd, same.step, same.source) == (0, 0, "as on the training set")
