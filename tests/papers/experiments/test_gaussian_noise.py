"""The tables of Gaussian noise, to half a percent of what the theory says."""

from __future__ import annotations

import math

import pytest

import quiltwork as qw
from papers.experiments import gaussian_noise


def nothing(*_):
    """No progress is shown."""


@pytest.fixture(scope="module")
def sheet():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUILTWORK_SHARED", "/nowhere")  # the example alone
        found = gaussian_noise.gaussian_noise.function(nothing)
    return found, {(row[1], row[2]): row for row in found.sheets[0].rows}


@pytest.mark.parametrize(("delta", "sigma", "pays"), [(1e-6, 14.06, 11.3), (1e-9, 18.31, 19.2)])
def test_two_states_need_what_the_theory_says(sheet, delta, sigma, pays):
    found, rows = sheet
    for many in (1, 10, 50, 100, 365):
        assert rows[delta, many][3] == pytest.approx(sigma * math.sqrt(many), rel=5e-3)
        assert rows[delta, many][4] == pytest.approx(3.33641 * many, rel=1e-4)
    told = {row.quantity: row.ours for row in found.rows}
    assert told[f"two states, a count: as good as geometric at K, δ = {delta:g}"] == pytest.approx(
        pays, rel=1e-2
    )
    assert rows[delta, 365][-1] == pytest.approx({1e-6: 5.68, 1e-9: 4.36}[delta], rel=5e-3)


def test_activity_in_four_states_needs_what_the_theory_says(shared_file):
    shared_file("data/activity_nhanes.csv.gz")
    chain, length = gaussian_noise.activity_chain()

    asked = {"query": qw.queries.histogram(), "noise": "gaussian"}
    for delta, one, year in ((1e-6, 53.7, 1026), (1e-9, 69.9, 1336)):
        assert qw.calibrate(chain, length, 1, delta=delta, **asked).scale == pytest.approx(
            one, rel=5e-3
        )
        assert qw.calibrate(
            chain, length, 1, delta=delta, releases=365, **asked
        ).scale == pytest.approx(year, rel=5e-3)
    geometric = qw.calibrate(chain, length, 1, query=asked["query"]).scale
    assert 365 * geometric == pytest.approx(6567, rel=5e-3)


def test_protected_days_tell_what_the_theory_says():
    found = gaussian_noise.protected_days.function(nothing, chains=4)
    told = {(row[0], row[1]): row[3] for row in found.sheets[0].rows}
    for stay, loud, quiet in (
        (0.6, 0.746, 0.254),
        (0.8, 1.062, 0.364),
        (0.9, 1.571, 0.546),
        (0.95, 2.267, 0.806),
    ):
        assert told[0.015, stay] == pytest.approx(loud, rel=5e-3)
        assert told[0.002, stay] == pytest.approx(quiet, rel=5e-3)
