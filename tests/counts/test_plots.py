from __future__ import annotations

import numpy as np
import pytest

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.plots import heat_map
from quiltwork.errors import InvalidInputError
from quiltwork.report.plots import write_figure
from quiltwork.reproduce.examples.geometric import figure_2, figure_2_consumer

G = GeometricMechanism(5, alpha=0.5)


def test_the_heat_map_shows_both_mechanisms(tmp_path):
    figure = heat_map(G, G.remap(figure_2_consumer()))
    images = [axis.get_images()[0].get_array() for axis in figure.axes[:2]]
    assert np.allclose(images[0], G.matrix())
    assert np.allclose(images[1], np.array(figure_2(), dtype=float))
    write_figure(figure, str(tmp_path / "heat.png"))
    assert (tmp_path / "heat.png").stat().st_size > 1000
    assert len(heat_map(G).axes) == 2


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidInputError, match="400"):
        heat_map(GeometricMechanism(1000, alpha=0.5))
    with pytest.raises(InvalidInputError, match="n = 3"):
        heat_map(G, GeometricMechanism(3, alpha=0.5).remap(Consumer("uniform")))


@pytest.mark.parametrize("n", [1, 5, 20, 57, 400])
def test_counts_and_answers_are_marked_by_whole_numbers(n):
    figure = heat_map(GeometricMechanism(n, alpha=0.6))
    for ticks in (figure.axes[0].get_xticks(), figure.axes[0].get_yticks()):
        assert len(ticks) > 1
        assert all(tick == int(tick) for tick in ticks)


def test_a_faint_diagonal_is_seen_beside_a_certain_answer():
    """Linear colours would put it within a tenth of the background."""
    mechanism = GeometricMechanism(200, epsilon=0.3)
    certain = mechanism.remap(Consumer([0.0] * 26 + [1.0] + [0.0] * 174))
    image = heat_map(mechanism, certain).axes[0].get_images()[0]
    background, diagonal = image.norm(0.0), image.norm(float(mechanism.matrix()[100, 100]))
    assert diagonal - background > 0.3
