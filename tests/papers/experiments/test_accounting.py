"""Many releases: the sweep and joint quilts against the sum; a year of a home."""

from __future__ import annotations

import pytest

from papers.experiments import accounting


def nothing(done: int, total: int) -> None:
    """No progress shown."""


def test_many_releases_show_the_sweep_joint_quilts_and_the_sum():
    found = accounting.many_releases.function(nothing, most=10)
    totals = {row.quantity: row.ours for row in found.rows}
    assert totals["1 releases, joint quilt"] == pytest.approx(1, rel=1e-8)
    assert totals["10 releases, joint quilt"] == pytest.approx(4.298, abs=5e-4)
    assert totals["1 releases, sweep"] == pytest.approx(0.2409, abs=5e-5)
    assert totals["10 releases, sweep"] == pytest.approx(2.675, abs=5e-4)
    names = [series.name for series in found.figures[0].chart.lines]
    assert names == ["sum of levels", "joint quilt", "sweep"]
