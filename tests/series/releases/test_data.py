"""Data of every container are read alike, and everything wrong is found before spending."""

from fractions import Fraction

import numpy as np
import pytest

from quiltwork import Clusters, InvalidInputError, MarkovChain, QuiltworkError, queries, release
from quiltwork.budget import Ledger
from quiltwork.series.releases.data import adapt_query, encode_cells, public_states, read_source

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
WORDS = ["rest", "walk", "walk"]


def read(data, belief, query):
    members = (belief,)
    asked = adapt_query(query, members)
    return encode_cells(read_source(data, members, public_states(members, asked)), members, asked)


def codes(data, belief=CHAIN, query=None):
    found = read(data, belief, query or queries.histogram())
    return [sequence.tolist() for sequence in found.codes]


def pandas_series():
    import pandas

    return pandas.Series(WORDS, index=[5, 5, 1])


def categorical_series():
    import pandas

    return pandas.Series(pandas.Categorical(WORDS, categories=["walk", "rest"]))


def polars_series():
    import polars

    return polars.Series(WORDS)


@pytest.mark.parametrize(
    "data",
    [
        WORDS,
        tuple(WORDS),
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        pandas_series,
        categorical_series,
        polars_series,
    ],
    ids=["list", "tuple", "text array", "object array", "pandas", "categorical", "polars"],
)
def test_one_sequence_in_any_container(data):
    assert codes(data() if callable(data) else data) == [[0, 1, 1]]


def test_many_sequences_as_list_or_dict():
    assert codes([WORDS, np.array(["walk"])]) == [[0, 1, 1], [1]]
    assert codes({"ann": WORDS, "bob": pandas_series()}) == [[0, 1, 1]] * 2


def test_tuples_are_states_not_sequences():
    pairs = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=[(0, 0), (0, 1)])
    assert codes([(0, 0), (0, 1), (0, 1)], pairs) == [[0, 1, 1]]
    assert codes([[(0, 0)], [(0, 1), (0, 1)]], pairs) == [[0], [1, 1]]


def test_paths_are_read(tmp_path):
    path = tmp_path / "states.csv"
    path.write_text("state\nrest\nwalk\nwalk\n")
    assert codes(path) == codes(str(path)) == [[0, 1, 1]]
    assert codes([path, path]) == codes({"a": str(path), "b": path}) == [[0, 1, 1]] * 2


def test_numbers_in_files_match_numeric_states(tmp_path):
    path = tmp_path / "states.csv"
    path.write_text("level\n0\n1\n1\n")
    assert codes(path, MarkovChain([[0.9, 0.1], [0.4, 0.6]])) == [[0, 1, 1]]


def test_rows_of_clusters_can_be_anything_the_query_understands():
    homes = Clusters(["a", "a", "b"])
    assert codes([3, 3, 5], homes, queries.histogram(states=[5, 3])) == [[1, 1, 0]]
    found = read([0.5, 2.0, 0.5], homes, queries.mean(0, 2))
    assert found.alphabet == (0.5, 2.0)
    assert public_states((homes,), queries.count(9)) is None


HOSTILE = [
    ([], "empty"),
    ({}, "no sequence"),
    ([[]], "empty"),
    ([WORDS, []], "Subject 2"),
    (["rest", "run"], "Position 2 holds none"),
    ([WORDS[:2], ["rest", "run"]], "Subject 2: Position 2"),
    (["rest", None], "missing"),
    (["rest", float("nan")], "missing"),
    (np.array([0.0, np.nan]), "Position 1"),
    (["rest", float("inf")], "Position 2 holds none"),
    (["rest", ["walk"]], "single label"),
    ([{"rest": 1}, "rest"], "label"),
    (np.array([WORDS, WORDS]), "dimension"),
    (np.array("rest"), "sequence"),
    (3, "sequence"),
    (None, "sequence"),
    (["rest", "rést"], "Position 2 holds none"),
    (["REST", "rest"], "Position 1 holds none"),
    ("no-such-file.csv", "no-such-file"),
]


@pytest.mark.parametrize(("data", "words"), HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_hostile_data_are_refused_with_a_sentence_before_anything_is_spent(data, words, tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.create("d", CHAIN, 2, budget=1)
        with pytest.raises(QuiltworkError, match=words) as caught:
            release(data, queries.histogram(), CHAIN, ledger=ledger, dataset="d")
        assert ledger.history("d") == ()
    assert len(str(caught.value)) > 15


@pytest.mark.parametrize(
    ("data", "query", "words"),
    [
        ([1, 2], queries.histogram(states=[1, 2]), "3 rows, the data have 2"),
        ([[1, 2, 3], [1, 2, 3]], queries.count(1), "2 sequences"),
        ([1, 2, 3], queries.histogram(), "names no states"),
        ([1, 2, 3], queries.most_common(), "most_common\\(states="),
        ([1, 2, "x"], queries.mean(0, 5), "Row 3 has no numeric value"),
        ([1, 2, float("nan")], queries.mean(0, 5), "Position 3 holds a missing"),
        ([1, None, 2], queries.histogram(states=[1, 2]), "Position 2 holds a missing"),
    ],
)
def test_hostile_rows_of_clusters(data, query, words):
    with pytest.raises(InvalidInputError, match=words):
        release(data, query, Clusters(["a", "a", "b"]))


def test_labels_of_any_script_and_kind():
    states = ["休む", "naïve", "", "🚶", None, True, 2.5, ("a", 1)]
    belief = MarkovChain(np.full((8, 8), 1 / 8), states=states)
    answer = release(states * 3, queries.histogram(), belief)
    assert answer.cells == tuple(states)
    assert type(answer).from_json(answer.to_json()) == answer


ROWS = [3, 9.5, -4, 2, float("inf"), 2, 10**400]


@pytest.mark.parametrize("query", [queries.mean(0, 5), queries.sum(0, 5), queries.sum(0, 0.1)])
def test_rows_without_states_are_moved_between_the_bounds(query):
    """An error instead would find the largest row in fifty free questions."""
    answer = release(ROWS, query, Clusters(range(len(ROWS))), epsilon=99)
    moved = [min(max(row, 0), query.hi) for row in ROWS]
    truth = sum(map(Fraction, moved)) / (len(ROWS) if query.kind == "mean" else 1)
    low, high = answer.interval(1 - 1e-12)
    assert low <= truth <= high
    assert high - low < 1 * query.hi
    assert answer.query.clip


def test_rows_with_other_values_than_the_declared_are_in_no_cell():
    people, rows = Clusters(range(6)), ["a", "b", "c", "a", "a", "b"]
    near = {"beliefs": people, "epsilon": 99}
    counted = release(rows, queries.histogram(states=["b", "a"]), **near)
    assert counted.value.tolist() == [2, 3]
    assert counted.total is None
    shares = release(rows, queries.frequencies(states=["a"]), **near)
    assert shares.value.tolist() == [0.5]
    pairs = release(rows, queries.transitions(states=["a", "b"]), **near)
    assert pairs.value.tolist() == [[1, 2], [0, 0]]
    assert release(rows, queries.most_common(states=["c", "b"]), **near).value == "b"


def test_a_file_function_is_refused_without_states_too():
    lost = queries.from_document(queries.to_document(queries.custom(len, lipschitz=1)))
    with pytest.raises(QuiltworkError, match="was read from a file"):
        release([1, 2], lost, Clusters(["a", "b"]))
