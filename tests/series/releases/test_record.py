"""The record reads well: as a dict, in words, and where there was nothing to hide."""

import json
import math
from fractions import Fraction

import pytest

import quiltwork as qw
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
        ({}, "the worst is time point 3; its best quilt is the time points 1, 7"),
        ({"query": queries.count("a").on(2, 5), "noisy": (7,)}, "time points 2 to 5. 7."),
        ({"query": queries.most_common(), "noisy": (1,), "states": ("a", "b")}, "exponential"),
        ({"scale": 0}, "Noise: none"),
    ],
)
def test_the_explanation_says(arguments, words, make_release):
    assert words in make_release(**arguments).explain()


def test_entry_dp_on_a_chain_says_what_it_protects_and_not_what_was_asked():
    """The exact leakage of this count, to 60 digits, is 3.29824935610830369…

    For two states the sweep is exact, but for 1e-9 of upward rounding.
    """
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])
    query, data = queries.count("walk"), ["rest", "walk"] * 50
    with pytest.warns(qw.QuiltworkWarning, match="may leak up to"):
        answer = qw.release(data, query, chain, epsilon=1, method="entry")
    truth = qw.audit.leakage(chain, 100, [(query, answer.scale)], noise="geometric")
    assert truth == pytest.approx(3.298249356108304, rel=1e-11)
    assert 3.298249356108304 < answer.epsilon < 3.29824936
    assert answer.epsilon == qw.influence_curve(chain, 100).epsilon(1)
    assert answer.dp_epsilon == 1
    assert f"Protects every time point with ε = {answer.epsilon:g}, against" in answer.explain()
    assert "ε = 1 " not in answer.explain()
    assert "as if no time point said anything" in answer.explain()
    document = json.loads(answer.to_json())
    assert Fraction(document["exact_epsilon"]) == answer.exact_epsilon
    assert document["influence"] > 0
    with pytest.warns(qw.QuiltworkWarning):
        foreseen = qw.preview(query, chain, length=100, epsilon=1, method="entry")
    assert foreseen.epsilon == answer.epsilon


def test_entry_dp_on_independent_time_points_keeps_its_level():
    coin = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    answer = qw.release([0, 1] * 5, queries.count(1), coin, epsilon=0.1, method="entry")
    assert answer.exact_epsilon == Fraction(1, 10)
