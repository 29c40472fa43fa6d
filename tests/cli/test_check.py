"""`quiltwork check`, and how files are read by the commands on tables."""

from __future__ import annotations

import pytest

ASKED = ("--quasi", "age", "--sensitive", "ill", "--k", "2", "--m", "0", "--missing", "value")


@pytest.fixture
def files(tmp_path):
    north, south = tmp_path / "north.csv", tmp_path / "south.csv"
    north.write_text("age;ill\n31;flu\n33;cold\nn/a;flu\n41;gout\n")
    south.write_text("AGE,ill\n35,flu\n-9,cold\n47,flu\n")
    return str(north), str(south)


def test_it_says_what_is_odd_and_how_to_mend_it(cli, files):
    ran = cli("check", *files)
    assert ran.code == 0
    assert "may be one column: 'age', 'AGE'. --rename OLD=NEW" in ran.out
    ran = cli("check", *files, "--rename", "AGE=age", "--na=-9", "--json")
    (age, ill) = ran.document["columns"]
    assert (age["type"], age["missing"], age["distinct"], age["files"]) == ("numbers", 2, 5, 2)
    assert ill["distinct"] == 3


def test_what_is_said_for_one_file_holds_for_it_alone(cli, files, tmp_path):
    """Once for all files, once for each: the same table is published."""
    made = []
    for number, said in enumerate(
        (
            ("--rename", "AGE=age", "--na=-9"),
            ("--in", "south.csv:rename=AGE=age", "--in", f"{files[1]}:na=-9"),
        )
    ):
        target = tmp_path / f"{number}.csv"
        ran = cli("anonymize", *files, *ASKED, *said, "-o", str(target))
        assert ran.code == 0, ran.err
        made.append(target.read_text())
    assert made[0] == made[1]
    assert "missing" in made[0]
    ran = cli("verify", *files, *ASKED, "--in", "west.csv:na=1")
    assert ran.code == 2
    assert "--in must be FILE:NAME=VALUE" in ran.err


def test_two_columns_cannot_become_one(cli, files):
    ran = cli("check", files[0], "--rename", "ill=age")
    assert ran.code == 2
    assert "would be called 'age'" in ran.err
