"""A file without a header begins with somebody's row, which no error repeats."""

from __future__ import annotations

import pytest

from quiltwork import MarkovChain

ROW = ("alice@example.org", "syphilis", "34")
COMMANDS = (
    ("fit", "people.csv", "--value", "state", "--time", "at"),
    ("fit", "people.csv"),
    ("release", "people.csv", "--value", "state", "--belief", "belief.json", "--epsilon", "1"),
    ("release", "people.csv", "--belief", "belief.json", "--epsilon", "1"),
    ("belief", "check", "--belief", "belief.json", "--against", "people.csv", "--value", "state"),
    ("verify", "people.csv", "--provider", "clinic", "--quasi", "age", "--sensitive", "ill",
     "--k", "2"),
    ("anonymize", "people.csv", "--provider", "clinic", "--quasi", "age", "--sensitive", "ill",
     "--k", "2", "-o", "out.csv"),
    ("risk", "people.csv", "--quasi", "age", "--sensitive", "ill"),
    ("count", "people.csv", "--by", "sex", "--categories", "sex=f,m", "--epsilon", "1"),
    ("holdout", "create", "study", "--train", "people.csv", "--holdout", "other.csv", "--id", "id",
     "--target", "y", "--threshold", ".1", "--noise", ".1", "--budget", "1"),
)  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: " ".join(line[:2]))
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_no_error_repeats_the_first_row(cli, tmp_path, monkeypatch, line, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"]).to_json()
    )
    rows = [",".join(ROW), "bob@example.org,flu,27", "cleo@example.org,flu,51"]
    (tmp_path / "people.csv").write_text("\n".join(rows))
    (tmp_path / "other.csv").write_text("\n".join(reversed(rows)))
    ran = cli(*line, *more)
    told = ran.out + ran.err
    assert ran.code == 2
    assert "3 columns" in told
    assert not [cell for row in rows for cell in row.split(",")[:2] if cell in told], told


def test_columns_are_named_where_one_of_them_was_asked_for(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,illness,clinic\n34,flu,north\n")
    ran = cli("risk", "people.csv", "--quasi", "age", "--sensitive", "ill")
    assert "whose columns are: age, illness, clinic" in ran.err


@pytest.mark.parametrize(
    "line",
    [
        ("release", "states.csv", "--belief", "belief.json", "--epsilon", "1"),
        ("fit", "states.csv"),
        ("fit", "states.csv", "--states", "rest,walk"),
        ("fit", "numbers.csv", "--edges", "1,2"),
        ("fit", "states.csv", "--time", "at"),
    ],
    ids=" ".join,
)
def test_a_first_row_is_not_taken_for_the_name_of_the_only_column(cli, tmp_path, monkeypatch, line):
    """It would be lost, and whatever is counted one short."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"]).to_json()
    )
    (tmp_path / "states.csv").write_text("walk\nrest\nrest\nwalk\n")
    (tmp_path / "numbers.csv").write_text("1.7\n0.3\n2.2\n")
    ran = cli(*line)
    assert ran.code == 2
    assert "first line" in ran.err
    assert "walk" not in ran.err
    assert "1.7" not in ran.err
