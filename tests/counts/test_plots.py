from __future__ import annotations

import numpy as np
import pytest

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.examples import figure_2, figure_2_consumer
from quiltwork.counts.plots import heat_map
from quiltwork.errors import InvalidInputError
from quiltwork.report.plots import write_figure

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
