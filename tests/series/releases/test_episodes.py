"""Releases that hide stretches: the noise against enumeration, the record, the debit."""

import itertools
import json
import math

import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.budget import Accountant, Spending
from quiltwork.exact import format_number

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])
DATA = ["rest", "walk", "walk", "rest"] * 10
COUNT = queries.count("walk")


def leakage_of_stretches(chain, length, episode, scale):
    """What a noisy count tells about any `episode` states in a row: all paths, all answers."""
    paths = list(itertools.product((0, 1), repeat=length))
    start, step = chain.start, chain.transition
    law = {
        path: start[path[0]] * math.prod(step[a, b] for a, b in itertools.pairwise(path))
        for path in paths
    }
    worst = 0.0
    for first in range(length - episode + 1):
        told = {}
        for path in paths:
            told.setdefault(path[first : first + episode], []).append(path)
        for answer in range(length + 1):  # beyond 0..length ratios stay what they are there
            given = [
                math.log(
                    sum(law[p] * math.exp(-abs(answer - sum(p)) / scale) for p in group)
                    / sum(law[p] for p in group)
                )
                for group in told.values()
            ]
            worst = max(worst, max(given) - min(given))
    return worst


@pytest.mark.parametrize("episode", [1, 3, 6])
def test_no_stretch_of_an_enumerated_series_is_betrayed_by_more(episode):
    data = ["rest", "walk", "walk", "rest", "rest", "rest"]
    answer = qw.release(data, COUNT, CHAIN, epsilon=1, episode=episode)
    leaks = leakage_of_stretches(CHAIN, 6, episode, float(answer.noise_scale))
    assert 0.99 < leaks <= 1 + 1e-9
    if episode > 1:
        weaker = qw.release(data, COUNT, CHAIN, epsilon=1, episode=episode - 1)
        assert leakage_of_stretches(CHAIN, 6, episode, float(weaker.noise_scale)) > 1


def test_the_record_says_what_it_hides_and_is_read_back():
    answer = qw.release(DATA, queries.histogram(), CHAIN, epsilon=1, episode=18)
    words = answer.explain()
    assert "Protects every stretch of 18 time points with ε = 1, against" in words
    assert "the time points before add" in words
    assert answer.episode == json.loads(answer.to_json())["episode"] == 18
    assert qw.Release.from_json(answer.to_json()) == answer
    within = qw.release(DATA, COUNT, CHAIN, epsilon=1, episode=3, secrets=(5, 20))
    assert "every stretch of 3 time points within the time points 5 to 20" in within.explain()


@pytest.mark.parametrize("episode", [1, 18])
def test_what_is_spent_and_what_neighbours_add_make_the_level(episode):
    answer = qw.release(DATA, COUNT, CHAIN, epsilon=1, episode=episode)
    spent = episode / answer.noise_scale
    assert float(spent) + answer.influence == pytest.approx(1, rel=1e-8)
    assert f"{format_number(float(spent))} of ε is spent there" in answer.explain()
    after = answer.influence - answer.before
    before, after = format_number(answer.before), format_number(max(after, 0.0))
    assert f"before add {before}, and those after {after}" in answer.explain()


def test_noise_that_hides_everything_at_once_says_so():
    still = qw.MarkovChain([[1, 0], [0, 1]], initial=[0.5, 0.5], states=["rest", "walk"])
    answer = qw.release(["rest"] * 5, COUNT, still, epsilon=0.01)
    assert answer.noise_scale == 500
    assert "hides all time points at once" in answer.explain()


def test_a_preview_is_of_the_same_release():
    answer = qw.release(DATA, COUNT, CHAIN, epsilon=1, episode=18)
    foreseen = qw.preview(COUNT, CHAIN, length=40, epsilon=1, episode=18)
    assert (foreseen.scale, foreseen.episode) == (answer.scale, 18)
    assert foreseen.explain().startswith(
        "At ε = 1 for every stretch of 18 time points the expected "
    )


def test_a_debit_is_the_level_per_point(tmp_path):
    with qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.create("walks", CHAIN, 40, budget=2, episode=18)
        asked = {"epsilon": 1, "episode": 18, "ledger": ledger, "dataset": "walks"}
        answer = qw.release(DATA, COUNT, CHAIN, **asked, key="a")
        assert qw.release(DATA, COUNT, CHAIN, **asked, key="a") == answer
        with pytest.raises(qw.InvalidInputError, match="another request"):
            qw.release(DATA, COUNT, CHAIN, **{**asked, "episode": 17}, key="a")
        (debit,) = ledger.history("walks")
        assert debit.spending.per_point == answer.exact_dp_epsilon
        status = ledger.status("walks")
    assert (status.episode, status.total) == (18, pytest.approx(1, rel=1e-8))
    single = Accountant(CHAIN, 40)
    single.add(answer)
    assert single.epsilon() < 0.2


def test_a_ledger_keeps_what_it_protects_while_the_series_grows(tmp_path):
    """The first ten time points are shorter than the stretches that the budget is for."""
    with qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.create("walks", CHAIN, 10, budget=2, episode=18)
        ledger.allot("walks", "ana", cap=1)
        ledger.debit("walks", Spending.dp(0.01, 1, 10), analyst="ana")
        ledger.extend("walks", 60)
        ledger.debit("walks", Spending.dp(0.01, 11, 60), analyst="ana")
        with qw.Ledger.open(ledger.url) as again:
            total = again.status("walks").total
        assert ledger.verify()
    whole = Accountant(CHAIN, 60, episode=18)
    whole.spend(0.01, 1, 60)
    assert total == pytest.approx(whole.epsilon(), rel=1e-8)
    assert total > 0.18


@pytest.mark.parametrize("episode", [0, -1, 1.5, "3h", True])
def test_an_episode_is_a_number_of_time_points(episode):
    with pytest.raises(qw.InvalidInputError, match="episode"):
        qw.release(DATA, COUNT, CHAIN, epsilon=1, episode=episode)


def test_rows_in_no_order_have_no_stretches():
    with pytest.raises(qw.UnsupportedError, match="need the sweep and a chain"):
        qw.release(["a"] * 4, queries.histogram(states=["a"]), qw.Clusters(range(4)), episode=2)
    with pytest.raises(qw.UnsupportedError, match="need the sweep and a chain"):
        qw.release(DATA, COUNT, CHAIN, method="exact", episode=2)
