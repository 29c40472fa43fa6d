"""Fingerprints: equal sequences and only they."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import ChainBox, Clusters, InvalidInputError, MarkovChain
from quiltwork.beliefs import fingerprint
from tests.strategies import LABELS


def test_the_container_does_not_matter():
    words = ["b", "a", "b"]
    prints = {fingerprint(kind(words)) for kind in (list, tuple, np.array, pd.Series, pl.Series)}
    assert len(prints) == 1
    numbers = [3, 1, 3]
    kinds = (list, np.array, lambda x: np.array(x, dtype=float), pd.Series, pl.Series)
    assert len({fingerprint(kind(numbers)) for kind in kinds}) == 1
    assert fingerprint([1, 0, 1]) == fingerprint([True, False, True]) == fingerprint([1.0, 0, 1])


short = st.lists(LABELS, min_size=1, max_size=4)


@given(short, short)
def test_fingerprints_agree_exactly_when_sequences_do(left, right):
    assert (fingerprint(left) == fingerprint(right)) == (left == right)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 3))
def test_one_changed_point_changes_it(values, position, value):
    changed = list(values)
    changed[position % len(values)] = value
    assert (fingerprint(changed) == fingerprint(values)) == (changed == values)


def test_the_definition_is_what_is_documented():
    text = b"quiltwork/sequence/1\n3 2\ns1:b;s1:a;" + bytes([0, 1, 0])
    assert fingerprint(["b", "a", "b"]) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("distinct", [256, 257, 65536, 65537])
def test_many_distinct_values(distinct):
    values = np.arange(distinct)
    assert fingerprint(values) == fingerprint(values.tolist())
    assert fingerprint(values) != fingerprint(values[::-1])


def test_labels_cannot_be_confused_with_their_writing():
    assert fingerprint(["a;s1:b"]) != fingerprint(["a", "b"])
    assert len({fingerprint([x]) for x in [1, "1", None, (1,), ((1,),), "None", 1.5, "i1;"]}) == 8


def test_missing_values_are_refused():
    with pytest.raises(InvalidInputError, match="Position 2 holds a missing value"):
        fingerprint([0.0, float("nan")])


@pytest.mark.parametrize("kind", [MarkovChain, ChainBox])
def test_fitted_beliefs_recognise_each_of_their_sequences(kind):
    ann, bob, eve = [0, 1, 1, 0, 1], [1, 1, 0], [0, 0, 1]
    belief = kind.fit({"ann": ann, "bob": bob})
    assert belief.fitted_on(np.array(ann, dtype=float))
    assert belief.fitted_on([eve, pd.Series(bob)])
    assert belief.fitted_on({"x": ann})
    assert not belief.fitted_on(eve)
    assert not belief.fitted_on([*ann, 0])
    assert kind.from_json(belief.to_json()).fitted_on(ann)


def test_beliefs_that_were_not_fitted_recognise_nothing():
    assert not MarkovChain([[0.5, 0.5], [0.5, 0.5]]).fitted_on([0, 1])
    assert not Clusters(["a", "b"]).fitted_on([0, 1])
