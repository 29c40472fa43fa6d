"""`quiltwork remap` from the outside."""

from __future__ import annotations

import csv
from fractions import Fraction

import pytest
from scipy import stats

import quiltwork as qw
from quiltwork import files

PRIOR = "probability\n1/4\n0\n1/4\n0\n1/4\n1/4\n"


@pytest.fixture
def prior(tmp_path):
    path = tmp_path / "prior.csv"
    path.write_text(PRIOR)
    return str(path)


def test_figure_2s_consumer(cli, prior):
    ran = cli(
        "remap", "--n", "5", "--alpha", "1/2", "--prior", prior, "--loss", "power:3/2", "--json"
    )
    document = files.load(ran.out, "remapped", (1,))
    assert document["remap"]["mapping"] == [0, 2, 2, 3, 4, 5]
    assert document["remap"]["alpha"] == "1/2"
    assert document["readings"] == []


def test_values_are_read_with_intervals_and_the_gain_is_explained(cli):
    ran = cli("remap", "--n", "100", "--epsilon", "0.5", "--prior", "binomial:0.1", "--value", "0")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[:2] == ["0", "6"]
    assert "% less than at face value" in ran.out
    assert "no mechanism of this privacy level" in ran.out


def test_a_column_is_remapped_into_a_new_file(cli, tmp_path):
    table = tmp_path / "released.csv"
    table.write_text("town,count\nGhent,-3\nBruges,12\n")
    out = tmp_path / "read.csv"
    ran = cli(
        *("remap", str(table), "--column", "count", "--n", "20", "--epsilon", "1"),
        *("--prior", "poisson:4", "--loss", "asymmetric:3:1", "--output", str(out)),
    )
    assert ran.code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    mechanism = qw.GeometricMechanism(20, epsilon=1)
    remap = mechanism.remap(qw.Consumer(stats.poisson(4), "asymmetric:3:1"))
    assert [int(row["count_remapped"]) for row in rows] == [remap(-3), remap(12)]
    assert [row["town"] for row in rows] == ["Ghent", "Bruges"]
    assert (int(rows[0]["count_low"]), int(rows[0]["count_high"])) == remap.interval(-3)


def test_what_count_wrote_is_read_with_its_noise_and_its_names(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,town\n" + "f,Ghent\nm,Bruges\n" * 6)
    asked = ("--by", "sex,town", "--categories", "sex=f,m", "--categories", "town=Ghent,Bruges")
    wrote = cli("count", "people.csv", *asked, "--epsilon", "0.2", "-o", "counts.json", "--json")
    ran = cli("remap", "counts.json", "--n", "12", "--prior", "poisson:3", "-o", "read.csv")
    mechanism = qw.GeometricMechanism(12, epsilon=Fraction(1, 5))
    remap = mechanism.remap(qw.Consumer(stats.poisson(3)))
    noisy = wrote.document["table"]["noisy"]
    with open("read.csv") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["sex", "town", "count", "count_remapped", "count_low", "count_high"]
    assert [row[:2] for row in rows[2:4]] == [["f", "Bruges"], ["m", "Ghent"]]
    assert [row[2:4] for row in rows[1:]] == [[str(one), str(remap(one))] for one in noisy]
    assert ran.out.splitlines()[1].split()[:2] == ["f", "Ghent"]
    for options, words in (
        ([], "number of people with --n"),
        (["--n", "12", "--epsilon", "0.2"], "leave out --epsilon and --alpha"),
        (["--n", "12", "--column", "sex"], "Column 'sex' is not there"),
    ):
        refused = cli("remap", "counts.json", *options)
        assert (refused.code, words in refused.err) == (2, True)
    cli("count", "--value", "4", "--n", "9", "--epsilon", "0.2", "-o", "one.json")
    assert cli("remap", "one.json", "--json").document["remap"]["n"] == 9
    for text in ('{"schema": "quiltwork/counts", "version": 1, "table": []}', "{}", '{"a"'):
        (tmp_path / "odd.json").write_text(text)
        assert (
            "is not the output of `quiltwork count -o`" in cli("remap", "odd.json", "--n", "9").err
        )


def test_priors_from_a_belief_and_from_an_earlier_release(cli, tmp_path):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    path = tmp_path / "belief.json"
    path.write_text(chain.to_json())
    ran = cli("remap", "--n", "30", "--epsilon", "1", "--prior", f"chain:{path}:walk", "--json")
    from quiltwork.counts import ChainCounts

    remap = qw.GeometricMechanism(30, epsilon=1).remap(qw.Consumer(ChainCounts(chain, "walk")))
    assert tuple(ran.document["remap"]["mapping"]) == remap.mapping
    ran = cli("remap", "--n", "30", "--epsilon", "1", "--prior", "earlier:12:0.5", "--json")
    assert ran.document["remap"]["expected_loss"] < ran.document["remap"]["face_value_loss"]


def test_a_loss_matrix_from_json(cli, tmp_path):
    path = tmp_path / "loss.json"
    path.write_text('[[0, 1, "1/2"], [1, 0, 1], [2, 1, 0]]')
    ran = cli("remap", "--n", "2", "--alpha", "0.5", "--loss", str(path), "--json")
    assert ran.document["remap"]["universality"] == "fails"


def test_a_heat_map_is_drawn(cli, prior, tmp_path):
    target = tmp_path / "heat.svg"
    ran = cli("remap", "--n", "5", "--alpha", "1/2", "--prior", prior, "--plot", str(target))
    assert ran.code == 0
    assert target.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n", "5"], "privacy level once"),
        (["--n", "5", "--epsilon", "1", "--alpha", "0.5"], "privacy level once"),
        (["--n", "0", "--epsilon", "1"], "n must"),
        (["--n", "5", "--epsilon", "1", "--prior", "flat"], "is neither a file nor one of"),
        (["--n", "5", "--epsilon", "1", "--prior", "binomial:2"], "probability"),
        (["--n", "5", "--epsilon", "1", "--prior", "poisson:x"], "not a number"),
        (["--n", "5", "--epsilon", "1", "--prior", "chain:walk"], "chain:FILE:STATE"),
        (["--n", "5", "--epsilon", "1", "--prior", "earlier:2.5:1"], "must be an integer"),
        (["--n", "5", "--epsilon", "1", "--loss", "l2"], "is neither a file nor one of"),
        (["--n", "5", "--epsilon", "1", "--output", "x.csv"], "FILE"),
        ([__file__, "--n", "5", "--epsilon", "1"], "--column"),
        (["--column", "c", "--n", "5", "--epsilon", "1"], "--column names a column of FILE"),
        (["/no/such.csv", "--column", "c", "--n", "5", "--epsilon", "1"], "Cannot read"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_code_2(cli, arguments, words):
    ran = cli("remap", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1


def test_rows_that_are_no_counts_are_named(cli, tmp_path):
    asked = ("remap", "--n", "5", "--epsilon", "1")
    table = tmp_path / "released.csv"
    table.write_text("count\n3\n4.5\n")
    ran = cli("remap", str(table), "--column", "count", "--n", "5", "--epsilon", "1")
    assert ran.code == 2
    assert "Row 2" in ran.err
    ran = cli("remap", str(table), "--column", "cuont", "--n", "5", "--epsilon", "1")
    assert "Column 'cuont' is not there" in ran.err
    table.write_text("count\n3\n1_0\n")
    assert "Row 2" in cli(*asked, str(table), "--column", "count").err


def test_a_plot_that_cannot_be_drawn_leaves_no_half_done_work(cli, tmp_path):
    released, output = tmp_path / "released.csv", tmp_path / "read.csv"
    released.write_text("count\n3\n", encoding="utf-8")
    ran = cli(
        *("remap", str(released), "--column", "count", "--n", "500", "--epsilon", "1"),
        *("--output", str(output), "--plot", str(tmp_path / "map.png")),
    )
    assert ran.code == 2
    assert "n = 400" in ran.err
    assert not output.exists()


def test_the_input_is_never_overwritten_and_means_are_finite(cli, tmp_path):
    table = tmp_path / "counts.csv"
    table.write_text("noisy\n1\n")
    asked = ["--n", "2", "--epsilon", "1", "--column", "noisy"]
    ran = cli("remap", str(table), *asked, "--output", str(table))
    assert ran.code == 2
    assert "is one of the inputs" in ran.err
    assert table.read_text() == "noisy\n1\n"
    ran = cli("remap", "--n", "2", "--epsilon", "1", "--prior", "poisson:1e400", "--value", "1")
    assert ran.code == 2
    assert "needs a mean" in ran.err


def test_other_columns_are_kept_as_they_are(cli, tmp_path):
    """Columns of one name, empty lines and values with commas, and no rows at all."""
    table, out = tmp_path / "released.csv", tmp_path / "read.csv"
    asked = ("remap", str(table), "--column", "count", "--n", "20", "--alpha", "0")
    for text, read in (
        ('a,count,a\n1,3,"x,y"\n\n5,6,7\n', ['1,3,"x,y",3,3,3', "5,6,7,6,6,6"]),
        ("count,städtchen\n", []),
    ):
        table.write_text(text, encoding="utf-8")
        assert cli(*asked, "--output", str(out)).code == 0
        header = text.splitlines()[0] + ",count_remapped,count_low,count_high"
        assert out.read_text(encoding="utf-8").splitlines() == [header, *read]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin with a line of column names"),
        (b"\n\n", "does not begin with a line of column names"),
        (b"count,count\n1,2\n", "'count' appears more than once"),
        (b"count,count_low\n1,2\n", "already has a column 'count_low'"),
        (b"town,count\nGen\xe8ve,x\n", "Row 1 of column 'count'"),
        (b"town,count\nGhent\n", "has 1 columns and the header 2"),
        (b"town,count\nGhent,1\nGhent,1,2\n", "has 3 columns and the header 2"),
    ],
)
def test_damaged_files_are_told_and_nothing_is_written(cli, tmp_path, content, words):
    table, out = tmp_path / "released.csv", tmp_path / "read.csv"
    table.write_bytes(content)
    asked = ("--column", "count", "--n", "20", "--epsilon", "1", "--output", str(out))
    ran = cli("remap", str(table), *asked)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert words in ran.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "content", "words"),
    [
        ("--prior", "nan,1,0,0\n", "'nan' in"),
        ("--prior", "1e999999999,0,0,0\n", "'1e999999999' in"),
        ("--prior", "[0.25, 0.25,", "Not a JSON document"),
        ("--prior", "[[1, 0], 0, 0]", "a list of such lists"),
        ("--prior", "{}", "a list of such lists"),
        ("--prior", "[]", "contains no numbers"),
        ("--prior", "", "contains no numbers"),
        ("--prior", "[true, 0, 0, 0]", "'True' in"),
        ("--prior", "0,0,0,0\n", "adds up to 0,"),
        ("--prior", "0.2,0.2,0.2,0.2,0.2\n", "5 probabilities; counts 0..3 need 4"),
        ("--prior", "1.5,-0.5,0,0\n", "at least 0, not -0.5"),
        ("--loss", "1,2,3\n4,5,6\n", "shape (2, 3)"),
        ("--loss", "0,1\n-1,0\n", "contains -1.0"),
        ("--loss", "0,1,2\n1,0\n2,1,0\n", "row 1 has 2 entries and row 0 has 3"),
        ("--loss", "0,1\n1,0\n", "covers counts 0..1, but the mechanism has n = 3"),
    ],
)
def test_priors_and_losses_that_are_none_are_told(cli, tmp_path, option, content, words):
    path = tmp_path / "numbers.csv"
    path.write_text(content)
    ran = cli("remap", "--n", "3", "--epsilon", "1", option, str(path))
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert words in ran.err


@pytest.mark.parametrize("loss", ["power:1e999999999", "power:0", "asymmetric:0:1", "power:"])
def test_parameters_that_are_no_numbers_are_refused_at_once(cli, loss):
    ran = cli("remap", "--n", "3", "--epsilon", "1", "--loss", loss)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "Fraction" not in ran.err


def test_a_long_mapping_says_how_much_is_not_shown(cli):
    ran = cli("remap", "--n", "100", "--epsilon", "1")
    assert "… 61 more" in ran.out.splitlines()
