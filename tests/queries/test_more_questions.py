"""The commonest few states, states by hour of the day, hours per day: against plain counting."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas
import pytest

import quiltwork as qw
from quiltwork import InvalidInputError, UnsupportedError, queries
from quiltwork.beliefs.origins import local_start
from quiltwork.noise import TwoSidedGeometric
from quiltwork.series import read_series
from quiltwork.series.releases.answer import describe_release

CHAIN = qw.MarkovChain(
    [[0.9, 0.05, 0.05], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4]], states=["rest", "walk", "run"]
)
DAYS = CHAIN.sample(3 * 144, seed=1).tolist()
ASKED = [queries.top(2), queries.by_hour("20min", "23:10"), queries.time_per_day(0)]


@pytest.mark.parametrize("query", ASKED, ids=lambda q: q.kind)
def test_documents_come_back(query):
    assert queries.from_document(queries.to_document(query.on(3, 9))) == query.on(3, 9)


@pytest.mark.parametrize(("begins", "window"), [("00:00", (1, None)), ("22:50", (10, 300))])
def test_hours_are_counted_as_a_clock_counts_them(begins, window):
    query = queries.by_hour("10min", begins).on(*window)
    codes = np.array([CHAIN.states.index(state) for state in DAYS])
    found = dict(zip(query.cells(CHAIN.states), query.evaluate(codes, CHAIN.states), strict=True))
    hours, minutes = map(int, begins.split(":"))
    expected = Counter()
    for place, state in enumerate(DAYS, start=1):
        if window[0] <= place <= (window[1] or len(DAYS)):
            hour = (hours * 60 + minutes + 10 * (place - 1)) // 60 % 24
            expected[f"{hour:02d}:00", state] += 1
    assert {cell: count for cell, count in found.items() if count} == expected


def test_an_answer_by_hour_is_a_matrix_with_intervals_and_a_picture():
    query = queries.by_hour("10min", "06:00")
    answer = qw.release(DAYS, query, CHAIN, epsilon=1)
    assert answer.value.shape == answer.interval().low.shape == (24, 3)
    assert answer.noise_scale == qw.release(DAYS, queries.histogram(), CHAIN).noise_scale
    assert answer.total == len(DAYS)
    assert qw.Release.from_json(answer.to_json()) == answer
    assert len(answer.plot().get_legend().get_texts()) == 3
    assert "06:00 rest" in answer._repr_html_() or "hour of the day" in answer._repr_html_()


def test_step_and_beginning_come_from_the_data_where_they_are_known():
    import pandas

    def series(begins):
        index = pandas.date_range(f"2026-03-02 {begins}", periods=len(DAYS), freq="10min")
        return pandas.Series(DAYS, index=index)

    answer = qw.release(series("06:30"), queries.by_hour(), CHAIN, epsilon=1)
    assert (answer.query.step, answer.query.begins) == (600, 6 * 3600 + 1800)
    both = [series("06:30"), series("07:50")]
    answer = qw.release(both, queries.by_hour(), CHAIN, epsilon=90)
    hours = np.concatenate([one.index.hour for one in both])
    truth = pandas.crosstab(hours, np.concatenate([DAYS, DAYS]))[list(CHAIN.states)].to_numpy()
    assert np.abs(answer.value - truth).max() <= 1
    assert qw.preview(queries.by_hour(step=600), CHAIN, length=[len(DAYS)] * 2).scale == (
        qw.release(both, queries.by_hour(), CHAIN).scale
    )
    with pytest.raises(InvalidInputError, match="different times of day"):
        describe_release(both, queries.by_hour(), CHAIN)  # as a ledger would pay
    with pytest.raises(InvalidInputError, match="different times of day"):
        qw.release(series("06:30"), queries.by_hour(begins="07:30"), CHAIN)
    with pytest.raises(InvalidInputError, match="length of a step"):
        qw.release(DAYS, queries.by_hour(begins="07:30"), CHAIN)
    with pytest.raises(InvalidInputError, match="time of day"):
        qw.release(DAYS, queries.by_hour("10min"), CHAIN)


def test_clocks_in_a_time_zone_change_to_summer_time():
    """Half-hours around 29 March 2026, when 02:00 becomes 03:00 in Berlin; pandas tells hours."""
    import pandas

    index = pandas.date_range("2026-03-28 20:00", periods=48, freq="30min", tz="Europe/Berlin")
    states = (["rest"] * 3 + ["walk"] * 2 + ["run"]) * 8
    answer = qw.release(pandas.Series(states, index=index), queries.by_hour(), CHAIN, epsilon=1)
    assert answer.query.zone == "Europe/Berlin"
    codes = np.array([CHAIN.states.index(state) for state in states])
    counted = answer.query.evaluate(codes, CHAIN.states).reshape(24, 3)
    expected = Counter(zip(index.hour, codes, strict=True))
    assert {(h, c): counted[h, c] for h, c in zip(*counted.nonzero(), strict=True)} == expected
    assert counted[2].sum() == 0
    assert qw.Release.from_json(answer.to_json()) == answer


def test_the_largest_noisy_counts_come_out_in_order():
    query = qw.queries.top(2)
    assert query.chosen((3, 9, 7), ("a", "b", "c")) == ((9, 7), ("b", "c"))
    assert query.chosen((3, 9, 9, 9), "abcd") == ((9, 9), ("b", "c"))
    answer = qw.release(DAYS, query, CHAIN, epsilon=50)
    truth = Counter(DAYS).most_common(2)
    assert answer.cells == tuple(state for state, _ in truth)
    assert list(answer.as_dict()) == list(answer.cells)
    assert answer.noise_scale == qw.release(DAYS, queries.histogram(), CHAIN, 50).noise_scale
    assert qw.Release.from_json(answer.to_json()) == answer


def test_intervals_of_chosen_states_hold_though_they_were_chosen():
    """Nine states with equal counts: the largest noisy one is off in one direction, always."""
    law, states, rounds = TwoSidedGeometric.from_scale(Fraction(5)), 9, 4000
    drawn = np.array(law.draw(states * rounds)).reshape(rounds, states).max(axis=1)
    answer = qw.release(
        list(range(states)) * 20, queries.top(1, states=range(states)), None, 1, protect="person"
    )
    assert answer.query.among == states
    alone, together = (law.simultaneous_quantile(0.95, n) for n in (1, states))
    assert (np.abs(drawn) <= together).mean() > 0.95
    assert (np.abs(drawn) <= alone).mean() < 0.9  # the interval of a state named beforehand
    width = (answer.interval().high - answer.interval().low) / 2
    assert width == answer.law.simultaneous_quantile(0.95, states)


def test_hours_per_day_are_a_share_of_24():
    answer = qw.release(DAYS, queries.time_per_day("walk"), CHAIN, epsilon=1)
    noisy = answer.noisy[0]
    assert answer.value == pytest.approx(24 * noisy / len(DAYS))
    low, high = answer.interval()
    steps = answer.law.simultaneous_quantile(0.95, 1)
    assert (low, high) == pytest.approx(
        tuple(24 * (noisy + side * steps) / len(DAYS) for side in (-1, 1))
    )


def test_the_exact_audit_knows_hours_per_day_and_refuses_what_it_does_not_know():
    coins = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    hours = qw.audit.leakage(coins, 8, [(queries.time_per_day(1), 6)])
    assert hours == pytest.approx(qw.audit.leakage(coins, 8, [(queries.count(1), 2)]))
    for query in (queries.top(1), queries.by_hour("10min", "00:00")):
        with pytest.raises(UnsupportedError, match="not available"):
            qw.audit.leakage(coins, 8, [(query, 2)])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: queries.top(0), "k"),
        (lambda: queries.by_hour("2h"), "step"),
        (lambda: queries.by_hour("10min", "25:00"), "06:30"),
        (lambda: queries.by_hour("10min", 86400), "begins"),
        (lambda: queries.ByHour(step=600, begins=0, zone="Europe/Nowhere"), "no time zone"),
        (lambda: qw.release(DAYS, queries.top(4), CHAIN), "3 states"),
        (lambda: qw.release(DAYS, queries.time_per_day("swim"), CHAIN), "swim"),
    ],
)
def test_bad_questions_are_refused(ask, words):
    with pytest.raises(InvalidInputError, match=words):
        ask()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("first", ["2026-01-10", "2026-06-01", "2026-10-23", "2026-03-27"])
def test_hours_are_those_of_the_clock_in_the_zone(zone, first):
    times = pandas.date_range(first, periods=24 * 6, freq="h", tz=zone)
    noon = np.where(times.hour == 12, "noon", "other")
    read = read_series(
        pandas.DataFrame({"time": times, "state": noon}), "state", time="time", timezone=zone
    )
    even = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["noon", "other"])
    answer = qw.release(read.data, queries.by_hour(), even, epsilon=90)
    shown = answer.value[:, 0]
    assert shown[12] == (noon == "noon").sum()
    assert shown.sum() == shown[12]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", None])
def test_an_index_with_a_zone_tells_the_period_and_phases_of_its_clock(zone):
    times = pandas.date_range("2026-06-01", periods=48, freq="h", tz=zone)
    day = pandas.Series(["rest"] * 48, index=times)
    answer = qw.release(day, queries.count("rest"), CHAIN, epsilon=1)
    assert answer.period == tuple(
        one.isoformat(timespec="minutes") for one in (times[0], times[-1] + times.freq)
    )
    assert local_start(day) % 86400 == 0
