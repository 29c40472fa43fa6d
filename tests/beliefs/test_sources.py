"""Where a fit had its data: what is noticed, what is not, and that nothing of them is written."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quiltwork import ChainBox, Clusters, MarkovChain
from quiltwork.beliefs import belief_from_json
from quiltwork.beliefs.sources import Sources
from quiltwork.series import read_series

KINDS = [MarkovChain, ChainBox]
DAY = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1])


def csv(path, people, header="person,state"):
    rows = [f"{name},{state}" for name, states in people.items() for state in states]
    path.write_text("\n".join([header, *rows]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_its_slices_and_what_they_overlap_are_noticed(kind):
    x = DAY.copy()
    belief = kind.fit(x)
    for piece in (x, x[:-1], x[3:], x[::-1], x[::3], x[2:3], pd.Series(x, copy=False)):
        assert belief.fitted_on(piece)
    half = kind.fit(x[:5])
    assert half.fitted_on(x)
    assert half.fitted_on(x[4:])
    assert not half.fitted_on(x[5:])
    assert half.fitted_on([DAY, x]) and half.fitted_on({"ann": x})  # noqa: PT018


@pytest.mark.parametrize("kind", KINDS)
def test_equal_data_of_other_people_are_not(kind):
    x = DAY.copy()
    belief = kind.fit({"ann": x, "bob": [0, 1, 1]})
    for other in (x.copy(), x.tolist(), [0, 1, 1], [0, 1], pd.Series(x.copy())):
        assert not belief.fitted_on(other)


def test_columns_and_rows_of_one_table_are_different_people():
    table = np.tile(DAY, (4, 1))
    for people in (table, table.T.copy().T):
        belief = MarkovChain.fit([people[0], people[2]])
        assert [belief.fitted_on(row) for row in people] == [True, False, True, False]


def test_lists_and_series_of_text_are_noticed_as_themselves_only():
    for thing in (["a", "b", "a"], ("a", "b", "a"), pd.Series(list("aba")), pl.Series(list("aba"))):
        belief = MarkovChain.fit(thing)
        assert belief.fitted_on(thing)
        assert not belief.fitted_on(copy.deepcopy(list(thing)))


def test_a_belief_holds_no_array_alive_and_pickles_no_trace():
    x = DAY.copy()
    belief = MarkovChain.fit(x)
    for again in (pickle.loads(pickle.dumps(belief)), copy.deepcopy(belief)):  # noqa: S301
        assert again == belief
        assert again.sources == belief.sources == Sources()
        assert not again.fitted_on(x)
    assert MarkovChain.fit(["a", "b"]).to_json() == MarkovChain.fit(["a", "b"]).to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_recognised_by_its_path_in_another_process(kind, tmp_path, monkeypatch):
    path = csv(tmp_path / "people.csv", {"ann": DAY, "bob": DAY[:4]})
    belief = kind.fit(read_series(path, "state", subject="person").data)
    again = belief_from_json(belief.to_json())  # as another process has it
    (tmp_path / "link.csv").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    for same in (path, "people.csv", "./people.csv", "link.csv"):
        assert again.fitted_on(same)
        assert again.fitted_on(read_series(same, "state", subject="person").data)
    assert again.fitted_on(read_series(path, "state", subject="person").data["bob"][1:])
    other = csv(tmp_path / "others.csv", {"ann": DAY, "bob": DAY[:4]})  # the same content
    assert not again.fitted_on(other)
    assert not again.fitted_on(read_series(other, "state", subject="person").data)


def test_a_file_of_which_a_part_was_fitted_on_may_be_used_for_the_others(tmp_path):
    path = csv(tmp_path / "people.csv", dict.fromkeys("abcd", DAY))
    people = read_series(path, "state", subject="person").data
    belief = MarkovChain.fit([people["a"], people["b"]])
    assert [belief.fitted_on(people[name]) for name in "abcd"] == [True, True, False, False]
    assert json.loads(belief.to_json())["sources"] == []
    assert not belief_from_json(belief.to_json()).fitted_on(people)


def test_nothing_in_a_belief_depends_on_the_data_but_its_matrix(tmp_path):
    """Every series of 11 steps, in a file of one name: one document for each matrix."""
    path, documents = tmp_path / "series.csv", {}
    for tail in product((0, 1), repeat=10):
        series = (0, *tail)
        chain = MarkovChain.fit(list(series), states=[0, 1])
        documents.setdefault(chain.transition.tobytes(), set()).add(chain.to_json())
    assert max(len(found) for found in documents.values()) == 1
    assert len(documents) < 2**10 / 8
    written = set()
    for series in ((0, 1, 1, 0, 0, 1), (0, 0, 1, 1, 0, 1)):  # the same transitions
        path.write_text("state\n" + "\n".join(map(str, series)))
        written.add(MarkovChain.fit(read_series(path, "state").data).to_json())
    assert len(written) == 1
    assert str(tmp_path) not in written.pop()


def test_digests_of_data_in_old_files_are_dropped():
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    old = json.loads(chain.to_json()) | {"fingerprints": ["ab" * 32]}
    again = belief_from_json(json.dumps(old))
    assert again == chain
    assert "ab" * 32 not in again.to_json()


def test_beliefs_that_were_not_fitted_notice_nothing():
    assert not MarkovChain([[0.5, 0.5], [0.5, 0.5]]).fitted_on([0, 1])
    assert not Clusters(["a", "b"]).fitted_on([0, 1])


def test_the_reversed_chain_has_the_same_sources():
    x = DAY.copy()
    assert MarkovChain.fit(x).reversed().fitted_on(x[1:])
