from __future__ import annotations

import numpy as np
import pytest

from papers.examples.geometric import figure_2, figure_2_consumer
from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.errors import UnsupportedError
from quiltwork.report.figures import write_figure

G = GeometricMechanism(5, alpha=0.5)


def test_the_heat_maps_show_both_mechanisms(tmp_path):
    charts = G.remap(figure_2_consumer()).charts()
    shown = [np.square(chart.values) for chart in charts]
    assert np.allclose(shown[0], G.matrix())
    assert np.allclose(shown[1], np.array(figure_2(), dtype=float))
    assert charts[1].texts[0] == ("0.67", "0", "0.25", "0.042", "0.021", "0.021")
    write_figure(str(tmp_path / "heat.png"), *charts)
    assert (tmp_path / "heat.png").stat().st_size > 1000


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(UnsupportedError, match="400"):
        GeometricMechanism(1000, alpha=0.5).remap(Consumer()).plot()


@pytest.mark.parametrize("n", [1, 5, 20, 57, 400])
def test_counts_and_answers_are_marked_by_whole_numbers(n):
    axes = GeometricMechanism(n, alpha=0.6).remap(Consumer()).plot()
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert 1 < len(ticks) <= 12
        assert all(0 <= int(tick.get_text()) <= n for tick in ticks)


def test_a_faint_diagonal_is_seen_beside_a_certain_answer():
    """Linear shades would put it within a tenth of the background."""
    mechanism = GeometricMechanism(200, epsilon=0.3)
    chart, _ = mechanism.remap(Consumer()).charts()
    assert mechanism.matrix()[100, 100] < 0.2
    assert chart.values[100][100] > 0.3
