from __future__ import annotations

import pytest

from papers.experiments import consumers


def quiet(done: int, total: int) -> None:
    pass


@pytest.mark.parametrize(
    "one", [consumers.figure_3, consumers.laplace, consumers.no_common_optimum]
)
def test_printed_values_are_reproduced(one):
    result = one.function(quiet, **one.quick)
    compared = [row for row in result.rows if row.published is not None]
    assert compared
    assert all(
        row.comparison() == "equal" or row.ours == pytest.approx(row.published) for row in compared
    )


def test_both_consumers_of_theorem_6_3_lose_together():
    rows = {row.quantity: row.ours for row in consumers.no_common_optimum.function(quiet).rows}
    assert rows["loss of Figure 4"] == "77/240"
    together = rows["least loss of both together, certified below"]
    assert together > 2 * 77 / 240 + 0.0249


def test_every_consumer_gains_about_what_was_expected():
    """A quarter is 9 standard deviations of the least certain mean."""
    result = consumers.three_consumers.function(quiet, tables=120)
    saved = [row.ours for row in result.rows if row.quantity.endswith("saved")]
    assert len(saved) == 3
    assert min(saved) > 10
    for row in result.rows:
        if row.note:
            assert row.ours == pytest.approx(float(row.note.split()[-1]), rel=0.25)
