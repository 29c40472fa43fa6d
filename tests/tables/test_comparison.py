"""Candidates side by side: the same numbers as each table's own."""

from __future__ import annotations

import pytest

import quiltwork as qw
from papers.examples.hospitals import hospitals
from quiltwork.errors import InvalidInputError
from quiltwork.tables import compare, query_error


def test_figures_are_those_of_each_table():
    table = hospitals()
    made = {
        f"k={k}, m={m}": qw.anonymize(table, qw.KAnonymity(k), m=m) for k in (2, 3) for m in (0, 1)
    }
    found = compare(table, made, queries=200)
    assert [one.name for one in found.candidates] == list(made)
    for one, publication in zip(found.candidates, made.values(), strict=True):
        sizes = [group.size for group in publication.groups]
        assert one.highest == 1 / min(sizes)
        assert one.recognised == pytest.approx(len(sizes) / sum(sizes))
        assert one.gcp == publication.summary()["loss"]["gcp"]
        assert one.error == query_error(table, publication, queries=200)
        right = sum(
            max(part["disease"].value_counts())
            for _, part in publication.frame.to_pandas().groupby(
                ["age", "zip"], sort=False, observed=True
            )
        )
        assert one.guessed == pytest.approx(right / sum(sizes))
    assert len(found.to_frame()) == 4
    assert len(found.chart().lines) == 4
    joined = type(found)(found.candidates * 2).chart("guessed").lines
    assert [line.name for line in joined] == ["k=2 to k=3, m=0", "k=2 to k=3, m=1"]
    assert "query error" in found.explain()


@pytest.mark.parametrize("candidates", [{}, [], {"a": None}])
def test_what_is_no_candidate_is_refused(candidates):
    with pytest.raises(InvalidInputError):
        compare(hospitals(), candidates)
