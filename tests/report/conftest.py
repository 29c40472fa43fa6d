from __future__ import annotations

import pytest

from quiltwork.report import BarChart, Estimate, IntervalChart, Line, LineChart, MatrixChart

NASTY = "<script>alert('x')</script> & \"quotes\""

INTERVALS = IntervalChart(
    NASTY,
    NASTY,
    NASTY,
    (Estimate(NASTY, 5.0, 1.0, 9.0, truth=6.0), Estimate("bare", 3.0)),
)
LINES = LineChart(
    NASTY,
    NASTY,
    NASTY,
    NASTY,
    (
        Line(NASTY, ((1.0, 2.0), (10.0, 3.0)), spread=((1.0, 4.0), (2.0, 6.0))),
        Line("dots", ((2.0, 5.0),), marks=True),
    ),
    log_x=True,
)
MATRIX = MatrixChart(
    NASTY, NASTY, NASTY, NASTY, ("0", NASTY), ("0", "1"), ((0.0, 1.0), (0.5, 0.5)),
    (("0", "1"), (NASTY, "1/2")),
)  # fmt: skip

BARS = BarChart(NASTY, NASTY, NASTY, ((NASTY, 0.25), ("none", 0.0), ("below", -0.5)))


@pytest.fixture(
    params=[INTERVALS, LINES, MATRIX, BARS], ids=["intervals", "lines", "matrix", "bars"]
)
def chart(request):
    """A chart of each kind, with text that would break a careless page."""
    return request.param


@pytest.fixture
def nasty():
    return NASTY
