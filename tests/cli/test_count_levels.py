"""Levels of single cells on the command line."""

from __future__ import annotations

import math

import pytest


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,town\nf,Ghent\nm,Ghent\nm,Bruges\n", encoding="utf-8")
    return str(path)


def test_one_alpha_for_all_and_one_for_a_cell(cli, people):
    ran = cli(
        *("count", people, "--by", "sex", "--categories", "f,m", "--alpha", "1/2"),
        *("--cell-alpha", "m=1/4", "--adjacency", "replace", "--json"),
    )
    table = ran.document["table"]
    assert table["alphas"] == ["1/2", "1/4"]
    assert table["epsilon"] == pytest.approx(math.log(2) + math.log(4))


def test_cells_of_several_columns(cli, people):
    ran = cli(
        *("count", people, "--by", "sex", "--by", "town", "--alpha", "0.5", "--json"),
        *("--categories", "sex=f,m", "--categories", "town=Ghent,Bruges"),
        *("--cell-alpha", "f,Ghent=0.75"),
    )
    table = ran.document["table"]
    found = dict(zip(map(tuple, table["cells"]), table["alphas"], strict=True))
    assert found["f", "Ghent"] == "3/4"
    assert found["m", "Bruges"] == "1/2"
    assert table["epsilon"] == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alpha", "0.5", "--cell-alpha", "x=0.5"], "names no cell"),
        (["--alpha", "0.5", "--cell-alpha", "f=half"], "not a number"),
        (["--epsilon", "1", "--cell-alpha", "f=0.5"], "--alpha"),
        (["--epsilon", "1", "--alpha", "0.5"], "once"),
        (["--alpha", "0"], "publish"),
        ([], "privacy level"),
    ],
)
def test_levels_that_make_no_sense_are_refused(cli, people, arguments, words):
    ran = cli("count", people, "--by", "sex", "--categories", "f,m", *arguments)
    assert ran.code in (1, 2)
    assert words in ran.err


def test_categories_with_commas_are_told_apart_by_quotes(cli, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('town,part\n"A,B",C\nA,"B,C"\n', encoding="utf-8")
    asked = (
        *("count", str(path), "--by", "town", "--by", "part", "--alpha", "0.5", "--json"),
        *("--categories", 'town="A,B",A', "--categories", 'part=C,"B,C"', "--cell-alpha"),
    )
    table = cli(*asked, '"A,B",C=0.75').document["table"]
    found = dict(zip(map(tuple, table["cells"]), table["alphas"], strict=True))
    assert found["A,B", "C"] == "3/4"
    assert found["A", "B,C"] == "1/2"
    refused = cli(*asked, "A,B,C=0.75")
    assert refused.code == 2
    assert "could mean several cells" in refused.err
