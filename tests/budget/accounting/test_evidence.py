"""A sample of what `make evidence` counts in full, and the experiments behind the figures."""

from __future__ import annotations

import pytest

from evidence.checks import accounting_fleet, accounting_joint
from papers import all_experiments


def quietly(done: int, total: int) -> None:
    assert 0 < done <= total


def test_joint_totals_hold_on_a_sample():
    assert accounting_joint.check(20, 7, quietly)["violations"] == 0


def test_a_small_fleet_has_a_year():
    counts = accounting_fleet.check(1, 1, quietly)
    assert counts["releases a home"] == 429


@pytest.mark.parametrize(
    ("name", "size"),
    [("composition-theorem-3-4", {}), ("composition-many-releases", {"most": 10})],
)
def test_the_experiments_reproduce_what_is_printed(name, size):
    found = all_experiments()[name].function(quietly, **size)
    rows = {row.quantity: row for row in found.rows}
    if name == "composition-theorem-3-4":
        assert rows["(max S)²/e²"].comparison() == "equal"
        assert rows["max D/e²"].comparison() == "equal"
    else:
        assert rows["10 releases, joint quilt"].ours == pytest.approx(4.298114, abs=5e-7)
        assert rows["10 releases, sweep"].ours == pytest.approx(2.675, abs=5e-4)
