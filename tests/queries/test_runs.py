"""Several windows together, such as all Monday evenings: answers, noise, accounts and records."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from evidence import enumeration
from quiltwork import queries
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries.document import from_document, to_document
from quiltwork.series import read_series

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.3, 0.7]], initial=[0.75, 0.25])
RUNS = [(1, 2), (5, 5), (8, 9)]


def test_only_the_points_of_the_runs_are_counted():
    codes = np.random.default_rng(1).integers(0, 3, 40)
    places = [*range(2, 9), *range(19, 30)]
    query = queries.histogram().on_runs([(3, 9), (20, 30)])
    assert query.points(40) == len(places)
    assert query.evaluate(codes, (0, 1, 2)).tolist() == np.bincount(codes[places]).tolist()
    hours = queries.by_hour(step="1h", begins="00:00").on_runs([(3, 9), (20, 30)])
    table = hours.evaluate(codes, (0, 1, 2)).reshape(24, 3)
    expected = np.zeros((24, 3), dtype=int)
    np.add.at(expected, ([place % 24 for place in places], codes[places]), 1)
    assert table.tolist() == expected.tolist()


@pytest.mark.parametrize("query", [queries.histogram(), queries.count(1), queries.mean(0, 1)])
def test_changing_a_stretch_moves_the_answer_by_its_points_inside(query):
    asked = query.on_runs(RUNS)
    inside = np.zeros(11)
    inside[[0, 1, 4, 7, 8]] = 1
    for start in range(1, 11):
        for stop in range(start, 11):
            expected = inside[start - 1 : stop].sum() * asked.sensitivity.point
            assert asked.l1_sensitivity(start, stop, 10) == expected


@pytest.mark.parametrize("runs", [RUNS, [(2, 3), (7, 7)], [(1, 1), (3, 3), (5, 5), (7, 7)]])
def test_no_release_about_runs_leaks_more_than_its_epsilon_and_less_noise_would(runs):
    asked, length = queries.count(1).on_runs(runs), 9
    places = [node - 1 for a, b in runs for node in range(a, b + 1)]
    weighted = enumeration.paths(CHAIN, length)
    made = qw.calibrate(CHAIN, length, 1.0, query=asked)

    def leak(sigma):
        return enumeration.leakage(
            weighted, length, lambda path: sum(path[place] for place in places), sigma
        )

    assert 0.8 < leak(made.scale) <= 1 + 1e-9
    assert leak(0.8 * made.scale) > 1
    whole = qw.calibrate(CHAIN, length, 1.0, query=queries.count(1))
    assert made.scale < whole.scale


def test_runs_far_apart_take_the_noise_of_one():
    evenings = [(start, start + 15) for start in range(73, 4 * 672, 672)]
    sticky = qw.MarkovChain([[0.98, 0.02], [0.05, 0.95]])
    found = [
        qw.calibrate(sticky, 2688, 1.0, query=query).scale
        for query in (
            queries.histogram().on(*evenings[1]),
            queries.histogram().on_runs(evenings),
            queries.histogram(),
        )
    ]
    assert (1 - 1e-6) * found[0] <= found[1] < 1.001 * found[0]
    assert found[2] > 2 * found[1]


def test_an_account_charges_each_run_and_nothing_between_them():
    query = queries.histogram().on_runs([(1, 20), (60, 80)])
    answer = qw.release(CHAIN.sample(100, seed=1), query, CHAIN, epsilon=1.0)
    account = qw.Accountant(CHAIN, 100)
    account.add(answer)
    assert account.epsilon() == pytest.approx(1, rel=1e-6)
    apart = qw.Accountant(CHAIN, 100)
    apart.add_all(
        [Spending.of_query(query.on(*run), answer.noise_scale, 100) for run in query.runs]
    )
    assert account.epsilon() == pytest.approx(apart.epsilon())
    before = account.epsilon()
    account.spend(dp_epsilon=0.01, start=40, stop=41)  # between the runs, where little is told
    assert account.epsilon() == pytest.approx(before, rel=1e-3)
    assert answer.dp_epsilon == pytest.approx(float(2 / answer.noise_scale))


def test_a_ledger_keeps_runs_and_reads_them_again(tmp_path):
    query = queries.count(1).on_runs([(1, 20), (60, 80)])
    data, url = CHAIN.sample(100, seed=2), f"sqlite:///{tmp_path / 'budget.db'}"
    with qw.Ledger.open(url) as ledger:
        ledger.create("home", CHAIN, 100, budget=3)
        paid = {"ledger": ledger, "dataset": "home"}
        first = qw.release(data, query, CHAIN, epsilon=1.0, key="a", **paid)
        assert qw.release(data, query, CHAIN, epsilon=1.0, key="a", **paid).value == first.value
        qw.release(data, queries.count(1).on(30, 40), CHAIN, epsilon=1.0, **paid)
    with qw.Ledger.open(url) as ledger:
        ledger.verify()
        (one, _) = ledger.history("home")
        assert one.spending.runs == ((1, 20), (60, 80))
        assert ledger.accountant("home").epsilon() < 1.5


def test_records_of_runs_are_read_back_and_older_ones_have_none():
    query = queries.mean(0, 1).on_runs(RUNS)
    assert from_document(json.loads(json.dumps(to_document(query)))) == query
    spent = Spending.of_query(query, 4, 10)
    assert Spending.from_body(json.loads(json.dumps(spent.to_body()))) == spent
    assert "runs" not in Spending.dp(Fraction(1, 10), 1, 3).to_body()


def test_what_is_no_set_of_runs_is_refused():
    with pytest.raises(InvalidInputError, match="about neighbouring"):
        queries.transitions().on_runs(RUNS)
    with pytest.raises(InvalidInputError, match="two time points"):
        queries.histogram().on_runs([3])
    with pytest.raises(InvalidInputError, match="does not fit"):
        qw.calibrate(CHAIN, 8, 1.0, query=queries.histogram().on_runs(RUNS))
    with pytest.raises(UnsupportedError, match="several runs"):
        qw.audit.leakage(CHAIN, 10, [(queries.count(1).on_runs(RUNS), 2.0)])
    assert queries.histogram().on_runs([(2, 4), (5, 9)]) == queries.histogram().on(2, 9)


def test_a_sum_of_numbers_takes_runs_as_gaussian_beliefs_price_them():
    belief = qw.GaussianSeries(ar=[0.8])
    query = queries.sum(0, 1).on_runs([(1, 2), (6, 7)])
    found = qw.calibrate(belief, 8, 1.0, query=query)
    inside = [0, 1, 5, 6]
    worst = max(sum(0.8 ** abs(node - other) for other in inside) for node in range(8))
    assert found.scale == pytest.approx(worst, rel=1e-4)


def test_all_monday_evenings_are_one_question_about_a_file(tmp_path):
    times = pd.date_range("2026-03-02", periods=4 * 7 * 24, freq="h")
    frame = pd.DataFrame({"t": times.astype(str), "s": CHAIN.sample(len(times), seed=3)})
    series = read_series(frame, "s", time="t", beliefs=CHAIN)
    query = queries.histogram().on_runs(series.windows("Mondays 18:00-22:00"))
    answer = qw.release(series.data, query, CHAIN, epsilon=90.0)
    asked = frame[(times.day_of_week == 0) & (times.hour >= 18) & (times.hour < 22)]
    assert answer.value.tolist() == asked.s.value_counts().sort_index().tolist()
    assert "4 runs with 16 of them" in answer.explain()
