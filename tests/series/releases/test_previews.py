"""A preview says what the release will say, without data."""

from collections import Counter

import pytest

from quiltwork import Clusters, InvalidInputError, MarkovChain, calibrate, queries, release
from quiltwork.series import preview

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
QUERIES = [
    queries.count(1),
    queries.histogram().on(5, 20),
    queries.frequencies(),
    queries.transitions(),
    queries.mean(0, 1),
    queries.sum(-0.3, 1),
    queries.custom(len, lipschitz=3),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.kind)
@pytest.mark.parametrize("subjects", [1, 3])
def test_previews_agree_with_releases(query, subjects):
    seen = preview(query, CHAIN, length=40, epsilon=0.7, confidence=0.9, subjects=subjects)
    data = [[0, 1] * 20] * subjects if subjects > 1 else [0, 1] * 20
    answer = release(data, query, CHAIN, epsilon=0.7)
    assert seen.scale == answer.scale
    assert seen.expected_error == answer.expected_error
    assert seen.cells == len(answer.cells)
    for simultaneous, width in ((False, seen.half_width), (True, seen.simultaneous_half_width)):
        low, high = answer.interval(0.9, simultaneous)
        assert (high - low) / 2 == pytest.approx(width)
    assert seen.expected_total_error == pytest.approx(seen.cells * seen.expected_error)
    assert "90 % intervals" in seen.explain()


def test_the_preview_of_a_label_is_its_shortfall():
    seen = preview(queries.most_common(), CHAIN, length=40)
    answer = release([0, 1] * 20, queries.most_common(), CHAIN)
    assert seen.half_width == answer.shortfall()
    assert seen.expected_error == answer.expected_error
    assert "of the largest" in seen.explain()


def test_beliefs_about_rows_bring_their_length():
    homes = Clusters(["a", "a", "b"])
    seen = preview(queries.count(1), homes, epsilon=0.5)
    assert seen.scale == 4
    assert preview(queries.count(1), homes, length=3, epsilon=0.5) == seen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": queries.count(1), "beliefs": CHAIN}, "length is missing"),
        ({"query": queries.count(1), "beliefs": CHAIN, "length": 0}, "length"),
        ({"query": queries.count(7), "beliefs": CHAIN, "length": 5}, "7"),
        ({"query": queries.count(1).on(3, 9), "beliefs": CHAIN, "length": 5}, "does not fit"),
        ({"query": queries.count(1), "beliefs": CHAIN, "length": 5, "epsilon": True}, "epsilon"),
        ({"query": queries.count(1), "beliefs": CHAIN, "length": 5, "confidence": 1}, "confid"),
        ({"query": queries.count(1), "beliefs": CHAIN, "length": 5, "subjects": 0}, "subjects"),
        ({"query": queries.count(1), "beliefs": Clusters([1, 2]), "length": 5}, "2 rows"),
        ({"query": queries.histogram(), "beliefs": Clusters([1, 2])}, "names no states"),
        ({"query": "histogram", "beliefs": CHAIN, "length": 5}, "qw.queries"),
    ],
)
def test_bad_previews_are_refused(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        preview(**arguments)


@pytest.mark.parametrize("method", [None, "exact", "optimal-scale"])
def test_equal_subjects_are_counted_not_listed(method):
    """Billions of them take no longer than one, and a Counter says the same as a list."""
    asked = queries.mean(0, 1)
    one, many = (
        preview(asked, CHAIN, length=9, method=method, subjects=n).scale for n in (1, 10**10)
    )
    assert many * 10**10 == pytest.approx(one, rel=1e-3)
    listed, counted = (
        calibrate(CHAIN, lengths, 1, method, asked)
        for lengths in ([5, 9, 5, 7], Counter({5: 2, 9: 1, 7: 1}))
    )
    assert listed.exact_scale == counted.exact_scale
