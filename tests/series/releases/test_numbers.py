"""Releases of numbers under Gaussian beliefs, and of numeric states within their own range."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.errors import InvalidInputError, UnsupportedError

AR = qw.GaussianSeries(ar=[0.8])
LOADS = AR.sample(2000, seed=1)


@pytest.mark.parametrize("query", [queries.mean(-1, 2), queries.sum(-1, 2).on(3, 1500)])
def test_a_release_is_the_clipped_answer_plus_noise_of_nine_ranges(query):
    answer = qw.release(LOADS, query, AR, epsilon=1.0)
    start, stop = query.window(2000)
    part = np.clip(LOADS[start - 1 : stop], -1, 2)
    truth, points = (part.mean(), len(part)) if query.kind == "mean" else (part.sum(), 1)
    assert answer.scale == pytest.approx(9 * 3 / points, rel=1e-5)
    assert answer.scale * points > 9 * 3
    assert abs(answer.value - truth) < 40 * answer.scale
    low, high = answer.interval(0.999999999)
    assert low < truth < high
    assert qw.Release.from_json(answer.to_json()) == answer
    assert "True differences" in answer.explain()
    planned = qw.preview(query, AR, length=2000)
    assert planned.scale == answer.scale


@pytest.mark.filterwarnings("ignore:epsilon is:quiltwork.QuiltworkWarning")
def test_without_noise_to_speak_of_the_answer_shows():
    kin = qw.GaussianRows(bounds=0.3, rows=2, families=2)
    near = {"epsilon": 1e7}
    assert qw.release([1, 2.5, 9, -9], queries.sum(0, 3), kin, **near).value == pytest.approx(6.5)
    several = {"a": [1.0, 2.0], "b": [4, True, 10**400]}
    assert qw.release(several, queries.mean(0, 5), AR, **near).value == pytest.approx(13 / 5)


def test_the_step_that_rounding_may_add_is_charged():
    answer = qw.release(LOADS[:1], queries.sum(0, 1), AR, epsilon=1.0)
    assert answer.noise_scale >= answer.query.subdivision + 1
    narrow = qw.GaussianSeries(ar=[0.8], within=0.001)
    answer = qw.release(LOADS[:1], queries.sum(0, 1), narrow, epsilon=1.0)
    assert answer.noise_scale >= answer.query.subdivision * Fraction(1, 1000) + 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "empty"),
        ([1.0, None, 2.0], "Position 2 holds no number"),
        ([1.0, 2.0, float("nan")], "Position 3 holds no number"),
        (["1", 2.0], "Position 1 holds no number"),
        ({"a": [1.0], "b": [1.0, None]}, "Subject 2: Position 2"),
    ],
)
def test_what_is_no_number_is_refused_by_its_place(data, words):
    with pytest.raises(InvalidInputError, match=words):
        qw.release(data, queries.mean(0, 1), AR)


@pytest.mark.parametrize("query", [queries.histogram(), queries.count(1), queries.most_common()])
def test_other_queries_are_refused_with_a_way_out(query):
    for asked in (
        lambda: qw.release(LOADS, query, AR),
        lambda: qw.preview(query, AR, length=2000),
    ):
        with pytest.raises(UnsupportedError, match="a chain over bins"):
            asked()


def test_states_that_do_not_fill_the_bounds_need_the_noise_of_their_own_range():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[20.0, 30.0])
    wide, own = queries.mean(0, 40), queries.mean(20, 30)
    data = [20.0, 30.0] * 50
    for scale in (
        lambda query: qw.release(data, query, chain).scale,
        lambda query: qw.preview(query, chain, length=100).scale,
        lambda query: qw.calibrate(chain, 100, 1, query=query).scale,
    ):
        assert scale(wide) == scale(own)
    assert qw.release(data, wide, chain).query.span == 10


def told(answer, phi, value, other, share=1.0) -> float:
    """The largest log-ratio over outputs, for two true values of the first of two numbers.

    The second is integrated by Gauss–Hermite; every pair is answered as the release answers it.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    scale, rest = float(answer.noise_scale) * share, np.sqrt(1 - phi**2) * nodes
    totals = [
        [int(answer.query.evaluate(np.array([x, phi * x + z]), ())[0]) for z in rest]
        for x in (value, other)
    ]
    low, high = np.min(totals), np.max(totals)
    outputs = np.unique(np.linspace(low - 9 * scale, high + 9 * scale, 4001).astype(np.int64))
    laws = [
        np.log(np.exp(-np.abs(outputs[:, None] - np.array(one)) / scale) @ weights)
        for one in totals
    ]
    return float(np.abs(laws[0] - laws[1]).max())


@pytest.mark.parametrize("phi", [0.5, -0.5, 0.9])
@pytest.mark.parametrize("bounds", [(-9, 9), (-1, 1)])
def test_what_is_released_tells_no_more_than_epsilon_and_five_percent_less_noise_would(phi, bounds):
    belief = qw.GaussianSeries(ar=[phi], within=1)
    answer = qw.release([0.0, 0.0], queries.sum(*bounds), belief, epsilon=0.7)
    for value in (-1.0, -0.5, 0.0, 0.3):
        assert told(answer, phi, value, value + 1) <= 0.7
    if phi > 0 and bounds == (-9, 9):
        assert told(answer, phi, -0.5, 0.5) == pytest.approx(0.7, rel=1e-3)
        assert told(answer, phi, -0.5, 0.5, share=0.95) > 0.7
