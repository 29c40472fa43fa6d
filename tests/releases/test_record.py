"""The record reads well: as a dict, in words, and where there was nothing to hide."""

import math

import pytest

from quiltwork import queries


def test_entries_by_cell(make_release):
    assert make_release().as_dict() == {"a": 3, "b": -2, "c": 9}
    assert make_release(queries.count("a"), noisy=(7,)).as_dict() == {"a": 7}
    pairs = make_release(queries.transitions(), noisy=(1, 2, 3, 4), states=("a", "b"))
    assert pairs.as_dict()["b", "a"] == 3
    label = make_release(queries.most_common(), noisy=(1,), states=("a", "b"))
    assert label.as_dict() == {"value": "b"}


def test_no_noise_means_no_level_for_arbitrary_sequences(make_release):
    exact = make_release(scale=0)
    assert exact.exact_dp_epsilon is None
    assert math.isinf(exact.dp_epsilon)
    single = make_release(queries.transitions(), noisy=(0,), points=1, states=("a",), scale=0)
    assert single.dp_epsilon == 0
    assert "whatever the belief" not in exact.explain()


def test_equal_records_hash_alike(make_release):
    assert len({make_release(), make_release(), make_release(noisy=(1, 2, 3))}) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "two-sided geometric of scale 2.5"),
        ({}, "X_3"),
        ({}, "{X_1, X_7}"),
        ({"query": queries.count("a").on(2, 5), "noisy": (7,)}, "time points 2..5: 7"),
        ({"query": queries.most_common(), "noisy": (1,), "states": ("a", "b")}, "exponential"),
        ({"scale": 0}, "Noise: none"),
    ],
)
def test_the_explanation_says(arguments, words, make_release):
    assert words in make_release(**arguments).explain()
