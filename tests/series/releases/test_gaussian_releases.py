"""Releases with Gaussian noise: what is drawn, how it is read, and what it says of itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import quiltwork as qw
from quiltwork import Clusters, queries
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series import Release, preview

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
DATA = ["rest", "walk", "walk", "rest"] * 25


def gaussian(query, beliefs=CHAIN, data=DATA, **given):
    return qw.release(data, query, beliefs, 1, noise="gaussian", delta=1e-6, **given)


def statistic(draws, sigma):
    """Chi-square of draws against P(⌊σN + ½⌋ = z), over cells of expected count ≥ 20."""
    size, edge = len(draws), int(3 * sigma)
    values = np.arange(-edge, edge + 2) - 0.5
    expected = size * np.diff(np.concatenate([[0], ndtr(values / sigma), [1]]))
    clipped = np.clip(draws, -edge - 1, edge + 1) + edge + 1
    observed = np.bincount(clipped, minlength=2 * edge + 3)
    assert expected.min() > 20
    return float(((observed - expected) ** 2 / expected).sum()), 2 * edge + 2


@pytest.fixture(scope="module", name="noise")
def noise_fixture():
    """100,000 draws: the errors of a histogram of independent rows, one in each cell."""
    rows = range(100_000)
    answer = gaussian(queries.histogram(states=rows), Clusters(rows), rows)
    return answer, answer.value - 1


def test_noise_has_the_rounded_law_and_the_scale_it_says(noise):
    answer, drawn = noise
    found, freedom = statistic(drawn, answer.scale)
    assert found < freedom + 8 * math.sqrt(2 * freedom)
    for wrong in (0.95, 1.05):
        rejected, freedom = statistic(drawn, answer.scale * wrong)
        assert rejected > freedom + 8 * math.sqrt(2 * freedom)


def test_intervals_cover_as_often_as_the_rounded_law_says(noise):
    answer, _ = noise
    ends = answer.interval(0.9)
    steps = int(ends.high[0]) - int(answer.value[0])
    inside = float(((ends.low <= 1) & (ends.high >= 1)).mean())
    promised = 1 - 2 * norm.sf((steps + 0.5) / answer.scale)
    assert 0.9 <= promised < 0.93
    assert abs(inside - promised) < 6 * math.sqrt(promised * (1 - promised) / len(answer.cells))
    together = answer.interval(0.9, simultaneous=True)
    wide = int(together.high[0]) - int(answer.value[0])
    assert (1 - 2 * norm.sf((wide + 0.5) / answer.scale)) ** len(answer.cells) >= 0.9


@pytest.mark.parametrize(
    ("query", "moved"),
    [
        (queries.count("walk"), 1.0),
        (queries.histogram(), math.sqrt(2)),
        (queries.frequencies(), math.sqrt(2) / 100),
        (queries.top(1), math.sqrt(2)),
        (queries.transitions(), math.sqrt(6)),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_each_query_takes_the_noise_of_its_own_sensitivity(query, moved):
    answer = gaussian(query)
    count = qw.calibrate(CHAIN, 100, 1, noise="gaussian", delta=1e-6).scale
    assert answer.scale == pytest.approx(moved * count, rel=1e-9)
    assert answer.square == pytest.approx((1 / count) ** 2, rel=1e-9)
    assert (float(answer.delta), answer.mechanism) == (1e-6, "rounded gaussian")
    assert answer.dp_epsilon == math.inf


def test_means_are_put_on_a_grid_that_is_paid_for():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0.5, 3.25])
    answer = gaussian(queries.mean(0, 4), chain, [0.5, 3.25] * 50)
    count = qw.calibrate(CHAIN, 100, 1, noise="gaussian", delta=1e-6).scale
    assert answer.scale == pytest.approx((3.25 - 0.5) * count / 100, rel=1e-6)
    ar = qw.GaussianSeries(ar=[0.8], within=1)
    numbers = gaussian(queries.mean(0, 1), ar, [0.25] * 50)
    asked = qw.calibrate(ar, 50, 1, noise="gaussian", delta=1e-6, query=queries.mean(0, 1))
    assert asked.scale <= numbers.scale <= asked.scale * (1 + 1e-3)
    leak, _ = numbers.leak_under(ar)
    assert leak == pytest.approx(1, rel=1e-3)


def test_it_is_written_and_read_back_and_says_what_it_keeps(tmp_path):
    answer = gaussian(queries.histogram())
    again = Release.from_json(answer.to_json())
    assert again == answer
    assert (again.delta, again.law) == (answer.delta, answer.law)
    said = answer.explain()
    assert "ε = 1 and δ = 1e-06" in said
    assert "Gaussian, rounded to the grid, of standard deviation 19.9 on" in said
    assert "3.33 times the noise" in said
    answer.report(tmp_path / "page.html")
    assert "δ = 1e-06" in (tmp_path / "page.html").read_text()
    plain = qw.release(DATA, queries.histogram(), CHAIN, 1)
    assert '"delta"' not in plain.to_json()


def test_another_belief_is_answered_in_epsilon_at_the_same_delta():
    answer = gaussian(queries.count("walk"))
    slower = qw.MarkovChain([[0.95, 0.05], [0.05, 0.95]], states=["rest", "walk"])
    leak, _ = answer.leak_under(slower)
    needed = qw.calibrate(slower, 100, leak, noise="gaussian", delta=1e-6)
    assert leak > 2
    assert needed.scale == pytest.approx(answer.scale, rel=0.02)
    assert "at most" in answer.explain(slower)


def test_a_preview_shows_the_error_that_releases_have(noise):
    foreseen = preview(
        queries.histogram(), CHAIN, length=100, epsilon=1, noise="gaussian", delta=1e-6
    )
    answer = gaussian(queries.histogram())
    assert (foreseen.scale, foreseen.expected_error) == (answer.scale, answer.expected_error)
    assert foreseen.half_width == answer.interval().high[0] - answer.value[0]
    assert foreseen.expected_error == pytest.approx(answer.scale * math.sqrt(2 / math.pi), rel=1e-2)
    assert "δ = 1e-06" in foreseen.explain()
    _, drawn = noise
    assert np.abs(drawn).mean() == pytest.approx(noise[0].expected_error, rel=0.02)


def test_what_is_certain_needs_no_noise():
    certain = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0], states=["rest", "walk"])
    answer = gaussian(queries.count("walk"), certain, ["rest", "walk"] * 5)
    assert (answer.value, answer.scale, answer.interval()) == (5, 0, (5, 5))
    assert "none" in answer.explain()


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"noise": "gaussian"}, InvalidInputError, "delta"),
        ({"delta": 1e-6}, InvalidInputError, "needs noise='gaussian'"),
        ({"noise": "laplace"}, InvalidInputError, "noise must be"),
        ({"noise": "gaussian", "delta": 1e-6, "method": "exact"}, InvalidInputError, "geometric"),
        (
            {"noise": "gaussian", "delta": 1e-6, "protect": "person"},
            UnsupportedError,
            "takes geometric noise",
        ),
    ],
)
def test_bad_arguments_get_a_sentence(given, error, said):
    with pytest.raises(error, match=said):
        qw.release(DATA, queries.count("walk"), CHAIN, 1, **given)


def test_labels_and_networks_refuse():
    with pytest.raises(UnsupportedError, match="chooses a label"):
        gaussian(queries.most_common())


def test_a_ledger_of_pure_levels_refuses_and_records_nothing(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("walks", CHAIN, 100, 3)
    with pytest.raises(UnsupportedError, match="no pure level"):
        gaussian(queries.count("walk"), ledger=ledger, dataset="walks")
    assert ledger.history("walks") == ()
