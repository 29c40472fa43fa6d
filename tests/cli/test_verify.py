from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from papers.examples.hospitals import PATIENTS, table_a

ROLES = ("--quasi", "age,zip", "--sensitive", "disease")


@pytest.fixture
def folder(tmp_path):
    """T_a with and without providers, and the four hospitals' own files."""
    frame = table_a().frame.to_pandas()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.drop(columns="hospital").to_csv(tmp_path / "published.csv", index=False)
    for hospital in ("P1", "P2", "P3", "P4"):
        rows = [f"{p[2]},{p[3]},{p[4]}" for p in PATIENTS if p[0] == hospital]
        (tmp_path / f"{hospital}.csv").write_text("\n".join(["age,zip,disease", *rows]))
    return tmp_path


def test_a_broken_table(cli, folder):
    ran = cli("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES, "--k", "3")
    assert ran.code == 1
    assert ran.out.startswith("Not private: P1 breaches 3-anonymity in the group (20..30, *****)")


def test_a_private_table_by_every_method(cli, folder):
    for method in ("exact", "direct", "top-down", "bottom-up", "binary", "adaptive"):
        ran = cli(
            *("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES),
            *("--k", "3", "--l", "2", "--m", "0", "--method", method, "--json"),
        )
        assert ran.code == 0
        assert ran.document["private"]
        assert ran.document["method"] == method


def test_nobody_colludes_at_m_0_so_no_provider_is_asked_for(cli, folder):
    asked = ("verify", str(folder / "published.csv"), *ROLES, "--m", "0")
    named = ("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES, "--m", "0")
    for k, code in (("3", 0), ("4", 1)):
        ran = cli(*asked, "--k", k)
        assert ran.code == code
        first, largest = cli(*named, "--k", k).out.splitlines()
        assert ran.out == f"{first}\n"
        assert largest.startswith(f"Largest m: {-code}.")
    assert "Records there: 3 (" in ran.out


def test_one_check_is_not_called_checks(cli, tmp_path):
    (tmp_path / "t.csv").write_text("who,age,ill\nA,20,flu\nB,20,cold\n")
    asked = ("verify", str(tmp_path / "t.csv"), "--quasi", "age", "--sensitive", "ill")
    assert "(1 check, exact)" in cli(*asked, "--m", "0", "--k", "2").out
    ran = cli(*asked, "--provider", "who", "--k", "1", "--m", "1")
    assert ran.out.endswith("Largest m: 1. Safe against every coalition (up to 1 provider).\n")


def test_who_is_left_when_anyone_breaches(cli, folder):
    ran = cli("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES, "--k", "4")
    assert "Anyone breaches 4-anonymity" in ran.out
    assert "Left there without P1's own: 1 (Epilepsy: 1)." in ran.out


def test_one_file_per_provider(cli, folder):
    files = [str(folder / f"P{i}.csv") for i in range(1, 5)]
    ran = cli("verify", *files, "--quasi", "age", "--sensitive", "disease", "--k", "1", "--json")
    assert ran.code == 0
    ran = cli("verify", *files, "--quasi", "zip", "--sensitive", "disease", "--k", "2", "--json")
    assert ran.code == 1
    assert ran.document["outsiders"]


def test_how_many_and_which_k(cli, folder):
    asked = ("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES, "--k", "3")
    for m, code in (("0", 0), ("1", 1), ("2", 1)):
        ran = cli(*asked, "--m", m, "--json")
        assert ran.code == code
        largest = ran.document["largest"]
        assert (largest["m"], largest["coalition"]) == (0, ["P1"])
        assert largest["largest_passing_k"] == 1
        assert "Largest m: 0. Safe only against outsiders." in cli(*asked, "--m", m).out


def test_the_largest_m_is_that_of_the_rows_that_an_auditor_has(cli, folder):
    """Published without providers, and verified with theirs: as the table with its providers."""
    files = [str(folder / f"P{i}.csv") for i in range(1, 5)]
    for k in ("1", "2", "3"):
        named = cli(
            *("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES),
            *("--k", k, "--json"),
        )
        ran = cli(
            *("verify", str(folder / "published.csv"), "--originals", *files, *ROLES),
            *("--k", k, "--json"),
        )
        assert ran.document["largest"] == named.document["largest"]


def test_what_a_provider_learns(cli, folder):
    own = ("--own", str(folder / "P1.csv"))
    ran = cli("verify", str(folder / "published.csv"), *own, *ROLES, "--k", "2", "--json")
    assert ran.code == 1
    assert ran.document["smallest"]["left"] == [{"value": "Epilepsy", "records": 1}]
    pooled = (*own, "--own", str(folder / "P3.csv"))
    ran = cli("verify", str(folder / "published.csv"), *pooled, *ROLES, "--k", "2")
    assert ran.code == 0
    assert "may have both these rows and records of others" in ran.out


def test_labels_are_read_as_declared(cli, tmp_path):
    """Without the hierarchy a provider would not find its own rows under their labels."""
    (tmp_path / "tree.csv").write_text("Lyon;France;*\nNice;France;*\nRome;Italy;*\n")
    (tmp_path / "shown.csv").write_text("town,ill\nFrance,flu\nFrance,flu\nFrance,cold\n")
    (tmp_path / "mine.csv").write_text("town,ill\nLyon,flu\nNice,flu\n")
    asked = ["verify", str(tmp_path / "shown.csv"), "--own", str(tmp_path / "mine.csv")]
    asked += ["--quasi", "town", "--sensitive", "ill", "--k", "2", "--json"]
    forgotten = cli(*asked)
    assert (forgotten.code, forgotten.document["unmatched"]) == (1, 2)
    assert "declare its hierarchies" in cli(*asked[:-1]).out
    ran = cli(*asked, "--hierarchy", f"town={tmp_path / 'tree.csv'}")
    assert ran.code == 1
    assert ran.document["unmatched"] == 0
    assert ran.document["broken"][0]["left"] == [{"value": "cold", "records": 1}]


def test_what_depends_on_ambiguous_rows_is_not_called_broken(cli, tmp_path):
    (tmp_path / "shown.csv").write_text(
        "age,ill\n" + "0..5,flu\n0..5,cold\n" + "3..9,flu\n3..9,cold\n"
    )
    (tmp_path / "mine.csv").write_text("age,ill\n4,flu\n")
    asked = ["verify", str(tmp_path / "shown.csv"), "--own", str(tmp_path / "mine.csv")]
    ran = cli(*asked, "--quasi", "age", "--sensitive", "ill", "--k", "2", "--json")
    assert ran.code == 1  # not shown to be private
    assert ran.document["broken"] == []
    assert [group["group"] for group in ran.document["unsure"]] == [["0..5"], ["3..9"]]
    (tmp_path / "shown.csv").write_text(
        "age,ill\n" + "0..5,flu\n0..5,cold\n" * 2 + "3..9,flu\n" * 2
    )
    ran = cli(*asked, "--quasi", "age", "--sensitive", "ill", "--k", "2", "--json")
    assert (ran.code, ran.document["verdict"]) == (1, "cannot tell")
    assert len(ran.document["unsure"]) == 1


def test_rows_that_are_not_found_never_pass(cli, tmp_path):
    (tmp_path / "shown.csv").write_text("age,ill\n" + "0..5,flu\n0..5,cold\n" * 3)
    asked = ["verify", str(tmp_path / "shown.csv"), "--own", str(tmp_path / "mine.csv")]
    asked += ["--quasi", "age", "--sensitive", "ill", "--k", "1", "--missing", "value"]
    for rows, code in (("4,flu", 0), ("9,flu", 1), ("4,gout", 1), (",flu", 1), ("x,flu", 1)):
        (tmp_path / "mine.csv").write_text(f"age,ill\n{rows}\n")
        assert (rows, cli(*asked).code) == (rows, code)
    (tmp_path / "mine.csv").write_text("age,ill\n" + "4,flu\n" * 4)  # one more than published
    assert cli(*asked).code == 1


def test_a_published_file_against_the_rows_of_all(cli, tmp_path):
    """Leading zeros, accents, missing cells; then a byte and a row are changed."""
    rows = {
        "Zürich": "31,02410,flu\n33,02410,épilepsie\n52,02500,flu\n,02500,cold\n35,02410,flu\n",
        "Lyon": "34,02410,cold\n36,02410,flu\n55,02500,épilepsie\n58,02500,flu\n",
        "Århus": "32,02410,épilepsie\n38,02410,cold\n51,02500,cold\n,02500,flu\n57,02500,flu\n",
    }
    files = [str(tmp_path / f"{name}.csv") for name in rows]
    for file, text in zip(files, rows.values(), strict=True):
        Path(file).write_text("age,zip,ill\n" + text)
    asked = (
        "--quasi",
        "age,zip",
        "--sensitive",
        "ill",
        "--missing",
        "value",
        "--k",
        "2",
        "--l",
        "2",
    )
    shown, placed = tmp_path / "published.csv", tmp_path / "row_groups"
    made = ("--m", "1", "--output", str(shown), "--row-groups", str(placed))
    ran = cli("anonymize", *files, *asked, *made)
    assert "Rows: Lyon 4, Zürich 5, Århus 5. It withstands" in ran.out
    assert cli("anonymize", *files, *asked, *made).code == 2  # the folder is there
    check = ("verify", str(shown), "--originals", *files, *asked, "--row-groups", str(placed))
    ran = cli(*check, "--m", "1", "--json")
    assert (ran.code, ran.document["private"], ran.document["left_out"]["Lyon"]) == (0, True, 0)
    assert cli(*check, "--m", "1", "--k", "9").out.startswith("Not private: ")
    ran = cli(*check[:-2], "--m", "1", "--json")  # made again, where boxes do not tell
    assert (ran.code, ran.document["ambiguous"]) == (0, 0)
    for file, name in zip(files, rows, strict=True):
        own = ("--own", file, "--row-groups", str(placed / f"{name}.csv"))
        assert cli("verify", str(shown), *own, *asked).out.startswith("Holds: ")
    whole = shown.read_text()
    shown.write_text(whole.replace("cold", "bold", 1))
    ran = cli(*check[:-2], "--m", "1")
    assert (ran.code, "1 of 14 published records is no provider's row" in ran.out) == (1, True)
    assert cli(*check, "--m", "1").code == 2  # nor are the row groups those of the table
    shown.write_text(whole)
    Path(files[1]).write_text(Path(files[1]).read_text().replace("36,", "86,"))
    assert cli(*check, "--m", "1").out.startswith("Not made from these rows")


def test_every_constraint_can_be_asked_for(cli, folder):
    ran = cli(
        *("verify", str(folder / "a.csv"), "--provider", "hospital", *ROLES, "--m", "0"),
        *("--entropy-l", "1.5", "--recursive-l", "3,2", "--t", "0.7", "--json"),
    )
    assert ran.code == 0
    words = "entropy 3/2-diversity and recursive (3, 2)-diversity and 7/10-closeness"
    assert ran.document["constraint"] == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a constraint"),
        (("--k", "2"), "--provider"),
        (("--k", "2", "--provider", "clinic"), "'clinic' is not there"),
        (("--k", "0", "--provider", "hospital"), "k must be at least 1"),
        (("--recursive-l", "3", "--provider", "hospital"), "C,L"),
        (("--t-ordered", "0.2", "--provider", "hospital"), "needs sensitive values with an order"),
        (("--k", "2", "--own", "x.csv", "--m", "2"), "--own goes with"),
        (("--k", "2", "--own", "x.csv", "--subject", "name"), "--own goes with"),
        (("--k", "2", "--own", "x.csv", "--originals"), "--own goes with"),
        (("--k", "2", "--originals"), "--originals goes with"),
        (("--k", "2", "--provider", "hospital", "--quasi", ","), "--quasi names no column"),
        (("--k", "2", "--provider", "hospital", "--left-out", "2"), "go with --own"),
        (("--k", "2", "--provider", "hospital", "--relaxed"), "with --originals only"),
        (("--k", "2", "--provider", "hospital", "--row-groups", "x"), "go with --own"),
        (("--k", "2", "--provider", "hospital", "--hierarchy", "zip=x"), "go with --own"),
    ],
)
def test_what_is_wrong_is_said(cli, folder, arguments, message):
    ran = cli("verify", str(folder / "a.csv"), *ROLES, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_columns_that_nobody_asks_about_need_not_agree(cli, tmp_path):
    (tmp_path / "a.csv").write_text("age,note,provider,ill\n20,1,x,flu\n21,2,y,cold\n")
    (tmp_path / "b.csv").write_text("age,note,provider,ill\n20,text,1,flu\n21,more,2,flu\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    ran = cli("verify", *files, "--quasi", "age", "--sensitive", "ill", "--k", "1", "--json")
    assert (ran.code, ran.document["private"]) == (0, True)
    asked = ("--quasi", "note", "--sensitive", "ill", "--k", "1")
    assert cli("verify", *files, *asked).code == 0  # as text, which CSV files are
    for file in files:
        pandas.read_csv(file).to_parquet(file.replace(".csv", ".parquet"))
    ran = cli("verify", *(file.replace(".csv", ".parquet") for file in files), *asked)
    assert ran.code == 2
    assert "have different types: 'note' is int64 and " in ran.err


def test_two_files_of_one_name_are_refused(cli, folder):
    other = folder / "more"
    other.mkdir()
    (other / "P1.csv").write_text((folder / "P1.csv").read_text())
    ran = cli("verify", str(folder / "P1.csv"), str(other / "P1.csv"), *ROLES, "--k", "2")
    assert ran.code == 2
    assert "same name" in ran.err
