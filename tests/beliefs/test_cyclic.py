"""Chains whose matrices repeat: laws, simulation, files, fitting and the clock."""

from __future__ import annotations

import copy
import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from quiltwork import CyclicChain, InvalidInputError, MarkovChain, UnsupportedError
from quiltwork.beliefs import belief_from_json
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.origins import local_start
from quiltwork.series import read_series

NIGHT, DAY = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]


def random_cycle(rng, size=3, period=4):
    return rng.dirichlet(np.full(size, 0.7), (period, size))


def test_the_law_of_a_phase_is_what_follows_from_the_phase_before():
    matrices = random_cycle(np.random.default_rng(1))
    chain = CyclicChain(matrices)
    for t in range(1, 9):
        after = chain.marginal(t) @ matrices[(t - 1) % 4]
        assert chain.marginal(t + 1) == pytest.approx(after, rel=1e-12)
    values, vectors = np.linalg.eig(np.linalg.multi_dot(matrices).T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    assert chain.start == pytest.approx(law / law.sum(), rel=1e-9)


def test_a_given_start_is_followed_step_by_step():
    matrices = random_cycle(np.random.default_rng(2))
    chain = CyclicChain(matrices, initial=[1, 0, 0])
    law = np.array([1.0, 0, 0])
    for t in range(1, 12):
        assert chain.marginal(t) == pytest.approx(law, rel=1e-12)
        assert (chain.support(t) == (law > 0)).all()
        law = law @ matrices[(t - 1) % 4]


def test_supports_follow_zeros_of_the_phases():
    chain = CyclicChain([[[0, 1], [0, 1]], [[0.5, 0.5], [1, 0]]])
    assert chain.support(1).tolist() == [True, False]
    assert chain.support(2).tolist() == [False, True]
    assert chain.allows(np.array([0, 1, 0]))
    assert not chain.allows(np.array([0, 0]))
    every = CyclicChain([[[0, 1], [0, 1]], [[0.5, 0.5], [1, 0]]], initial="any")
    assert every.support(1).tolist() == [True, True]
    assert every.support(3).tolist() == [True, False]


def test_a_sample_has_the_frequencies_of_its_phases():
    chain = CyclicChain([NIGHT, DAY, DAY], states=["a", "b"])
    drawn = chain.sample(60_000, seed=3)
    for phase in range(3):
        share = (drawn[phase::3] == "b").mean()
        assert share == pytest.approx(chain.marginal(phase + 1)[1], abs=0.01)


def test_several_long_runs_ask_for_a_start():
    with pytest.raises(InvalidInputError, match=r"2 recurrent classes.*initial= a distribution"):
        CyclicChain([np.eye(2), np.eye(2)])
    assert CyclicChain([np.eye(2)], initial="any").period == 1
    swap = CyclicChain([[[0, 1], [1, 0]]])
    assert swap.start.tolist() == [0.5, 0.5]
    with pytest.raises(UnsupportedError, match="every initial distribution"):
        CyclicChain([NIGHT], initial="any").marginal(1)


@pytest.mark.parametrize(
    ("matrices", "sentence"),
    [
        ([], "list of 1 to 100,000"),
        (3, "list of 1 to 100,000"),
        ([NIGHT, [[1.0]]], "Matrix 1 has 1 rows and matrix 0 has 2"),
        ([NIGHT, [[0.5, 0.6], [0, 1]]], "Row 1 of matrix 1 sums to 1.1"),
        (NIGHT, "matrix 0 must be a list of rows"),
    ],
)
def test_what_is_no_cycle_of_matrices_is_refused(matrices, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CyclicChain(matrices)


@pytest.mark.parametrize("initial", ["stationary", "any", [0.25, 0.75]])
def test_files_and_pickles_give_the_same_belief(initial):
    grid = qw.Grid(step="1h")
    chain = CyclicChain([NIGHT, DAY], ["x", 1.5], initial, grid=grid, anchor=3600)
    assert belief_from_json(chain.to_json()) == chain == copy.deepcopy(chain)
    assert hash(belief_from_json(chain.to_json())) == hash(chain)
    assert chain != CyclicChain([DAY, NIGHT], ["x", 1.5], initial, grid=grid, anchor=3600)
    assert chain != CyclicChain([NIGHT, DAY], ["x", 1.5], initial, grid=grid)
    assert "period=2" in repr(chain)
    assert "every 1h" in repr(chain)


def test_many_data_give_every_phase_its_own_matrix():
    truth = random_cycle(np.random.default_rng(4), size=2, period=3)
    data = CyclicChain(truth).sample(90_000, seed=5)
    fitted = CyclicChain.fit(data, period=3)
    counts = np.zeros((3, 2, 2))
    for t, (x, y) in enumerate(itertools.pairwise(data)):
        counts[t % 3, x, y] += 1
    plain = counts / counts.sum(axis=2, keepdims=True)
    assert np.abs(fitted.matrices - plain).max() < 1e-3
    assert np.abs(fitted.matrices - truth).max() < 0.02


def test_data_without_a_cycle_are_pooled():
    data = MarkovChain(NIGHT).sample(3_000, seed=6)
    fitted = CyclicChain.fit(data, period=24)
    whole = MarkovChain.fit(data)
    assert np.abs(fitted.matrices - whole.transition).max() < 0.1
    spread = np.ptp(fitted.matrices, axis=0).max()
    apart = np.ptp(CyclicChain.fit(data[:200], period=100).matrices, axis=0).max()
    assert spread < 0.15
    assert apart == 0


def test_phases_say_where_sequences_begin():
    chain = CyclicChain([NIGHT, DAY, DAY], initial="stationary")
    data = chain.sample(30_000, seed=7)
    together = CyclicChain.fit([data[:10_001], data[10_001:]], period=3, phase=[0, 10_001])
    wrong = CyclicChain.fit([data[:10_001], data[10_001:]], period=3)
    assert np.abs(together.matrices - chain.matrices).max() < 0.03
    assert np.abs(wrong.matrices - chain.matrices).max() > 0.05
    with pytest.raises(InvalidInputError, match="phase has 3 numbers for 2 sequences"):
        CyclicChain.fit([data[:9], data[9:20]], period=3, phase=[0, 1, 2])


def hourly(begin, count, seed=0):
    """Asleep at night: rows of a table by the hour."""
    times = pd.date_range(begin, periods=count, freq="h")
    rng = np.random.default_rng(seed)
    asleep = np.where((times.hour < 6) ^ (rng.random(count) < 0.1), "asleep", "awake")
    return pd.DataFrame({"time": times, "state": asleep})


def test_days_are_read_from_the_times():
    series = read_series(hourly("2026-03-04T20:00", 24 * 40), "state", time="time", every="1h")
    (data,) = series.data.values()
    fitted = CyclicChain.fit(data, period="day")
    assert fitted.period == 24
    assert fitted.anchor == 0
    order = fitted.states.index("asleep")
    assert fitted.marginal(4)[order] > 0.8
    assert fitted.marginal(13)[order] < 0.2
    placed = fitted.starting(20)
    assert "from 20:00" in repr(placed)
    assert placed.marginal(8) == pytest.approx(fitted.marginal(4), rel=1e-12)
    with pytest.warns(qw.QuiltworkWarning, match="fitted"):
        turned = qw.release(data, qw.queries.histogram(), fitted)
    assert turned.beliefs == (placed.summary(),)
    assert placed.starting(4) == fitted


def test_sequences_of_other_times_are_aligned_and_slices_know_their_own():
    frame = hourly("2026-03-02T00:00", 24 * 60)
    late = hourly("2026-03-02T05:00", 24 * 60, seed=1)
    both = pd.concat([frame.assign(who="a"), late.assign(who="b")])
    series = read_series(both, "state", time="time", subject="who", every="1h")
    a, b = series.data.values()
    assert local_start(b) - local_start(a) == 5 * 3600
    assert local_start(a[7:]) - local_start(a) == 7 * 3600
    assert local_start(a[::2]) is None
    assert local_start(list(a)) is None
    together = CyclicChain.fit([a, b], period=24)
    asleep = [together.marginal(t + 1)[0] for t in range(24)]
    assert min(asleep[:6]) > 0.8
    assert max(asleep[6:]) < 0.2
    week = CyclicChain.fit([a, b], period="week")
    assert week.period == 168
    assert week.anchor == 4 * 86_400


def test_a_pandas_index_tells_the_time_too():
    frame = hourly("2026-03-04T20:00", 24 * 30)
    column = frame.set_index("time")["state"]
    assert CyclicChain.fit(column, period="day").marginal(4)[0] > 0.8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"period": "month"}, "a number of time points, 'day' or 'week'"),
        ({"period": "day"}, "needs the length of a step"),
        ({"period": "day", "grid": qw.Grid(step="1h")}, "at which each sequence begins"),
        ({"period": "day", "grid": qw.Grid(step="7h")}, "do not divide a day"),
        ({"period": 0}, "period must be at least 1"),
    ],
)
def test_periods_that_nothing_tells_are_refused(options, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CyclicChain.fit([0, 1, 0, 1], **options)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ((label for label in "abab"), "a list, array or series of labels, not of type generator"),
        (np.zeros((3, 4)), "A sequence has one dimension"),
        ([], "The sequence is empty"),
        ([0, 1, 0, 1], "no more time points than one period of 4"),
    ],
)
def test_what_is_no_series_is_named_before_its_length_is_compared_with_a_turn(data, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        CyclicChain.fit(data, period=4)


def test_more_phases_and_states_than_fit_into_memory_are_refused_and_left_out_of_the_list():
    numbers = np.arange(3000) % 300
    with pytest.raises(InvalidInputError, match="1,440 phases of 300 states make 129,600,000"):
        CyclicChain.fit(numbers, period=1440)
    tracemalloc.start()
    found = qw.plausible(numbers, period=1440)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not any(isinstance(belief, CyclicChain) for belief in found)
    assert peak < 500e6  # the table of all phases alone would take 2 GB


def test_a_run_between_gaps_begins_where_it_was_recorded():
    frame = hourly("2026-03-02T00:00", 48)
    frame = frame.drop(index=[10, 11])
    series = read_series(frame, "state", time="time", every="1h", missing="public")
    first, second = recorded_runs(series.data.coded.values())
    assert len(first) == 10
    assert local_start(second) - local_start(first) == 12 * 3600
