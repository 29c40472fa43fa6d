from __future__ import annotations

import json

import pytest

from papers.result import chart_from_dict, chart_to_dict
from quiltwork.errors import InvalidInputError


def test_charts_survive_a_round_trip_through_json(chart):
    assert chart_from_dict(json.loads(json.dumps(chart_to_dict(chart)))) == chart


@pytest.mark.parametrize("data", [{}, {"kind": "pie"}, {"kind": "lines", "title": "x"}])
def test_what_is_no_chart_is_refused(data):
    with pytest.raises(InvalidInputError, match="Not a chart"):
        chart_from_dict(data)
