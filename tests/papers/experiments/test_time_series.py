"""The quilt mechanism's experiments: printed numbers by quilts, the sweep beside them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import quiltwork as qw
from evidence import sweep_program as program
from papers.experiments import time_series


def nothing(done: int, total: int) -> None:
    """No progress shown."""


def test_the_printed_scale_is_that_of_quilts_and_the_sweep_stands_beside_it():
    found = {row.quantity: row for row in time_series.worked_examples.function(nothing).rows}
    printed = found["scale, first chain, start known"].published
    assert found["scale, first chain, any start"].ours == pytest.approx(printed, abs=5e-5)
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


def test_with_less_noise_than_the_floor_some_mechanism_tells_more():
    """Nine points; for two states the mechanism found is the worst of all."""
    two = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    level = 1 / time_series.noise_floor(two, 9, 1, 1.0)
    told = program.two_state_suprema(two.stationary, [two.transition] * 8, [level] * 9)
    assert told[4] == pytest.approx(1.0, rel=1e-5)
    three = qw.MarkovChain([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    level = 1 / time_series.noise_floor(three, 5, 1, 1.0)
    law = program.chain_law(three.stationary, [three.transition] * 4)
    assert 1 <= program.chain_supremum(law, [level] * 5, [2]) * (1 + 1e-5) < 1.02


def test_the_sweep_needs_hardly_more_noise_than_the_floor(monkeypatch, tmp_path):
    monkeypatch.setenv("QUILTWORK_SHARED", str(tmp_path))  # the example alone
    found = time_series.sweep_noise.function(nothing)
    assert len(found.sheets[0].rows) == 5
    for _, _, floor, swept, exact, _, gain in found.sheets[0].rows:
        assert floor == pytest.approx(swept, rel=1e-5)
        assert gain == pytest.approx(exact / swept, abs=0.005)
