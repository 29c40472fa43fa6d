"""Releases survive a trip through JSON; damaged documents are refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

from quiltwork import Clusters, InvalidInputError, MarkovChain, queries
from quiltwork.beliefs import Grid
from quiltwork.beliefs.sets import digest
from quiltwork.beliefs.sources import Sources
from quiltwork.queries.numbers import Mean
from quiltwork.series import Release, nonnegative


@pytest.fixture(
    params=[
        lambda make: make(),
        lambda make: make(queries.frequencies().on(2, 5)),
        lambda make: make(queries.count((1, "é")), noisy=(-4,)),
        lambda make: make(queries.transitions(), noisy=(1, 2, 3, 4), states=(0.5, None)),
        lambda make: make(queries.most_common(), noisy=(1,), states=("a", (1, 2))),
        lambda make: make(Mean(lo=-1, hi=2, bits=50), noisy=(2**60 + 1,)),
        lambda make: make(queries.custom(len, lipschitz=1, cells=["u", "v"]), noisy=(1, -(2**70))),
        lambda make: make(scale=0),
        lambda make: nonnegative(make()),
    ],
    name="release",
)
def release_fixture(request, make_release):
    return request.param(make_release)


def test_round_trip(release):
    back = Release.from_json(release.to_json())
    assert back == release
    assert back.to_json() == release.to_json()
    assert back.noisy == release.noisy
    assert np.array_equal(back.value, release.value)
    assert type(back.value) is type(release.value)
    assert getattr(back.value, "dtype", None) == getattr(release.value, "dtype", None)
    assert back.noise_scale == release.noise_scale
    assert back.processing == release.processing


def test_the_document_names_its_schema_and_keeps_exact_numbers(make_release):
    document = json.loads(make_release().to_json())
    assert (document["schema"], document["version"]) == ("quiltwork/release", 1)
    assert document["exact_epsilon"] == "1/10"
    assert document["noise_scale"] == "5/2"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"schema": "quiltwork/other"},
        {"noise_scale": 2.5},
        {"noise_scale": "1/0"},
        {"exact_epsilon": None},
        {"noisy": ["one"]},
        {"noisy": 3},
        {"cells": "abc"},
        {"value": "secret"},
        {"value": ["a", "b"]},
        {"value": [[1, 2], [3]]},
        {"value": True},
        {"query": {"kind": "median"}},
        {"query": None},
        {"quilt": 4},
        {"points": None, "query": 3},
    ],
)
def test_damaged_documents_are_refused(change, make_release):
    document = json.loads(make_release().to_json()) | change
    with pytest.raises(InvalidInputError):
        Release.from_json(json.dumps(document))


@pytest.mark.parametrize("missing", ["value", "noisy", "query", "unit", "beliefs", "length"])
def test_missing_fields_are_named(missing, make_release):
    document = json.loads(make_release().to_json())
    del document[missing]
    with pytest.raises(InvalidInputError, match=missing):
        Release.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", b"\xff\xfe"])
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidInputError):
        Release.from_json(text)


def test_the_digest_tells_beliefs_apart_but_not_by_what_they_were_fitted_on():
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    chain = MarkovChain(matrix)
    marked = MarkovChain(matrix, sources=Sources(frozenset(["ab:cd"])))
    other = MarkovChain(matrix, initial="any")
    hourly = MarkovChain(matrix, grid=Grid("1h"))
    assert marked.to_json() != chain.to_json()
    assert digest((chain,)) == digest((marked,))
    digests = {digest(members) for members in [(chain,), (other,), (chain, other), (hourly,)]}
    assert len(digests) == 4
    assert digest((Clusters(["a", "b"]),)) != digest((Clusters(["a", "a"]),))


def test_values_cannot_be_changed_in_place(make_release):
    with pytest.raises(ValueError, match="read-only"):
        make_release().value[0] = 1
    assert make_release(scale=Fraction(1, 3)) != make_release()
