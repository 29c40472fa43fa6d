"""Post-processing is what it says it is, and leaves what is known untouched."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import InvalidInputError, UnsupportedError, queries
from quiltwork.series import (
    clip,
    consistent,
    nonnegative,
    normalize,
    possible,
    round_to_integers,
)
from quiltwork.series.releases.postprocess import project

VALUES = st.lists(st.integers(-30, 30), min_size=1, max_size=6)


def nearest_in_l1(values, total):
    """The least L1 distance to the scaled simplex, by a linear program."""
    from scipy.optimize import linprog

    size = len(values)
    identity, zeros = np.eye(size), np.zeros((size, size))
    result = linprog(
        np.concatenate([np.zeros(size), np.ones(size)]),
        A_ub=np.block([[identity, -identity], [-identity, -identity]]),
        b_ub=np.concatenate([values, -values]),
        A_eq=np.concatenate([np.ones(size), zeros[0]])[None, :],
        b_eq=[total],
    )
    return result.fun


@given(VALUES, st.integers(0, 40))
def test_the_projection_is_nearest_in_l2_and_in_l1(values, total):
    values = np.array(values, dtype=float)
    projected = project(values, float(total))
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(total)
    assert np.abs(projected - values).sum() == pytest.approx(nearest_in_l1(values, total), abs=1e-7)
    gradient = projected - values
    for corner in np.eye(len(values)) * total:
        assert gradient @ (corner - projected) >= -1e-7


@given(VALUES, st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_the_projection_never_moves_away_from_the_truth(noise, truth):
    truth = np.array(truth[: len(noise)], dtype=float)
    noisy = truth + np.array(noise)
    projected = project(noisy, truth.sum())
    assert np.linalg.norm(projected - truth) <= np.linalg.norm(noisy - truth) + 1e-9


def test_each_step_on_a_small_histogram(make_release):
    release = make_release(noisy=(3, -2, 9), points=10)
    assert clip(release).value.tolist() == [3, 0, 9]
    assert clip(release).value.dtype == np.int64
    assert clip(release, 0.5, 8).value.tolist() == [3.0, 0.5, 8.0]
    assert clip(release, None, None).value.tolist() == [3, -2, 9]
    assert consistent(release).value.tolist() == [3.0, -2.0, 9.0]
    assert nonnegative(release).value.tolist() == [2.0, 0.0, 8.0]
    assert normalize(release).value.tolist() == [0.25, 0.0, 0.75]
    assert normalize(make_release(noisy=(-3, -2))).value.tolist() == [0.5, 0.5]


def test_consistency_shares_the_difference_equally(make_release):
    assert consistent(make_release(noisy=(0, 0, 4), points=10)).value.tolist() == [2.0, 2.0, 6.0]


@given(VALUES, st.integers(1, 40))
def test_rounding_keeps_a_total_that_was_right(make_release, noisy, points):
    release = make_release(noisy=tuple(noisy), points=points)
    rounded = round_to_integers(nonnegative(release))
    assert rounded.value.sum() == points
    assert rounded.value.min() >= 0
    assert np.abs(rounded.value - nonnegative(release).value).max() < 1


def test_rounding_elsewhere_is_half_up(make_release):
    halves = clip(make_release(queries.count("a"), noisy=(3,)), 3.5, None)
    assert round_to_integers(halves).value == 4
    matrix = make_release(queries.transitions(), noisy=(1, 2, 3, 4), states=("a", "b"))
    assert round_to_integers(nonnegative(matrix)).value.shape == (2, 2)
    assert round_to_integers(nonnegative(matrix)).value.sum() == 9


@given(VALUES, st.integers(1, 40))
def test_what_is_possible_is_whole_and_adds_up_or_lies_between_the_ends(
    make_release, noisy, points
):
    counts = possible(make_release(noisy=tuple(noisy), points=points)).value
    assert (counts.dtype, counts.sum(), counts.min() >= 0) == (np.int64, points, True)
    shares = possible(make_release(queries.frequencies(), tuple(noisy), points=points)).value
    assert shares.sum() == pytest.approx(1)
    one = noisy[:1]
    count = possible(make_release(queries.count("a"), one, points=points)).value
    assert (count, type(count)) == (min(max(one[0], 0), points), int)
    for query, low, high in (
        (queries.mean(-3, 5), -3, 5),
        (queries.sum(-3, 5), -3 * points, 5 * points),
        (queries.sum(0, 1e30), 0, 1e30 * points),
    ):
        noise = make_release(
            query.refined(Fraction(2), points), [v * 10**5 for v in one], 2, points
        )
        found = possible(noise)
        assert found.value == pytest.approx(min(max(noise.value, low), high))
        assert found.interval() == noise.interval()


@pytest.mark.parametrize("step", [clip, consistent, nonnegative, round_to_integers])
def test_intervals_and_price_stay_those_of_the_noisy_answer(step, make_release):
    release = make_release()
    processed = step(release)
    assert processed.noisy == release.noisy
    assert (processed.interval().low == release.interval().low).all()
    assert processed.dp_epsilon == release.dp_epsilon
    assert processed.epsilon == release.epsilon
    assert len(processed.processing) == 1
    assert "Post-processed at no cost" in processed.explain()


def test_normalized_intervals_are_shares_of_the_public_total(make_release):
    release = make_release(points=20)
    shares = normalize(release)
    assert np.allclose(np.array(shares.interval()) * 20, np.array(release.interval()))
    assert shares.scale == pytest.approx(release.scale / 20)
    assert shares.total == 1
    again = normalize(shares)
    assert np.allclose(again.interval().low, shares.interval().low)
    assert [s.split()[0] for s in clip(again).processing] == ["normalize", "normalize", "clip"]


def test_what_cannot_be_processed_is_refused(make_release):
    count = make_release(queries.count("a"), noisy=(3,))
    label = make_release(queries.most_common(), noisy=(1,), states=("a", "b"))
    for step in (consistent, nonnegative, normalize):
        with pytest.raises(UnsupportedError, match="public total"):
            step(count)
    for step in (clip, round_to_integers, possible):
        with pytest.raises(UnsupportedError, match="label"):
            step(label)
    custom = make_release(queries.custom(len, lipschitz=1), noisy=(3,))
    with pytest.raises(UnsupportedError, match="give its bounds to clip"):
        possible(custom)
    empty = make_release(queries.transitions(), noisy=(1,), points=1, states=("a",))
    with pytest.raises(UnsupportedError):
        normalize(empty)
    with pytest.raises(InvalidInputError, match="low must not exceed high"):
        clip(count, 3, 2)
    with pytest.raises(InvalidInputError, match="bound"):
        clip(count, "0")


def test_fractions_are_accepted_as_bounds(make_release):
    assert clip(make_release(), Fraction(1, 2)).value.tolist() == [3.0, 0.5, 9.0]
