"""The quilt mechanism's experiments: printed numbers by quilts, the sweep beside them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import quiltwork as qw
from quiltwork.reproduce.experiments import time_series


def nothing(done: int, total: int) -> None:
    """No progress shown."""


def test_the_printed_scale_is_that_of_quilts_and_the_sweep_stands_beside_it():
    found = {row.quantity: row for row in time_series.worked_examples.function(nothing).rows}
    printed = found["scale, first chain, any start"]
    assert printed.ours == pytest.approx(printed.published, abs=5e-5)
    swept = found["scale, first chain, any start, by the sweep"]
    assert swept.ours == pytest.approx(3.48, abs=0.01)
    assert found["scale, first chain, start known"].ours == pytest.approx(12.934, abs=5e-4)
    together = "ten releases of ε = 1, together"
    assert found[together].ours == pytest.approx(4.298, abs=5e-4)
    assert found[f"{together}, by the sweep"].ours == pytest.approx(2.675, abs=5e-4)


@pytest.mark.parametrize("method", ["entry", "sweep", "exact", "group"])
def test_errors_are_those_that_a_preview_foresees(method):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.warns(qw.QuiltworkWarning) if method == "entry" else nullcontext():
        foreseen = qw.preview(qw.queries.histogram(), chain, length=100, method=method)
    error = time_series.Job([chain], 100, 1, 2).error(1.0, method)
    assert error == pytest.approx(foreseen.expected_total_error / 100, rel=1e-6)
