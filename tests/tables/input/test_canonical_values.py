"""Spellings of one value, each through the command line: privacy is never found where it is not."""

from __future__ import annotations

import csv
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pytest

from quiltwork.cli.boundary import run
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize, verify_m_privacy
from quiltwork.tables.input.canonical_values import canonical_value

ALIKE = [
    (".5", "0.5", "0.50", "5e-1", "+.5", " 0.5"),
    ("1000", "1e3", "1E+3", "1000.0", "01000"),
    ("0", "-0", "0.0", "-0.0", "false", "No"),
    ("1", "true", "TRUE", "Yes"),
    ("9007199254740993", "9007199254740993.0"),
    ("12:00", "12:00:00", "12:00:00.000"),
    ("2020-01-01", "2020-01-01T00:00", "2020-01-01 00:00:00Z"),
    ("2020-01-01T10:00Z", "2020-01-01 12:00+02:00", "2020-01-01T05:00-0500"),
    ("NaN", "nan", "n/a", "NULL"),
    ("caf\u00e9", "cafe\u0301", "Caf\u00c9", "caf\u00e9 "),
    ("\uff11\uff12", "12", "\u0661\u0662", "\u0967\u0968.0"),
    ("flu", "f\u200blu", "fl\u00adu", "\ufefffLU", "f\x7flu", "flu\ufe0f"),
    ("\u0390", "\u0399\u0308\u0301", "\u03ca\u0301"),
    ("-5", "\u22125", "\u20135.0", "\uff0d5"),
    ("0", "0e9999999", "-0.00E-99999999999999999999", "0e" + "9" * 5000),
    ("1000", "1e0000000000003"),
    ("inf", "Infinity", "+inf", "INF"),
    ("-inf", "-Infinity", "\u2212inf"),
]
APART = [
    ("9007199254740993", "9007199254740992"),
    ("9007199254740993", "9007199254740992.5"),
    ("0.1", "0.10000000000000001"),
    ("12:00", "00:12"),
    ("1e3", "1e-3"),
    ("-5", "5"),
    ("yes", "no"),
    ("2020-01-01T10:00Z", "2020-01-01T10:00+01:00"),
    ("flu", "flue"),
    ("inf", "-inf"),
    ("a b", "ab"),
    ("0e9999999", "1e9999999"),
]


def write(path, **columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def verify(path, *asked):
    return run(["verify", path, "--quasi", "qi", "--sensitive", "secret", *asked])


@pytest.mark.parametrize("texts", ALIKE)
def test_a_secret_in_several_spellings_is_one_secret(tmp_path, texts):
    path = write(tmp_path / "t.csv", qi=["a"] * len(texts), secret=texts)
    assert verify(path, "--m", "0", "--l", "2") == 1
    assert verify(path, "--m", "0", "--l", "2", "--text", "secret") == 1
    frame = pa.table({"qi": ["a"] * len(texts), "secret": texts})
    assert not verify_m_privacy(Table(frame, None, ["qi"], "secret"), LDiversity(2), 0).private


@pytest.mark.parametrize("texts", APART)
def test_two_secrets_are_two(tmp_path, texts):
    path = write(tmp_path / "t.csv", qi=["a", "a"], secret=texts)
    assert verify(path, "--m", "0", "--l", "2") == 0


@pytest.mark.parametrize("texts", [*ALIKE, *APART])
def test_readers_tell_spellings_of_a_quasi_identifier_apart(tmp_path, texts):
    path = write(tmp_path / "t.csv", qi=texts, secret=texts)
    table = Table(path, None, ["qi"], "secret")
    assert table.groups.count == len(texts)
    assert verify(path, "--m", "0", "--k", "2") == 1


@pytest.mark.parametrize("texts", ALIKE)
def test_where_neither_one_nor_several_is_safe_spellings_are_refused(tmp_path, capsys, texts):
    who = ["P2", *texts, "P2"]
    path = write(tmp_path / "t.csv", qi=["a"] * len(who), secret=["x"] * len(who), who=who)
    for role in ("provider", "subject"):
        assert verify(path, f"--{role}", "who", "--m", "0", "--k", "1") == 2
        told = capsys.readouterr().err
        assert f"Column 'who' seems to name one {role} in several spellings" in told
    path = write(tmp_path / "t.csv", qi=["a"] * len(who), secret=who)
    assert verify(path, "--m", "0", "--t", "0.9") == 2
    assert "Spell each value in one way for t-closeness" in capsys.readouterr().err


def test_providers_taken_as_one_may_hide_a_coalition_and_taken_as_two_its_reach():
    """Why they are refused: with one name for both, or with two, either may look safe."""
    for names, k, as_one in (("AB", 2, True), ("AABBCC", 3, False)):
        for spelled, private in ((names.replace("B", "A"), as_one), (names, not as_one)):
            frame = pd.DataFrame({"who": [*spelled], "qi": "a", "secret": "x"})
            table = Table(frame, "who", ["qi"], "secret")
            assert verify_m_privacy(table, KAnonymity(k), 1).private is private


@pytest.mark.parametrize("texts", [*ALIKE, *APART])
def test_cells_are_published_as_they_were_written(tmp_path, texts):
    cells = [*texts, *texts]
    path = write(tmp_path / "t.csv", qi=[*"abcdefghijkl"][: len(cells)], secret=cells)
    out = tmp_path / "out.csv"
    asked = ("--m", "0", "--k", "2", "--output", str(out))
    assert run(["anonymize", path, "--quasi", "qi", "--sensitive", "secret", *asked]) == 0
    with open(out, newline="", encoding="utf-8") as file:
        assert sorted(row["secret"] for row in csv.DictReader(file)) == sorted(cells)
    path = write(tmp_path / "q.csv", qi=cells, secret=[*"abcdefghijkl"][: len(cells)])
    asked = ("--m", "0", "--k", "2", "--output", str(out))
    assert run(["anonymize", path, "--quasi", "qi", "--sensitive", "secret", *asked]) == 0
    with open(out, newline="", encoding="utf-8") as file:
        shown = [row["qi"] for row in csv.DictReader(file)]
    assert all(shown.count(text) >= 2 for text in shown)
    assert run(["verify", str(out), "--quasi", "qi", "--sensitive", "secret", *asked[:4]]) == 0
    ends = {part.strip('"') for text in shown for part in text.strip("{}").split(", ")}
    ends = {part.strip('"') for text in ends for part in text.split("..")}
    assert ends <= set(texts)
    own = ["verify", str(out), "--own", path, "--quasi", "qi", "--sensitive", "secret", "--k", "1"]
    assert run(own) == 0  # every row is found again


@pytest.mark.parametrize("texts", [one for one in ALIKE if canonical_value(one[0]) is not None])
def test_own_rows_are_found_in_other_spellings(tmp_path, texts):
    published = write(tmp_path / "p.csv", qi=[texts[0]] * 3, secret=[texts[-1], "x", "y"])
    for qi, secret in pairwise([*texts, texts[0]]):
        own = write(tmp_path / "o.csv", qi=[qi], secret=[secret])
        assert verify(published, "--own", own, "--k", "2") == 0
        assert verify(published, "--own", own, "--k", "3") == 1


def test_the_order_of_rows_never_shows(tmp_path):
    """Rows that differ in spelling only are sorted by it, not left as they came."""
    written = set()
    for cells in (["0.5", ".5", "1"], [".5", "1", "0.5"]):
        path = write(tmp_path / "t.csv", qi=["a"] * 3, secret=cells)
        found = anonymize(Table(path, None, ["qi"], "secret"), KAnonymity(2), 0)
        written.add(found.write(tmp_path / "out.csv").read_bytes())
    assert len(written) == 1


def test_decimals_lie_where_they_are(tmp_path):
    """The same cuts and widths as for floats in memory, in the spelling of the file."""
    cells = ["1.50", "2.0", "2.25", "10", "10.5", "99.75"]
    path = write(tmp_path / "t.csv", qi=cells, secret=[*"abcdef"])
    kept = Table(path, None, ["qi"], "secret")
    floats = Table(
        pd.DataFrame({"qi": map(float, cells), "secret": [*"abcdef"]}), None, ["qi"], "secret"
    )
    one, other = (anonymize(table, KAnonymity(2), 0, split="range") for table in (kept, floats))
    assert (one.boxes.widths == other.boxes.widths).all()
    assert one.bounds.equals(other.bounds)
    assert sorted(set(one.frame["qi"])) == ["1.50..2.25", "10..99.75"]


@pytest.mark.parametrize(
    "text", ["9" * 200_000 + ":00", "1e999999", "1e9999999", "0000-01-01", "12:00:59." + "9" * 5000]
)
def test_strange_cells_are_compared_too(tmp_path, text):
    path = write(tmp_path / "t.csv", qi=["a", "a"], secret=[text, "x"])
    assert verify(path, "--m", "0", "--l", "2") == 0


def test_hierarchies_name_numbers_in_any_spelling(tmp_path):
    path = write(tmp_path / "t.csv", qi=["31.0", "32.0", "45.0", "46"], secret=[*"abab"])
    tree = [("31", "30s"), ("32", "30s"), ("45", "40s"), ("46", "40s")]
    table = Table(path, None, ["qi"], "secret", hierarchies={"qi": tree})
    assert set(anonymize(table, KAnonymity(2), 0).frame["qi"]) == {"30s", "40s"}
