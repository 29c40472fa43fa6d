"""Levels of counts on the command line."""

from __future__ import annotations

import math

import pytest


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,town\nf,Ghent\nm,Ghent\nm,Bruges\n", encoding="utf-8")
    return str(path)


def test_one_alpha_for_all_cells(cli, people):
    ran = cli(
        *("count", people, "--by", "sex", "--categories", "f,m", "--alpha", "1/2"),
        *("--adjacency", "replace", "--json"),
    )
    table = ran.document["table"]
    assert table["alphas"] == ["1/2", "1/2"]
    assert table["epsilon"] == pytest.approx(2 * math.log(2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1", "--alpha", "0.5"], "once"),
        (["--alpha", "0"], "publish"),
        ([], "privacy level"),
    ],
)
def test_levels_that_make_no_sense_are_refused(cli, people, arguments, words):
    ran = cli("count", people, "--by", "sex", "--categories", "f,m", *arguments)
    assert ran.code in (1, 2)
    assert words in ran.err
