"""`quiltwork count` from the outside; at ε = 60 the noise is 0 but for one run in 10²⁵."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import quiltwork as qw
from quiltwork import files


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    rows = ["sex,town,age"] + ["f,Ghent,70"] * 5 + ["m,Ghent,30"] * 3 + ["m,Bruges,80"] * 2
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_columns_are_named_one_by_one_or_together(cli, people):
    given = ("--epsilon", "60", "--categories", "sex=f,m", "--categories", "town=Ghent", "--json")
    ways = [("--by", "sex", "--by", "town"), ("--by", "sex,town"), ("--by", 'sex,"town"')]
    found = [cli("count", people, *way, *given).document["table"] for way in ways]
    assert found[0] == found[1] == found[2]
    assert found[0]["values"] == [5, 3]


def test_a_preview_opens_no_file_and_says_what_the_table_will(cli, people):
    asked = ("--by", "sex", "--categories", "f,m", "--epsilon", "0.5", "--json")
    several = ("--subject", "town", "--max-rows", "3")
    for limit, most in (((), 1), (several, 3)):
        seen = cli("count", "no-such-file.csv", *asked, *limit, "--preview").document
        done = cli("count", people, *asked, *limit, "--adjacency", "add-remove").document
        assert seen["protects"] == done["protects"]
        assert seen["expected_error"] == pytest.approx(2 * most, rel=0.05)  # scale most/epsilon
        tail = math.exp(-0.5 * (seen["half_width"] + 1) / most) * 2 / (1 + math.exp(-0.5 / most))
        assert tail <= 0.05 < tail * math.exp(0.5 / most)
    told = cli("count", people, *asked[:-1], "--preview").out
    assert "Useful if the largest count is above 19.19, rough down to 1.919, useless below" in told
    assert cli("count", people, *asked, "--preview", "--report", "p.html").code == 2


def test_a_table_over_declared_categories(cli, people):
    ran = cli("count", people, "--by", "sex", "--categories", "f,m,x", "--epsilon", "60", "--json")
    document = files.load(ran.out, "counts", (1,))
    assert document["table"]["cells"] == ["f", "m", "x"]
    assert document["table"]["values"] == [5, 5, 0]
    assert document["intervals"] == [[5, 5], [5, 5], [0, 0]]


def test_several_columns_and_conditions(cli, people):
    ran = cli(
        *("count", people, "--by", "sex", "--by", "town", "--where", "age>=65"),
        *("--categories", "town=Ghent,Bruges", "--categories", "sex=f,m"),
        *("--epsilon", "60", "--json"),
    )
    table = ran.document["table"]
    assert dict(zip(map(tuple, table["cells"]), table["values"], strict=True)) == {
        ("f", "Ghent"): 5,
        ("f", "Bruges"): 0,
        ("m", "Ghent"): 0,
        ("m", "Bruges"): 2,
    }
    assert ran.document["where"] == ["age>=65"]


def test_a_single_count_without_columns(cli, people):
    ran = cli("count", people, "--where", "town=Ghent", "--epsilon", "60")
    assert ran.out.splitlines()[1].split() == ["town=Ghent", "8", "[8,", "8]"]


@pytest.mark.parametrize(("adjacency", "cells"), [("add-remove", 1), ("replace", 2)])
def test_the_noise_is_that_of_the_adjacency_it_names(cli, people, adjacency, cells):
    """One row moves one cell, or two when it is replaced; the noise per cell must pay for that."""
    ran = cli(
        *("count", people, "--by", "sex", "--categories", "f,m", "--epsilon", "0.8"),
        *("--adjacency", adjacency, "--json"),
    )
    exact = (Decimal("-0.8") / cells).exp(Context(prec=50))
    for alpha in ran.document["table"]["alphas"]:
        assert exact <= _decimal(Fraction(alpha)) <= exact * (1 + Decimal("1e-9"))
    assert ran.document["table"]["adjacency"] == adjacency


def _decimal(value: Fraction) -> Decimal:
    return Context(prec=50).divide(Decimal(value.numerator), Decimal(value.denominator))


def test_the_output_names_the_adjacency_and_epsilon(cli, people):
    out = cli("count", people, "--by", "sex", "--categories", "f,m", "--epsilon", "1/2").out
    assert "epsilon = 0.5" in out
    assert "adding or removing one person" in out
    assert "95 % interval" in out


def test_without_public_categories_it_refuses_before_opening_the_file(cli):
    ran = cli("count", "/no/such/file.csv", "--by", "sex", "--epsilon", "1")
    assert ran.code == 2
    assert "occur is private" in ran.err


def test_categories_from_the_data_are_an_explicit_choice_with_a_warning(cli, people):
    ran = cli("count", people, "--by", "town", "--categories-from-data", "--epsilon", "60")
    assert "Warning: " in ran.err
    assert "rare category" in ran.err
    assert [line.split()[0] for line in ran.out.splitlines()[1:3]] == ["Bruges", "Ghent"]


def test_a_public_total_is_kept(cli, people):
    ran = cli(
        *("count", people, "--by", "sex", "--categories", "f,m", "--epsilon", "0.1"),
        *("--adjacency", "replace", "--total", "10", "--json"),
    )
    assert sum(ran.document["table"]["values"]) == 10


def test_a_number(cli):
    ran = cli("count", "--value", "42", "--n", "100", "--epsilon", "60", "--json")
    document = files.load(ran.out, "count", (1,))
    assert (document["value"], document["interval"]) == (42, [42, 42])
    half = cli("count", "--value", "42", "--n", "100", "--alpha", "1/2", "--json").document
    assert half["alpha"] == "1/2"
    assert 0 <= half["value"] <= 100
    assert float(Fraction(half["epsilon"])) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--value", "5"], "--n"),
        (["--value", "5", "--n", "4", "--epsilon", "1"], "0..4"),
        (["--value", "5", "--n", "9"], "privacy level"),
        (["--value", "5", "--n", "9", "--alpha", "0"], "alpha = 0"),
        (["FILE"], "--epsilon"),
        (["FILE", "--epsilon", "0"], "greater than 0"),
        (["FILE", "--epsilon", "nan"], "not a number"),
        (["FILE", "--epsilon", "1", "--n", "5"], "--value"),
        (["FILE", "--epsilon", "1", "--categories", "f"], "--by"),
        (["FILE", "--epsilon", "1", "--value", "5"], "leave out FILE"),
        (["FILE", "--epsilon", "1", "--confidence", "2", "--by", "sex", "--categories", "f"],
         "confidence"),
        (["FILE", "--by", "sex", "--categories", "f", "--categories-from-data", "--epsilon", "1"],
         "not both"),
        (["/no/such.csv", "--epsilon", "1"], "No such file"),
    ],
)  # fmt: skip
def test_requests_that_make_no_sense_say_what_to_do(cli, people, arguments, words):
    ran = cli("count", *(people if word == "FILE" else word for word in arguments))
    assert ran.code == (1 if "alpha = 0" in words else 2)
    assert ran.out == ""
    assert words in ran.err


def test_the_first_histogram_loads_nothing_heavy(people):
    """How long it takes is measured by `make bench ONLY=cold_start`."""
    arguments = ["count", people, "--by", "sex", "--categories", "f,m", "--epsilon", "1"]
    code = (
        "import sys\n"
        "from quiltwork.cli.boundary import run\n"
        f"assert run({arguments!r}) == 0\n"
        "assert not {'scipy', 'pandas', 'polars', 'networkx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def households(tmp_path):
    path = tmp_path / "households.json"
    path.write_text(qw.Clusters([1, 1, 1, 2, 2, 3, 4, 5, 6, 7]).to_json(), encoding="utf-8")
    return str(path)


def test_households_share_the_level_of_a_number(cli, households):
    """Three people who decide alike: the noise is that of a third of the level."""
    ran = cli(
        *("count", "--value", "4", "--n", "10", "--epsilon", "0.9"),
        *("--belief", households, "--json"),
    )
    assert -math.log(Fraction(ran.document["alpha"])) == pytest.approx(0.3, rel=1e-9)
    assert Fraction(ran.document["dp_epsilon"]) <= Fraction("0.3")
    assert ran.document["epsilon"] == "9/10"
    told = cli("count", "--value", "4", "--n", "10", "--epsilon", "0.9", "--belief", households)
    assert "epsilon = 0.9 for each person under the beliefs given" in told.out


def test_households_share_the_level_of_rows(cli, people, households):
    ran = cli(
        *("count", people, "--where", "town=Ghent", "--epsilon", "0.9"),
        *("--adjacency", "replace", "--belief", households, "--json"),
    )
    ratio = Fraction(ran.document["table"]["alphas"][0])
    assert -math.log(ratio) == pytest.approx(0.3, rel=1e-9)
    assert "under the beliefs given" in ran.document["protects"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--value", "4", "--n", "11", "--epsilon", "1"], "about 10 people, but n is 11"),
        (["PEOPLE", "--where", "sex=f", "--epsilon", "1"], "use adjacency replace"),
        (["PEOPLE", "--alpha", "0.5", "--adjacency", "replace"], "level of the whole table"),
        (
            ["MORE", "--epsilon", "1", "--adjacency", "replace"],
            "about 10 people, but n is 11",
        ),
    ],
)
def test_beliefs_that_do_not_fit_are_refused(cli, people, households, arguments, words):
    more = Path(people).with_name("more.csv")
    text = Path(people).read_text(encoding="utf-8")
    more.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    given = [{"PEOPLE": people, "MORE": str(more)}.get(part, part) for part in arguments]
    ran = cli("count", *given, "--belief", households)
    assert ran.code == 2
    assert words in ran.err


@pytest.mark.parametrize("extra", [["--total", "4"], ["--categories", "a,b"]])
def test_a_number_is_no_table(cli, extra):
    ran = cli("count", "--value", "4", "--n", "10", "--alpha", "0.5", *extra)
    assert ran.code == 2
    assert "other options of tables" in ran.err


@pytest.fixture
def visits(tmp_path):
    """One patient with 473 rows, two with one, and one with three in two wards."""
    path = tmp_path / "visits.csv"
    rows = ["1,east"] * 473 + ["2,west", "3,east", "4,west", "4,west", "4,east"]
    path.write_text("patient,ward\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


WARDS = ("--by", "ward", "--categories", "east,west", "--epsilon", "400", "--json")


@pytest.mark.parametrize(
    ("limit", "counts", "at_most", "known"),
    [
        ([], [475, 3], 1, "Each row is assumed to be a different person: not checked."),
        (["--max-rows", "1"], [475, 3], 1, "Each person has at most one row: declared"),
        (["--subject", "patient"], [2, 2], 1, "Each 'patient' counts in at most one of 2 cells"),
        (["--subject", "patient", "--max-rows", "3"], [5, 3], 3, "Each 'patient' counts at most 3"),
    ],
)
def test_people_with_several_rows_count_as_often_as_was_said(
    cli, visits, limit, counts, at_most, known
):
    found = json.loads(cli("count", visits, *WARDS, *limit).out)
    assert found["table"]["noisy"] == counts
    assert found["table"]["at_most"] == at_most
    assert known in found["protects"]
    ratio = Fraction(found["table"]["alphas"][0])
    assert -math.log(ratio) == pytest.approx(400 / at_most, rel=1e-12)


def test_the_limit_is_one_of_rows_that_count(cli, visits):
    """Patient 4 was in the west first, which a condition or the categories may leave out."""
    only = cli("count", visits, *WARDS, "--subject", "patient", "--where", "ward=east").out
    assert json.loads(only)["table"]["noisy"] == [3, 0]
    east = ("--by", "ward", "--categories", "east", *WARDS[4:], "--subject", "patient")
    assert json.loads(cli("count", visits, *east).out)["table"]["noisy"] == [3]


def test_under_a_belief_people_are_counted_not_rows(cli, visits, tmp_path):
    path = tmp_path / "homes.json"
    path.write_text(qw.Clusters([1, 1, 2, 3]).to_json(), encoding="utf-8")
    under = ("--subject", "patient", "--adjacency", "replace", "--belief", str(path))
    found = json.loads(cli("count", visits, *WARDS, *under).out)
    assert found["table"]["dp_epsilon"] == "200"
    assert cli("count", visits, *WARDS, *under[2:]).code == 2


def test_a_key_belongs_to_one_limit(cli, visits, tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    ledger = qw.Ledger.open(url)
    with pytest.warns(qw.QuiltworkWarning, match="budget is 9999"):
        ledger.create("d", qw.Clusters(range(478)), None, 9999)
    paid = ("--ledger", url, "--dataset", "d", "--key", "k", "--subject", "patient")
    first = cli("count", visits, *WARDS, *paid)
    assert cli("count", visits, *WARDS, *paid).out == first.out
    again = cli("count", visits, *WARDS, *paid, "--max-rows", "2")
    assert again.code == 2
    assert "another request" in again.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--subject", "nobody"], "Column 'nobody' is not there"),
        (["--max-rows", "0"], "0 is not in the range"),
        (["--subject", "patient", "--max-rows", "2", "--adjacency", "replace", "--total", "4"],
         "each counted once"),
    ],
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(cli, visits, arguments, words):
    ran = cli("count", visits, *WARDS, *arguments)
    assert ran.code == 2
    assert words in ran.err


def test_how_a_file_is_written_can_be_said(cli, tmp_path):
    path = tmp_path / "kranke.csv"
    path.write_bytes("PLZ|Diagnose\n01048|Müdigkeit\n01048|Gicht\n".encode("latin-1"))
    ask = ("count", str(path), "--by", "Diagnose", "--categories", "Müdigkeit,Gicht")
    refused = cli(*ask, "--epsilon", "40", "--encoding", "utf-8")
    assert refused.code == 2
    assert "Müdigkeit" not in refused.err
    for said in ((), ("--encoding", "latin-1", "--delimiter", "|")):
        ran = cli(*ask, "--epsilon", "40", *said, "--json")
        assert ran.code == 0
        assert json.loads(ran.out)["table"]["values"] == [1, 1]
    number = cli("count", "--value", "3", "--n", "9", "--epsilon", "1", "--encoding", "latin-1")
    assert number.code == 2
