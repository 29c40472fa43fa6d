from __future__ import annotations

import json

import pytest

from papers import Figure, Findings, Row, Sheet
from papers.result import result_from_dict, result_to_dict
from quiltwork.errors import InvalidInputError
from quiltwork.report import Line, LineChart

RESULT = Findings(
    "summary",
    (Row("scale", 12.934051, 13.0219, "1", "a start is known"), Row("entry", "2/3", "2/3")),
    (Figure("curve", LineChart("t", "d", "x", "y", (Line("s", ((1.0, 2.0),)),))),),
    (Sheet("values", ("a", "b"), ((1, 0.1), ("x", "y"))),),
)


def test_a_result_survives_a_round_trip_through_json():
    assert result_from_dict(json.loads(json.dumps(result_to_dict(RESULT)))) == RESULT


@pytest.mark.parametrize("data", [{}, {"summary": "", "rows": [{"x": 1}]}])
def test_what_is_no_result_is_refused(data):
    with pytest.raises(InvalidInputError, match="fresh"):
        result_from_dict(data)


@pytest.mark.parametrize(
    ("ours", "published", "words"),
    [
        (1, None, ""),
        (2, 2, "equal"),
        ("1/3", "1/3", "equal"),
        ("1/3", "1/4", "differs"),
        (101.0, 100.0, "+1 %"),
        (1.0, 0, "differs"),
    ],
)
def test_the_comparison_is_a_word_or_a_relative_difference(ours, published, words):
    assert Row("q", ours, published).comparison() == words
