"""The monitor of plain differential privacy: Cao et al.'s recursion is computed beside it."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from bench.peers_sweep import temporal_privacy_leakage
from quiltwork import InvalidInputError, QuiltworkWarning, UnsupportedError

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
LEVELS = [0.1] * 7 + [0.5] + [0.2] * 4


def random_chain(size, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(size), size)
    return qw.MarkovChain(rows)


def recursion(chain, levels):
    back = np.asarray(chain.reversed().transition)
    return temporal_privacy_leakage(np.asarray(chain.transition), back, levels)


@pytest.mark.parametrize("seed", [5, 6, 8, 9])
@pytest.mark.parametrize("levels", [[0.3] * 15, LEVELS], ids=["equal", "mixed"])
def test_on_two_states_that_last_every_moment_leaks_what_the_recursion_says(seed, levels):
    chain = random_chain(2, seed)
    assert np.trace(chain.transition) > 1
    seen = qw.monitor(chain, levels)
    assert seen.by_now.values() == pytest.approx(recursion(chain, levels), rel=1e-9)


@pytest.mark.parametrize(("size", "seed"), [(3, 0), (3, 1), (4, 2), (2, 0), (2, 1)])
def test_on_others_no_moment_leaks_more_than_the_recursion_says(size, seed):
    chain = random_chain(size, seed)
    seen, bound = qw.monitor(chain, LEVELS), recursion(chain, LEVELS)
    assert (seen.by_now.values() <= bound * (1 + 1e-9)).all()
    assert (seen.by_now.values() >= np.array(LEVELS)).all()


def test_the_limit_is_where_the_recursion_goes():
    seen, far = qw.monitor(CHAIN, 0.1, length=12), recursion(CHAIN, [0.1] * 400)
    assert seen.limit.values() == pytest.approx(far[:12], rel=1e-6)
    assert seen.most_in_the_limit == pytest.approx(far[:12].max(), rel=1e-6)
    assert seen.at(3) == (seen.by_now.at(3), seen.limit.at(3))


@pytest.mark.parametrize("length", [1, 12, 300])
def test_the_level_under_a_bound_reaches_it_and_a_larger_one_does_not_keep_it(length):
    seen = qw.monitor(CHAIN, 0.1, length=length, under=0.8)
    reached = recursion(CHAIN, [seen.level_by_now] * length).max()
    assert reached == pytest.approx(0.8, rel=1e-6)
    for_ever = recursion(CHAIN, [seen.level_for_ever] * 500).max()
    assert for_ever == pytest.approx(0.8, rel=1e-6)
    assert f"A level of {seen.level_for_ever:.6g} keeps it for ever" in seen.explain()


def test_what_is_never_forgotten_grows_without_end():
    still = qw.MarkovChain([[1, 0], [0, 1]], initial=[0.5, 0.5])
    seen = qw.monitor(still, 0.1, length=30, under=1)
    assert seen.most_by_now == pytest.approx(3)
    assert seen.limit is None
    assert math.isinf(seen.most_in_the_limit)
    assert seen.level_by_now == pytest.approx(1 / 30)
    assert seen.level_for_ever == 0
    assert "grows without limit" in seen.explain()
    assert "No level keeps it for ever" in seen.explain()


def test_independent_moments_leak_their_level():
    coins = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    seen = qw.monitor(coins, Fraction(1, 10), length=9, under=Fraction(1, 2))
    assert (seen.most_by_now, seen.most_in_the_limit) == (0.1, 0.1)
    assert (seen.level_by_now, seen.level_for_ever) == (0.5, 0.5)
    assert "keeps the bound of 0.5" in seen.explain()


def test_an_episode_leaks_what_its_moments_were_told_and_more():
    seen = qw.monitor(CHAIN, 0.1, length=40, episode=5)
    assert 0.5 < seen.most_by_now < 5 * qw.monitor(CHAIN, 0.1, length=40).most_by_now
    assert "episode of 5 time points" in seen.explain()


def test_it_has_the_habits_of_results(tmp_path):
    seen = qw.monitor(CHAIN, LEVELS, under=1)
    document = json.loads(seen.to_json())
    assert document["schema"] == "quiltwork/monitor"
    assert document["most_by_now"] == seen.most_by_now
    frame = seen.to_frame()
    assert list(frame.columns) == ["first", "last", "level", "by_now", "limit"]
    sizes = frame["last"] - frame["first"] + 1
    assert np.repeat(frame["level"].to_numpy(), sizes).tolist() == LEVELS
    assert np.repeat(frame["by_now"].to_numpy(), sizes) == pytest.approx(seen.by_now.values())
    assert seen.plot().get_ylabel() == "ε"
    assert "<svg" in seen._repr_html_()
    seen.report(tmp_path / "page.html")
    assert "By now the leakage" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"levels": 0.1}, "length is missing"),
        ({"levels": [0.1, 0.2], "length": 3}, "2 levels"),
        ({"levels": []}, "0 levels"),
        ({"levels": [0.1, 0]}, "Level 2"),
        ({"levels": "0.1", "length": 3}, "epsilon"),
        ({"levels": 0.1, "length": 0}, "length"),
        ({"levels": 0.1, "length": 3, "under": 0}, "under"),
    ],
)
def test_bad_questions_are_refused(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        qw.monitor(CHAIN, **arguments)


def test_rows_have_no_steps_and_levels_that_nobody_means_warn():
    with pytest.raises(UnsupportedError, match="time points"):
        qw.monitor(qw.Clusters([1, 2]), 0.1, length=2)
    with pytest.warns(QuiltworkWarning, match="protects nothing"):
        qw.monitor(CHAIN, 500, length=2)


def test_a_long_series_keeps_the_shape_of_its_days():
    """Every hour of a year, beside a sweep of the days around it alone."""
    nights = [[[0.97, 0.03], [0.3, 0.7]]] * 10 + [[[0.7, 0.3], [0.3, 0.7]]] * 14
    seen = qw.monitor(qw.CyclicChain(nights), 0.1, length=8760)
    short = qw.monitor(qw.CyclicChain(nights), 0.1, length=24 * 21)
    for hour in range(24):
        node = 24 * 180 + hour + 1
        assert seen.by_now.at(node) == pytest.approx(short.by_now.at(24 * 10 + hour + 1), rel=1e-4)
    hours = [seen.by_now.at(24 * 180 + hour) for hour in range(24)]
    assert max(hours) > 2 * min(hours)
    assert "rises and falls with the 24 phases of the belief" in seen.explain()
    plain = qw.monitor(qw.MarkovChain(nights[0]), 0.1, length=8760)
    assert "phases" not in plain.explain()
