"""Queries survive a trip through JSON; damaged ones are refused."""

import json
from fractions import Fraction

import pytest

from quiltwork import InvalidInputError, queries
from quiltwork.queries.numbers import Mean

EVERY_KIND = [
    queries.count("walk"),
    queries.count((1, "a")),
    queries.count(None),
    queries.count(1.0).on(2, 5),
    queries.histogram(),
    queries.histogram(states=["é", 1.5, None, (0, 1)]).on(3),
    queries.frequencies().on(1, 1),
    queries.transitions(),
    queries.most_common(states=[True, "a"]),
    queries.sum(-1, Fraction(1, 3), clip=True),
    Mean(lo=0.1, hi=0.3, bits=17),
    queries.custom(len, lipschitz=0.1, cells=["a", (1, 2)], version="2").on(4, 5),
]


@pytest.mark.parametrize("query", EVERY_KIND, ids=lambda q: q.kind)
def test_round_trip(query):
    text = json.dumps(queries.to_document(query), allow_nan=False)
    back = queries.from_document(json.loads(text))
    assert back == query
    assert repr(back.parameters()) == repr(query.parameters())


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"kind": "median"},
        {"kind": ["count"]},
        {"kind": "count"},
        {"kind": "count", "state": "a", "window": [1]},
        {"kind": "count", "state": "a", "window": "all"},
        {"kind": "count", "state": "a", "window": [0, 3]},
        {"kind": "count", "state": "a", "colour": "red"},
        {"kind": "histogram", "states": "ab"},
        {"kind": "mean", "lo": "0"},
        {"kind": "mean", "lo": "0", "hi": "1/0"},
        {"kind": "mean", "lo": "1", "hi": "0"},
        {"kind": "mean", "lo": "0", "hi": "1", "bits": -3},
        {"kind": "mean", "lo": "0", "hi": "1", "bits": "4"},
        {"kind": "custom", "name": "f", "lipschitz": "many"},
        {"kind": "custom", "lipschitz": "1"},
        {"kind": "custom", "name": 3, "lipschitz": "1"},
        {"kind": "mean", "lo": "0", "hi": "1", "clip": "no"},
    ],
)
def test_damaged_documents_are_refused(document):
    with pytest.raises(InvalidInputError):
        queries.from_document(document)
