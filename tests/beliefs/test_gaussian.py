"""Gaussian beliefs as data: what is stationary, what is a correlation, files, simulation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import gaussian_reference as reference
from quiltwork.beliefs import (
    Clusters,
    GaussianRows,
    GaussianSeries,
    Grid,
    as_beliefs,
    belief_from_json,
)
from quiltwork.errors import InvalidInputError

KIN = [[1, 0.3, 0.2], [0.3, 1, 0.1], [0.2, 0.1, 1]]


@given(st.lists(st.integers(-25, 25), min_size=1, max_size=5))
@settings(max_examples=150)
def test_a_series_is_taken_exactly_if_no_root_is_inside_the_unit_circle(tenths):
    ar = [one / 10 for one in tenths]
    companion = np.eye(len(ar), k=-1)
    companion[0] = ar
    radius = np.abs(np.linalg.eigvals(companion)).max()
    if abs(radius - 1) < 1e-6:
        return
    if radius > 1:
        with pytest.raises(InvalidInputError, match="is not stationary"):
            GaussianSeries(ar=ar)
    else:
        found = GaussianSeries(ar=ar).autocorrelation(12)
        if radius < 0.998:
            assert found == pytest.approx(reference.autocorrelations(ar, 12), abs=1e-9)


@pytest.mark.parametrize("ar", [[1], [-1], [0.5, 0.5], [1.2, -0.2], [2, -1]])
def test_a_root_on_the_unit_circle_is_refused(ar):
    with pytest.raises(InvalidInputError, match="is not stationary"):
        GaussianSeries(ar=ar)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "one of ar"),
        ({"ar": [0.5], "bounds": (0, 0.5)}, "one of ar"),
        ({"ar": []}, "1 to 32"),
        ({"ar": [0.01] * 33}, "1 to 32"),
        ({"ar": [True]}, "Entry 1 of ar must be a number"),
        ({"ar": [0.5, float("nan")]}, "Entry 2 of ar must be finite"),
        ({"ar": 0.5}, "must be a list"),
        ({"autocorrelation": [1.0]}, "lag 1 is 1"),
        ({"autocorrelation": [0.9]}, "negative power"),
        ({"autocorrelation": [0.0, -0.6]}, "negative power"),
        ({"bounds": (0, 1)}, "between -1 and 1"),
        ({"bounds": (0.5, 0.2)}, "lowest and the highest"),
        ({"bounds": (0.5,)}, "lowest and the highest"),
        ({"ar": [0.5], "within": 0}, "within must be greater than 0"),
        ({"ar": [0.5], "within": True}, "within must be a number"),
        ({"ar": [0.5], "grid": "1h"}, "must be a Grid"),
    ],
)
def test_what_makes_no_series_gets_a_sentence(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        GaussianSeries(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "correlation matrix"),
        ({"bounds": 0.3}, "correlation matrix"),
        ({"correlation": KIN, "rows": 3}, "correlation matrix"),
        ({"correlation": [[1, 0.5]]}, "1 rows and 2 columns"),
        ({"correlation": [[1, 0.5], [0.4, 1]]}, r"Entry \(1, 2\)"),
        ({"correlation": [[1, 0.5], [0.5, 0.9]]}, r"Entry \(2, 2\)"),
        ({"correlation": [[1, float("nan")], [float("nan"), 1]]}, r"Entry \(1, 2\)"),
        ({"correlation": [[1, 1], [1, 1]]}, r"Entry \(1, 2\)"),
        ({"correlation": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]}, "positive definite"),
        ({"correlation": [[True]]}, "plain numbers"),
        ({"bounds": 1, "rows": 3}, "below 1"),
        ({"bounds": -0.1, "rows": 3}, "below 1"),
        ({"bounds": 0.1, "rows": 0}, "rows must be at least 1"),
        ({"correlation": KIN, "deviations": [1, 2]}, "2 entries for 3 rows"),
        ({"correlation": KIN, "deviations": [1, 0, 2]}, "Entry 2"),
        ({"correlation": KIN, "families": 0}, "families must be at least 1"),
        ({"correlation": KIN, "within": -1}, "within must be greater"),
    ],
)
def test_what_makes_no_rows_gets_a_sentence(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        GaussianRows(**arguments)


@pytest.mark.parametrize(
    "belief",
    [
        GaussianSeries(ar=[1.5, -0.7]),
        GaussianSeries(ar=[0.1], within=Fraction(1, 3), grid=Grid(step="10min")),
        GaussianSeries(autocorrelation=[0.4, 0.1]),
        GaussianSeries(bounds=(-0.9, 0.2), within=2),
        GaussianRows(KIN, deviations=[1, 2, 3], families=7),
        GaussianRows(bounds=0.274, rows=3, within=0.5),
    ],
    ids=repr,
)
def test_a_belief_survives_its_file(belief):
    back = belief_from_json(belief.to_json())
    assert back == belief
    assert hash(back) == hash(belief)
    assert back.to_json() == belief.to_json()
    assert belief != GaussianSeries(ar=[0.123])


def test_numbers_and_states_do_not_mix():
    with pytest.raises(InvalidInputError, match="about numbers"):
        as_beliefs([GaussianRows(KIN), Clusters([1, 1, 2])])


@pytest.mark.parametrize(
    "belief", [GaussianSeries(ar=[1.5, -0.7]), GaussianSeries(autocorrelation=[0.5, 0.2])], ids=repr
)
def test_samples_have_the_autocorrelation(belief):
    x = belief.sample(200_000, seed=3)
    found = [float(np.mean(x[h:] * x[: len(x) - h])) for h in range(4)]
    assert found == pytest.approx(belief.autocorrelation(3), abs=0.04)
    assert (belief.sample(5, seed=3) == belief.sample(5, seed=3)).all()
    assert len(belief.sample(1, seed=0)) == 1


def test_correlations_as_numpy_computes_them_are_taken_and_never_lowered():
    for seed in range(20):
        random = np.random.default_rng(seed)
        found = np.corrcoef(random.normal(size=(5, 40)) + random.normal(size=40))
        taken = GaussianRows(found).correlation
        assert (np.diag(taken) == 1).all()
        assert (np.abs(taken) >= np.minimum(np.abs(found), 1)).all()
        assert taken == pytest.approx(found, rel=1e-11)
