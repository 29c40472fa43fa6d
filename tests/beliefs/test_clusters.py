"""Clusters: who may depend on whom."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import Clusters, InvalidInputError
from tests.strategies import LABELS

names = LABELS.filter(lambda label: label is not None)


@given(st.lists(names, min_size=1, max_size=30))
def test_members_are_the_rows_with_equal_labels(labels):
    clusters = Clusters(labels)
    assert clusters.labels == tuple(labels)
    assert clusters.length == len(labels)
    groups = {}
    for row, label in enumerate(labels, start=1):
        groups.setdefault(label, []).append(row)
    assert [rows.tolist() for rows in clusters.members] == list(groups.values())
    assert clusters.names == tuple(groups)
    assert clusters.sizes.tolist() == [len(rows) for rows in groups.values()]
    assert clusters.largest == max(map(len, groups.values()))


def test_any_container_gives_the_same_clusters():
    labels = [3, 1, 3, 2]
    for container in (np.array, pd.Series, tuple, lambda x: np.array(x, dtype=float)):
        assert Clusters(container(labels)) == Clusters(labels)
    assert Clusters(range(100)).largest == 1


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([], "empty"),
        (["a", None], r"Row 2 has no cluster \(None\)"),
        ([1.0, float("nan")], "Position 2 holds a missing value"),
        (["a", ["b"]], "Position 2"),
        ("aab", "list, array or series"),
        (5, "list, array or series"),
    ],
)
def test_rows_without_a_proper_label_are_refused(labels, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Clusters(labels)


def test_value_and_immutability():
    clusters = Clusters(["a", "b", "a"])
    twin = pickle.loads(pickle.dumps(clusters))  # noqa: S301
    assert twin == clusters == Clusters(["a", "b", "a"])
    assert hash(twin) == hash(clusters)
    assert clusters != Clusters(["a", "b", "b"])
    assert clusters != Clusters(["x", "b", "x"])
    assert repr(clusters) == "Clusters(3 rows in 2 clusters; largest=2)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        clusters.names = ()
    for array in (clusters.codes, clusters.sizes, clusters.members[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_a_million_rows_are_gathered_in_one_pass():
    """Looking through the rows once per cluster would end at the time limit of all tests."""
    clusters = Clusters(np.arange(1_000_000) // 3)
    assert clusters.largest == 3
    assert clusters.members[333_332].tolist() == [999_997, 999_998, 999_999]
