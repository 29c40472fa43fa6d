"""`quiltwork anonymize` from the outside."""

from __future__ import annotations

import pandas
import pytest

from papers.examples.hospitals import PATIENTS
from quiltwork import files

ROLES = ("--quasi", "age,zip", "--sensitive", "disease")


@pytest.fixture
def hospitals(tmp_path) -> list[str]:
    """One file per hospital of the paper's Table I."""
    frame = pandas.DataFrame(PATIENTS, columns=["hospital", "name", "age", "zip", "disease"])
    paths = []
    for hospital, part in frame.groupby("hospital"):
        paths.append(str(tmp_path / f"{hospital}.csv"))
        part.drop(columns="hospital").to_csv(paths[-1], index=False)
    return paths


def test_files_of_several_providers_become_one_table_that_verifies(cli, hospitals, tmp_path):
    out = tmp_path / "published.csv"
    ran = cli(
        *("anonymize", *hospitals, *ROLES, "--k", "3", "--l", "2", "--m", "1"),
        *("--output", str(out)),
    )
    assert ran.code == 0
    assert "(verified)" in ran.out
    published = pandas.read_csv(out)
    assert list(published.columns) == ["age", "zip", "disease"]
    assert sorted(published["disease"]) == sorted(patient[4] for patient in PATIENTS)
    again = cli("verify", str(out), "--own", hospitals[0], *ROLES, "--k", "3", "--l", "2")
    assert again.code == 0


def test_json_says_what_was_made(cli, hospitals, tmp_path):
    ran = cli(
        *("anonymize", *hospitals, *ROLES, "--k", "2", "--m", "1", "--json"),
        *("--output", str(tmp_path / "published.parquet")),
    )
    document = files.load(ran.out, "anonymized", (1,))
    assert document["rows"] == 10
    assert document["suppressed"] == 0
    assert 0 <= document["loss"]["gcp"] <= 1
    assert ran.err == ""


def test_cuts_without_a_look_and_the_page_of_attacks(cli, hospitals, tmp_path):
    page, out = tmp_path / "page.html", tmp_path / "published.csv"
    ran = cli(
        *("anonymize", *hospitals, *ROLES, "--k", "8", "--l", "2", "--m", "1", "--blind"),
        *("--output", str(out), "--report", str(page)),
    )
    assert ran.code == 1
    assert "nothing is published" in ran.err or "does not withstand" in ran.err
    asked = ("anonymize", *hospitals, *ROLES, "--k", "4", "--l", "2", "--m", "0", "--blind")
    assert cli(*asked, "--output", str(out), "--report", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Minimality: exactly." in text
    assert "Nothing: cuts did not depend on sensitive values." in text
    assert cli(*asked, "--relaxed", "--output", str(out)).code == 2


def test_orders_and_hierarchies_are_declared_by_column(cli, hospitals, tmp_path):
    tree = tmp_path / "zip.csv"
    zips = {patient[3] for patient in PATIENTS}
    tree.write_text("\n".join(f"{z};{z // 100}**;*" for z in zips))
    out = tmp_path / "published.csv"
    ran = cli(
        *("anonymize", *hospitals, "--quasi", "zip", "--sensitive", "disease", "--k", "3"),
        *("--m", "0", "--hierarchy", f"zip={tree}", "--output", str(out)),
    )
    assert ran.code == 0
    assert set(pandas.read_csv(out)["zip"]) == {"123**", "987**"}


def test_columns_may_be_called_provider_and_orders_name_numbers(cli, tmp_path):
    for name, rows in {"a": "1,20,x\n2,30,y\n", "b": "1,20,y\n3,30,x\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"provider,group,ill\n{rows}")
    out = tmp_path / "out.csv"
    ran = cli(
        *("anonymize", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--sensitive", "ill"),
        *("--quasi", "provider,group", "--ordinal", "provider=3,1,2", "--k", "4", "--m", "0"),
        *("--output", str(out)),
    )
    assert ran.code == 0
    assert pandas.read_csv(out)["provider"].unique().tolist() == ["3..2"]


def test_codes_keep_their_zeros_and_columns_may_be_declared_text(cli, tmp_path):
    (tmp_path / "a.csv").write_text("zip,age,ill\n02410,31,x\n02411,31,y\n")
    (tmp_path / "b.csv").write_text("zip,age,ill\n12345,42,x\n12346,43,y\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    asked = ("anonymize", *files, "--quasi", "zip,age", "--sensitive", "ill", "--k", "2")
    out = tmp_path / "out.csv"
    assert cli(*asked, "--m", "0", "--text", "age", "--output", str(out)).code == 0
    found = pandas.read_csv(out, dtype=str)
    assert set(found["zip"]) == {"{02410, 02411}", "{12345, 12346}"}
    assert set(found["age"]) == {"31", "{42, 43}"}
    again = ("verify", str(out), "--own", files[0], "--quasi", "zip,age", "--sensitive", "ill")
    assert cli(*again, "--k", "2", "--text", "age", "--json").document["unmatched"] == 0


def test_formulas_are_escaped_if_asked(cli, tmp_path):
    (tmp_path / "t.csv").write_text("age,ill\n1,=1+1\n2,flu\n")
    asked = ("anonymize", str(tmp_path / "t.csv"), "--quasi", "age", "--sensitive", "ill")
    asked += ("--k", "2", "--m", "0", "--output")
    for more, shown in (((), "=1+1"), (("--escape-formulas",), "'=1+1")):
        assert cli(*asked, str(tmp_path / "out.csv"), *more).code == 0
        assert shown in set(pandas.read_csv(tmp_path / "out.csv")["ill"])
    ran = cli(*asked, str(tmp_path / "out.parquet"), "--escape-formulas")
    assert ran.code == 2
    assert "Formulas are escaped in CSV files only" in ran.err


def test_names_and_values_may_hold_commas(cli, tmp_path):
    (tmp_path / "t.csv").write_text('"size, worn",ill\n"S, slim",x\nM,y\n"S, slim",x\nL,y\n')
    out = tmp_path / "out.csv"
    ran = cli(
        *("anonymize", str(tmp_path / "t.csv"), "--quasi", '"size, worn"', "--sensitive", "ill"),
        *("--ordinal", 'size, worn="S, slim",M,L', "--k", "2", "--m", "0", "--output", str(out)),
    )
    assert ran.code == 0
    assert sorted(pandas.read_csv(out)["size, worn"]) == ['"S, slim"'] * 2 + ["M..L"] * 2


def test_what_cannot_be_private_ends_with_code_1(cli, hospitals, tmp_path):
    out = tmp_path / "published.csv"
    ran = cli("anonymize", *hospitals, *ROLES, "--k", "9", "--m", "2", "--output", str(out))
    assert ran.code == 1
    assert "does not withstand 2 colluding providers" in ran.err
    assert not out.exists()
    ran = cli("anonymize", hospitals[0], *ROLES, "--k", "9", "--m", "0", "--output", str(out))
    assert "Even one group of all 3 rows does not fulfil 9-anonymity" in ran.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--ordinal", "age"),
        ("--output", "published.doc"),
        ("--suppression", "2"),
        ("--hierarchy", "zip=absent.csv"),
    ],
)
def test_bad_options_end_with_code_2(cli, hospitals, tmp_path, wrong):
    usual = ("--output", str(tmp_path / "published.csv"))
    ran = cli("anonymize", *hospitals, *ROLES, "--k", "2", *usual, *wrong)
    assert ran.code == 2


def test_a_hierarchy_is_never_written_over_and_two_outputs_are_two_files(cli, hospitals, tmp_path):
    tree, out = tmp_path / "zip.csv", tmp_path / "out.csv"
    tree.write_text("\n".join(f"{patient[3]};*" for patient in PATIENTS))
    before = tree.read_bytes()
    asked = ("anonymize", *hospitals, *ROLES, "--k", "2", "--hierarchy", f"zip={tree}")
    ran = cli(*asked, "--output", str(tree))
    assert (ran.code, tree.read_bytes()) == (2, before)
    assert "one of the inputs" in ran.err
    ran = cli(*asked, "--output", str(out), "--report", str(out))
    assert ran.code == 2
    assert "named for two outputs" in ran.err
    ran = cli(*asked, "--hierarchy", f"zip={tree}", "--output", str(out))
    assert "given twice" in ran.err


def test_what_cannot_be_written_is_said_before_anything_is_done(cli, hospitals, tmp_path):
    asked = ("anonymize", *hospitals, *ROLES, "--k", "99")  # would end with code 1
    ran = cli(*asked, "--output", str(tmp_path / "nowhere" / "out.csv"))
    assert ran.code == 3
    assert "there is no folder" in ran.err
    out = ("--output", str(tmp_path / "out.csv"))
    assert cli(*asked, *out, "--report", str(tmp_path)).code == 2
    assert not (tmp_path / "out.csv").exists()


def test_one_file_without_a_column_of_providers_protects_against_outsiders_only(cli, hospitals):
    asked = ("anonymize", hospitals[0], *ROLES, "--k", "2", "--output", hospitals[0] + ".out.csv")
    ran = cli(*asked)
    assert ran.code == 2
    assert "--provider" in ran.err
    ran = cli(*asked, "--m", "0")
    assert ran.code == 0
    assert "3 rows in 1 group: 2-anonymity, against outsiders (verified)." in ran.out


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_an_input_is_never_written_over(cli, hospitals, tmp_path, option):
    before = (tmp_path / "P1.csv").read_bytes()
    same = str(tmp_path / "." / "x" / ".." / "P1.csv")
    others = () if option == "--output" else ("--output", str(tmp_path / "out.csv"))
    ran = cli("anonymize", *hospitals, *ROLES, "--k", "2", "--m", "1", *others, option, same)
    assert ran.code == 2
    assert "one of the inputs" in ran.err
    assert (tmp_path / "P1.csv").read_bytes() == before
    assert not (tmp_path / "out.csv").exists()


def test_the_encoding_of_files_is_found_and_can_be_said(cli, hospitals, tmp_path):
    for path in hospitals:
        frame = pandas.read_csv(path).replace({"disease": {"Flu": "Müdigkeit"}})
        frame.to_csv(path, index=False, encoding="latin-1")
    out = tmp_path / "published.csv"
    ask = ("anonymize", *hospitals, *ROLES, "--k", "3", "--l", "2", "-o", str(out))
    found = cli(*ask)
    assert found.code == 0
    assert (
        "P2.csv is read with encoding cp1252 where letters are not UTF-8; change that with"
        in found.err
    )
    assert "Müdigkeit" in set(pandas.read_csv(out)["disease"])
    assert cli(*ask, "--encoding", "utf-16").code == 2
    (tmp_path / "all.csv").write_bytes("a;b;d\n1;1;ü\n1;1;x\n".encode("latin-1"))
    one = ("verify", str(tmp_path / "all.csv"), "--quasi", "a,b", "--sensitive", "d", "--m", "0")
    assert cli(*one, "--k", "2", "--encoding", "latin-1").code == 0


def test_a_hierarchy_is_made_of_the_files_and_used(cli, hospitals, tmp_path):
    tree, out = str(tmp_path / "zip.csv"), tmp_path / "published.csv"
    ran = cli("hierarchy", *hospitals, "--column", "zip", "--prefixes", "3,1", "-o", tree, "--json")
    assert (ran.document["levels"], ran.document["output"]) == (4, tree)
    asked = (*ROLES, "--k", "3", "--m", "1", "--hierarchy", f"zip={tree}", "-o", str(out))
    assert cli("anonymize", *hospitals, *asked).code == 0
    assert set(pandas.read_csv(out, dtype=str)["zip"].str[-1]) <= {*"*0123456789"}
    ages = ("hierarchy", hospitals[0], "--column", "age")
    assert cli(*ages, "--intervals", "5,10", "-o", tree).code == 0
    assert cli(*ages, "-o", tree).code == 2
    assert cli(*ages, "--prefixes", "x", "-o", tree).code == 2
    assert cli("hierarchy", hospitals[0], "--column", "no", "--dates", "year", "-o", tree).code == 2


def test_candidates_are_compared_in_one_picture(cli, hospitals, tmp_path):
    plot = tmp_path / "points.svg"
    asked = ("compare", *hospitals, *ROLES, "--k", "2,3,99", "--m", "0,1", "--plot", str(plot))
    ran = cli(*asked)
    assert ran.code == 0
    assert "k=99, m=0: Even one group" in ran.out
    assert "Risk against utility" in plot.read_text("utf-8")
    document = cli(*asked[:-2], "--method", "baseline,separate", "--json").document
    assert document["candidates"][0]["name"] == "k=2, m=0, baseline"
    assert cli("compare", *hospitals, *ROLES, "--k", "99", "--m", "0").code == 1
    assert cli("compare", *hospitals, *ROLES, "--k", "2", "--m", "0", "--split", "no").code == 2


def test_a_hierarchy_of_codes_with_blanks_and_other_cases_is_used_as_it_was_made(cli, tmp_path):
    source, tree, out = tmp_path / "a.csv", str(tmp_path / "dx.csv"), tmp_path / "out.csv"
    source.write_text("age,dx\n20,E11\n21,e11\n22, I10\n23,I50.0\n24,E11.9\n25,I10\n26,n/a\n")
    asked = ("--quasi", "age", "--sensitive", "dx", "--m", "0", "--missing", "value")
    asked += ("--hierarchy", f"dx={tree}", "--level", "dx=1", "-o", str(out))
    ran = cli("hierarchy", str(source), "--column", "dx", "--prefixes", "1", "-o", tree)
    assert ran.code == 0, ran.err
    ran = cli("anonymize", str(source), *asked, "--k", "2", "--l", "2")
    assert ran.code == 0, ran.err
    assert '," I10"' in out.read_text()  # cells are published as written
    # E and e are one chapter, and n/a is none.
    assert cli("anonymize", str(source), *asked, "--k", "2", "--l", "3").code != 0
    # One line for every spelling is enough.
    with open(tree, "w") as file:
        file.write("E11;E\nE11.9;E\nI10;I\nI50.0;I\n")
    ran = cli("anonymize", str(source), *asked, "--k", "2", "--l", "2")
    assert ran.code == 0, ran.err


def test_a_hierarchy_of_a_quasi_identifier_covers_cells_with_blanks(cli, tmp_path):
    source, tree, out = tmp_path / "a.csv", str(tmp_path / "dx.csv"), tmp_path / "out.csv"
    source.write_text("dx,ill\nE11,a\n E11,b\n I10,a\nI50,b\n")
    ran = cli("hierarchy", str(source), "--column", "dx", "--prefixes", "1", "-o", tree)
    assert "3 values" in ran.out
    asked = ("--quasi", "dx", "--sensitive", "ill", "--k", "2", "--m", "0")
    ran = cli("anonymize", str(source), *asked, "--hierarchy", f"dx={tree}", "-o", str(out))
    assert ran.code == 0, ran.err
    labels = [line.split(",")[0].strip('"') for line in out.read_text().split()]
    assert labels == ["dx", "E11", "E11", "I**", "I**"]


def test_a_hierarchy_is_made_with_the_options_for_reading(cli, tmp_path):
    one, two, tree = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "tree.csv"
    one.write_text("age;ill\n20;x\n-9;y\n")
    two.write_text("AGE,ill\n31,x\n")
    asked = ("--column", "age", "--intervals", "10", "-o", str(tree), "--rename", "AGE=age")
    ran = cli("hierarchy", str(one), str(two), *asked, "--na=-9", "--in", "a.csv:delimiter=;")
    assert ran.code == 0, ran.err
    assert tree.read_text() == "20;20-29;*\n31;30-39;*\n"
