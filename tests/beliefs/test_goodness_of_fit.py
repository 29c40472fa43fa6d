"""A belief beside a sample, against counting by hand, simulation and closed forms."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

from quiltwork.beliefs import ChainBox, Clusters, CyclicChain, Grid, HiddenChain, MarkovChain
from quiltwork.beliefs.goodness_of_fit import compare, likeliest_member, outside_box, parse_sample
from quiltwork.errors import InvalidInputError, UnsupportedError

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
NAPS = HiddenChain(
    [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.3, 0.0, 0.7]], ["awake", "asleep", "asleep"]
)
DAY = CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]])


def compared(belief, sequences):
    return compare(belief, parse_sample(sequences, belief))


def test_the_likelihood_of_a_chain_by_hand():
    found = compared(CHAIN, [["rest", "rest", "walk"], ["walk", "walk", "rest"]])
    assert found.per_step == pytest.approx(math.log(0.9 * 0.1 * 0.6 * 0.4) / 4, rel=1e-12)
    assert found.outside == 0


def test_the_likelihood_of_phases_by_hand():
    found = compared(DAY, [0, 1, 1, 0, 0])
    told = 0.1 * 0.8 * 0.6 * 0.9
    assert found.per_step == pytest.approx(math.log(told) / 4, rel=1e-12)


def test_the_likelihood_of_what_is_shown_sums_over_what_is_not():
    path = ["asleep", "asleep", "awake", "awake", "asleep", "asleep"]

    def probability(shown):
        total = 0.0
        for inner in product(range(3), repeat=len(shown)):
            if all(NAPS.states[NAPS.shown[i]] == s for i, s in zip(inner, shown, strict=True)):
                steps = pairwise(inner)
                moves = math.prod(NAPS.inner.transition[a, b] for a, b in steps)
                total += NAPS.inner.stationary[inner[0]] * moves
        return total

    given_first = math.log(probability(path) / probability(path[:1])) / (len(path) - 1)
    assert compared(NAPS, path).per_step == pytest.approx(given_first, rel=1e-12)


@pytest.mark.parametrize(
    ("belief", "path", "share"),
    [
        (MarkovChain([[0.5, 0.5], [1, 0]]), [0, 1, 1, 1, 0, 1], 2 / 5),
        (CyclicChain([[[0, 1], [1, 0]], [[0.5, 0.5], [0.5, 0.5]]]), [0, 1, 1, 1, 1], 1 / 4),
        (HiddenChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 0, 1]), [0, 0, 1, 1, 0, 1], 2 / 5),
    ],
)
def test_steps_that_a_belief_rules_out_are_counted(belief, path, share):
    """The last: 1 cannot follow 1, and a 0 after it is the first of two, so no 1 can follow."""
    found = compared(belief, path)
    assert found.outside == pytest.approx(share)
    assert found.per_step == -math.inf


def test_steps_outside_a_box_by_counting():
    box = ChainBox(
        [[0.6, 0.2, 0.0], [0.0, 0.0, 0.5], [0, 0, 0]], [[0.8, 0.4, 0.1], [1] * 3, [1] * 3]
    )
    counts = np.array([[50.0, 30.0, 20.0], [5.0, 15.0, 20.0], [1.0, 1.0, 0.0]])
    assert outside_box(counts, box) == pytest.approx(10 / 142)  # ten steps of the first row move
    counts[1] = [10.0, 20.0, 10.0]  # and ten of the second must go to its last state
    assert outside_box(counts, box) == pytest.approx(20 / 142)


def test_the_likeliest_member_of_a_box_is_likelier_than_any_other():
    box = ChainBox([[0.3, 0.1, 0.05]] * 3, [[0.7, 0.5, 0.6]] * 3)
    counts = np.array([[9.5, 0.5, 3.5], [0.5, 8.5, 20.5], [1.5, 1.5, 1.5]])
    found = likeliest_member(box, counts - 0.5)
    assert (found >= box.lower - 1e-12).all()
    assert (found <= box.upper + 1e-12).all()
    grid = np.arange(0.0, 1.0001, 0.01)
    for row, told in zip(counts, found, strict=True):
        able = [
            (a, b, 1 - a - b)
            for a in grid
            for b in grid
            if 0.3 <= a <= 0.7 and 0.1 <= b <= 0.5 and 0.05 <= 1 - a - b <= 0.6
        ]
        best = max(float(row @ np.log(one)) for one in able)
        assert best <= row @ np.log(told) + 1e-9
        assert best >= row @ np.log(told) - 0.02


def test_each_half_of_a_sample_is_scored_by_the_member_that_the_other_chose():
    box = ChainBox([[0.05, 0.05]] * 2, [[0.95, 0.95]] * 2)
    path = np.array([0, 0, 1] * 8 + [1, 1, 0, 1] * 2)  # 32 points: blocks of two, dealt by turns
    half = np.arange(31) // 2 % 2
    counts = np.full((2, 2, 2), 0.5)
    for h, a, b in zip(half, path[:-1], path[1:], strict=True):
        counts[h, a, b] += 1
    rows = counts / counts.sum(axis=2, keepdims=True)
    by_hand = [
        math.log(rows[1 - h, a, b]) for h, a, b in zip(half, path[:-1], path[1:], strict=True)
    ]
    assert compared(box, path).per_step == pytest.approx(float(np.mean(by_hand)), rel=1e-9)


def test_the_autocorrelation_of_two_states_is_a_power():
    found = compared(CHAIN, CHAIN.sample(20_000, seed=1))
    assert found.lags == (1, 2, 5, 10, 20, 50, 100)
    for row, lag in enumerate(found.lags):
        assert found.believed[row] == pytest.approx(0.5**lag, abs=1e-12)
    assert np.abs(found.autocorrelation - found.believed).max() < 0.04


def test_the_autocorrelation_of_a_sample_by_hand():
    found = compared(CHAIN, [["rest", "rest", "walk", "walk"], ["rest", "walk"]])
    mean, pairs = 0.5, [(1, 1), (1, 0), (0, 0), (1, 0)]
    by_hand = (np.mean([a * b for a, b in pairs]) - mean**2) / (mean * (1 - mean))
    assert found.autocorrelation[0, 0] == pytest.approx(by_hand)


@pytest.mark.parametrize("belief", [NAPS, DAY], ids=["hidden", "phases"])
def test_what_a_belief_says_is_what_its_simulation_shows(belief):
    found = compared(belief, belief.sample(120_000, seed=5))
    assert np.abs(found.autocorrelation - found.believed).max() < 0.02
    for seen, said in zip(found.stays, found.believed_stays, strict=True):
        assert seen.mean == pytest.approx(said.mean, rel=0.03)
        assert abs(seen.most - said.most) <= 1


def test_stays_of_a_chain_are_geometric():
    rest, walk = compared(CHAIN, CHAIN.sample(100, seed=1)).believed_stays
    assert (rest.mean, walk.mean) == pytest.approx((10, 2.5))
    assert rest.most == next(n for n in range(99) if 0.9**n <= 0.1)
    assert walk.most == next(n for n in range(99) if 0.6**n <= 0.1)


def test_stays_by_hand_and_stays_that_were_cut_off():
    """Stays of 1 begin and end with lengths 2, 1, 3; the last one, of 2, was cut off."""
    found = compared(MarkovChain([[0.5, 0.5]] * 2), [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1])
    ones = found.stays[1]
    assert ones.ended == 3
    # longer than 1: three of four; than 2: of the two seen to go on, one; than 3: none
    assert ones.longer == pytest.approx((1, 3 / 4, 3 / 8, 0))
    assert ones.mean == pytest.approx(1 + 3 / 4 + 3 / 8)
    assert ones.most == 3


def test_short_sequences_do_not_make_stays_short():
    """Half of all stays are cut off; leaving them out would make the mean too short."""
    pieces = [CHAIN.sample(20, seed=n) for n in range(3000)]
    assert compared(CHAIN, pieces).stays[0].mean == pytest.approx(10, rel=0.05)


def test_hours_by_hand():
    """Six days of two-hour steps that begin at 6:00; nights are for rest."""
    when = pd.date_range("2026-03-01 06:00", periods=72, freq="2h")
    states = ["rest" if moment.hour < 8 else "walk" for moment in when]
    hours = compared(CHAIN, pd.Series(states, index=when)).hours
    assert hours.sample[6].tolist() == [1, 0]
    assert hours.sample[8].tolist() == [0, 1]
    assert np.isnan(hours.sample[7]).all()
    assert hours.belief[6] == pytest.approx([0.8, 0.2])
    assert hours.days[6] == 6
    assert hours.worst()[0] == 8
    assert compared(CHAIN, ["rest", "walk"]).hours is None


def test_phases_follow_the_clock_of_the_sample():
    night, day = [[0.99, 0.01], [0.9, 0.1]], [[0.1, 0.9], [0.05, 0.95]]
    clock = CyclicChain([night] * 8 + [day] * 16, grid=Grid(step=3600), anchor=0)
    when = pd.date_range("2026-03-01 05:00", periods=24 * 60, freq="1h")
    sample = pd.Series(clock.sample(24 * 60 + 5, seed=1)[5:], index=when)
    found = compared(clock, sample)
    assert np.nanmax(np.abs(found.hours.sample - found.hours.belief)) < 0.15
    late = CyclicChain(clock.matrices, grid=Grid(step=3600), anchor=7 * 3600)
    assert compared(late, sample).per_step < found.per_step - 0.2


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UnsupportedError, match="Clusters is not about sequences of states"):
        parse_sample(["rest"], Clusters([1, 1]))
    with pytest.raises(InvalidInputError, match="No sequence of the sample has two time points"):
        parse_sample([["rest"], ["walk"]], CHAIN)
    with pytest.raises(InvalidInputError, match="Position 2 holds none of the states"):
        parse_sample(["rest", "run"], CHAIN)
    stuck = MarkovChain([[1, 0], [0, 1]], initial="any", states=["rest", "walk"])
    with pytest.raises(InvalidInputError, match="2 recurrent classes"):
        compared(stuck, ["rest", "rest"])
