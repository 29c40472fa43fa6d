"""The audit's experiments give the figures that the theory names."""

from __future__ import annotations

import pytest

from quiltwork.reproduce.experiments import audit


def nothing(done: int, total: int) -> None:
    """No progress shown."""


def test_exact_calibration_needs_a_quarter_of_the_noise():
    found = audit.exact_calibration.function(nothing, length=100)
    scales = {row.quantity: row.ours for row in found.rows}
    assert scales["ε = 1: scale, exact calibration"] == pytest.approx(3.336, abs=5e-4)
    assert scales["ε = 1: scale, exact quilts"] == pytest.approx(12.84, abs=5e-3)
    least = scales["ε = 1: scale, exact calibration"]
    assert scales["ε = 1: scale, sweep"] == pytest.approx(least, rel=1e-8)


def test_real_windows_need_less_noise(shared_file, monkeypatch):
    path = shared_file("data/activity_nhanes.csv.gz")
    monkeypatch.setenv("QUILTWORK_SHARED", str(path.parent.parent))
    found = audit.activity_windows.function(nothing, length=20)
    quilts, swept, exact = (found.rows[i::3] for i in range(3))
    assert len(exact) == 5 * 4
    for others in (quilts, swept):
        assert all(less.ours <= more.ours for less, more in zip(exact, others, strict=True))
    assert sum(row.ours for row in exact) < 0.7 * sum(row.ours for row in quilts)
    assert sum(row.ours for row in swept) < sum(row.ours for row in quilts)
