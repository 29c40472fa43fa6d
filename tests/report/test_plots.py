from __future__ import annotations

import pytest

from quiltwork.errors import UnsupportedError
from quiltwork.report import plots

PNG = b"\x89PNG\r\n\x1a\n"


def test_every_chart_becomes_a_png(chart):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    assert plots.png(chart).startswith(PNG)


def test_a_matplotlib_figure_is_embedded_without_fetching_anything(chart, nasty):
    pytest.importorskip("matplotlib", reason="the plot extra is not installed")
    markup = plots.embedded(plots.chart_figure(chart), nasty).text
    assert 'src="data:image/svg+xml;base64,' in markup
    assert "<script" not in markup
    assert markup == plots.embedded(plots.chart_figure(chart), nasty).text


def test_without_the_extra_it_says_what_to_install(chart, monkeypatch):
    monkeypatch.setattr(plots, "available", lambda: False)
    with pytest.raises(UnsupportedError, match="plot"):
        plots.png(chart)
