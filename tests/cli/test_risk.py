"""`quiltwork risk` on files, against the same computed in Python."""

from __future__ import annotations

import pandas as pd
import pytest

from quiltwork.tables.risk import assess, intersection
from quiltwork.tables.table import Table

ROLES = ("--quasi", "age,sex", "--sensitive", "ill")
ILL = ["flu", "cold", "cold", "gout"]


@pytest.fixture
def folder(tmp_path):
    """The same four people twice: by age, then by sex."""
    earlier = pd.DataFrame(
        {"age": ["20..29"] * 2 + ["30..39"] * 2, "sex": "{f, m}", "ill": ILL, "who": [1, 2, 3, 4]}
    )
    later = pd.DataFrame({"age": "20..39", "sex": [*"fmfm"], "ill": ILL, "who": [1, 2, 3, 4]})
    earlier.to_parquet(tmp_path / "earlier.parquet")
    later.to_csv(tmp_path / "later.csv", index=False)
    return tmp_path


def test_the_document_has_every_measure(cli, folder):
    ran = cli("risk", str(folder / "later.csv"), *ROLES, "--json")
    assert ran.code == 0
    table = Table(folder / "later.csv", None, ["age", "sex"], "ill")
    expected = assess(table).body()
    assert ran.document["models"] == expected["models"]
    assert ran.document["reidentification"]["highest"] == 0.5
    assert ran.document["disclosures"][0]["mean"] == expected["disclosures"][0]["mean"]
    attacks = [one["attack"] for one in ran.document["attacks"]]
    assert attacks == ["minimality", "deFinetti", "downcoding", "intersection", "subtraction"]
    assert ran.document["against"] is None


def test_an_earlier_release_pins_people_down(cli, folder):
    both = ("--against", str(folder / "earlier.parquet"))
    ran = cli("risk", str(folder / "later.csv"), *ROLES, *both, "--json")
    tables = [
        Table(folder / name, None, ["age", "sex"], "ill")
        for name in ("earlier.parquet", "later.csv")
    ]
    assert ran.document["against"] == intersection(*tables).body()
    assert (ran.document["against"]["by_values"], ran.document["against"]["most"]) == (2, 4)
    named = cli("risk", str(folder / "later.csv"), *ROLES, *both, "--subject", "who", "--json")
    assert named.document["against"]["linked"] == "subjects"
    assert (named.document["against"]["least"], named.document["against"]["most"]) == (2, 4)
    told = cli("risk", str(folder / "later.csv"), *ROLES, *both, "--subject", "who")
    assert "4 people are in both. For 2 of them, only one value occurs in both" in told.out


def test_the_page_has_plots_and_fetches_nothing(cli, folder):
    page = folder / "risk.html"
    ran = cli("risk", str(folder / "later.csv"), *ROLES, "--report", str(page))
    assert ran.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") >= 3
    assert "<h1>Risks of later.csv</h1>" in text
    assert "<script" not in text
    assert 'src="' not in text
    assert "url(" not in text


def test_no_input_is_written_over(cli, folder):
    table, earlier = folder / "later.csv", folder / "earlier.parquet"
    tree = folder / "tree.csv"
    tree.write_text("f;*\nm;*\n")
    before = [path.read_bytes() for path in (table, earlier, tree)]
    for target in (table, earlier, tree):
        ran = cli(
            *("risk", str(table), *ROLES, "--against", str(earlier)),
            *("--hierarchy", f"sex={tree}", "--report", str(target)),
        )
        assert ran.code == 2
        assert "one of the inputs" in ran.err
    assert [path.read_bytes() for path in (table, earlier, tree)] == before


def test_the_original_records_score_a_learner(cli, tmp_path):
    people = pd.DataFrame({"age": [20] * 40 + [30] * 40, "sex": [*"fffm"] * 10 + [*"fmmm"] * 10})
    people["ill"] = people["sex"].map({"f": "flu", "m": "cold"})
    people[:50].to_csv(tmp_path / "a.csv", index=False)
    people[50:].to_csv(tmp_path / "b.csv", index=False)
    people.assign(sex="{f, m}").to_csv(tmp_path / "shown.csv", index=False)
    asked = ["risk", str(tmp_path / "shown.csv"), *ROLES]
    asked += ["--original", str(tmp_path / "a.csv"), "--original", str(tmp_path / "b.csv")]
    (found,) = cli(*asked, "--json").document["learned"]
    assert (found["people"], found["by_group"], found["learned"]) == (80, 0.75, 1.0)
    page = tmp_path / "risk.html"
    told = cli(*asked, "--report", str(page))
    assert "guesses 'ill' right for 100 % of 80 records" in told.out
    assert "75.0 % → 100 %" in page.read_text(encoding="utf-8")
    assert cli("risk", str(tmp_path / "shown.csv"), *ROLES, "--json").document["learned"] is None


def test_an_order_of_the_sensitive_values_makes_their_distance_ordered(cli, folder):
    asked = ("risk", str(folder / "later.csv"), *ROLES, "--json")
    plain = cli(*asked).document["models"]["t"]
    ordered = cli(*asked, "--ordinal", "ill=flu,cold,gout").document["models"]["t"]
    table = Table(
        folder / "later.csv", None, ["age", "sex"], "ill", ordinal={"ill": ["flu", "cold", "gout"]}
    )
    assert ordered == assess(table).models.t == 0.25  # flu, cold | cold, gout: half a step each
    assert plain == 0.25


def test_orders_and_hierarchies_say_how_labels_are_read(cli, tmp_path):
    first = pd.DataFrame({"size": ["small..medium"] * 2 + ["large"] * 2, "ill": ILL})
    second = pd.DataFrame({"size": ["small"] * 2 + ["medium..large"] * 2, "ill": ILL})
    first.to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    asked = ["risk", str(tmp_path / "second.csv"), "--quasi", "size", "--sensitive", "ill"]
    asked += ["--against", str(tmp_path / "first.csv"), "--json"]
    ran = cli(*asked)
    assert ran.code == 2
    assert "Declare the order" in ran.err
    ran = cli(*asked, "--ordinal", "size=small,medium,large")
    assert ran.code == 0
    assert ran.document["against"]["by_values"] == 1  # small..medium and medium..large: cold


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (["--ordinal", "age=1,2"], "go with --against"),
        (["--against", "absent.parquet"], "no file"),
        (["--report", "/no/such/folder/x.html"], "there is no folder"),
    ],
)
def test_misuse_gets_a_sentence(cli, folder, extra, complaint):
    ran = cli("risk", str(folder / "later.csv"), *ROLES, *extra)
    assert ran.code in (2, 3)
    assert complaint in ran.err


def test_it_says_which_figures_are_of_chapters_and_which_of_values(cli, tmp_path):
    source, tree, page = tmp_path / "a.csv", tmp_path / "h.csv", tmp_path / "risk.html"
    source.write_text("age,ill\n20..29,E11\n20..29,E12\n20..29,I10\n")
    tree.write_text("E11;E;*\nE12;E;*\nI10;I;*\n")
    asked = ("risk", str(source), "--quasi", "age", "--sensitive", "ill")
    leveled = (*asked, "--hierarchy", f"ill={tree}", "--level", "ill=1")
    said = "beta and delta are of the labels of the hierarchy (level 1 of ill); best guesses"
    ran = cli(*leveled, "--report", str(page))
    assert said in ran.out
    assert said in page.read_text(encoding="utf-8")
    document = cli(*leveled, "--json").document
    assert (document["levels"], document["models"]["distinct_l"]) == ({"ill": 1}, 2)
    assert "of the labels" not in cli(*asked).out
