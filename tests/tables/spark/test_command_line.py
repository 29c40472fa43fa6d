"""`--backend spark` on a real local Spark: what the local backend says, from Parquet or CSV."""

from __future__ import annotations

import builtins
import json

import numpy as np
import pandas as pd
import pytest

from quiltwork.cli.boundary import run
from tests.tables.spark.comparing import sorted_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROLES = ("--quasi", "age,zip.code", "--sensitive", "ill")
LIMITS = ("--k", "6", "--l", "2", "--m", "1")


@pytest.fixture
def folder(tmp_path):
    """One table of three hospitals, and each one's own file, as CSV and as Parquet."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "hospital": rng.choice([*"ABC"], 400),
            "age": rng.integers(18, 60, 400),
            "zip.code": rng.choice(["N", "S, or so", "Köln"], 400),
            "ill": rng.choice(["flu", "cold", "gout"], 400),
        }
    )
    frame.to_parquet(tmp_path / "all.parquet")
    for name, part in frame.groupby("hospital"):
        part.drop(columns="hospital").to_parquet(tmp_path / f"{name}.parquet")
        part.drop(columns="hospital").to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.fixture
def call(spark, capsys):
    assert spark is not None

    def called(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return called


def files(folder, ending: str) -> list[str]:
    return [str(folder / f"{name}.{ending}") for name in "ABC"]


def test_the_table_is_that_of_the_local_backend_whatever_the_files_are(call, folder):
    asked = (*ROLES, *LIMITS, "--method", "baseline", "--json")
    inputs = {
        "one": ([str(folder / "all.parquet"), "--provider", "hospital"], "parquet"),
        "parquet": (files(folder, "parquet"), "parquet"),
        "csv": (files(folder, "csv"), "csv"),
    }
    code, told, _ = call(
        "anonymize", *inputs["one"][0], *asked, "--output", str(folder / "local.parquet")
    )
    local, expected = json.loads(told), sorted_rows(pd.read_parquet(folder / "local.parquet"))
    assert code == 0
    for name, (given, ending) in inputs.items():
        out = folder / f"shown-{name}.{ending}"
        code, told, error = call(
            "anonymize", *given, *asked, "--backend", "spark", "--output", str(out)
        )
        assert (code, error) == (0, "")
        found = json.loads(told)
        assert out.is_dir()
        for key in ("rows", "groups", "suppressed", "constraint", "m", "method"):
            assert found[key] == local[key]
        for key in ("gcp", "discernibility", "average_class_size"):
            assert found["loss"][key] == pytest.approx(local["loss"][key])
        parts = sorted(out.glob(f"*.{ending}"))
        read = pd.read_csv if ending == "csv" else pd.read_parquet
        assert sorted_rows(pd.concat(map(read, parts))) == expected


def test_the_guarantee_is_printed_and_the_page_written(call, folder):
    code, told, _ = call(
        *("anonymize", *files(folder, "parquet"), *ROLES, *LIMITS, "--backend", "spark"),
        *("--output", str(folder / "out.parquet"), "--report", str(folder / "page.html")),
    )
    assert code == 0
    assert "6-anonymity and distinct 2-diversity, whichever provider looks (verified)." in told
    assert f"wrote {folder / 'page.html'}" in told
    assert "6-anonymity" in (folder / "page.html").read_text(encoding="utf-8")


def test_verdicts_are_those_of_the_local_backend(call, folder):
    one = ("verify", str(folder / "all.parquet"), "--provider", "hospital", *ROLES)
    many = ("verify", *files(folder, "csv"), *ROLES)
    for asked in (
        (*one, "--k", "2", "--m", "1"),
        (*one, "--k", "1", "--m", "0"),
        (*many, "--k", "2", "--m", "1"),
    ):
        here, there = (call(*asked, "--json", "--backend", name) for name in ("local", "spark"))
        assert here[0] == there[0]
        found = json.loads(there[1])
        assert found["private"] == json.loads(here[1])["private"] == (there[0] == 0)
    assert {call(*one, "--k", k, "--m", "0", "--backend", "spark")[0] for k in ("1", "99")} == {
        0,
        1,
    }


def test_times_without_a_zone_get_none_and_formulas_an_apostrophe(call, spark, tmp_path):
    times = ["2020-01-01 10:00:00", "2021-06-01 11:30:00"] * 4
    (tmp_path / "t.csv").write_text("at,ill\n" + "".join(f"{time},=1+1\n" for time in times))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        code, _, _ = call(
            *("anonymize", str(tmp_path / "t.csv"), "--quasi", "at", "--sensitive", "ill"),
            *("--k", "2", "--m", "0", "--backend", "spark", "--output", str(tmp_path / "out.csv")),
            "--escape-formulas",
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert code == 0
    shown = pd.concat(map(pd.read_csv, (tmp_path / "out.csv").glob("*.csv")))
    assert sorted(shown["at"]) == sorted(times)
    assert set(shown["ill"]) == {"'=1+1"}
    assert spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_LTZ"


def test_nothing_is_written_into_an_input(call, folder):
    (folder / "many.parquet").mkdir()
    (folder / "A.parquet").rename(folder / "many.parquet" / "A.parquet")
    asked = ("anonymize", str(folder / "many.parquet"), *ROLES, "--k", "2", "--m", "0")
    for backend in ("local", "spark"):
        out = str(folder / "many.parquet" / "out.parquet")
        code, _, error = call(*asked, "--backend", backend, "--output", out)
        assert code == 2
        assert "inside one of the inputs" in error


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("absent.parquet", "--m", "0"), 2, "There is no file"),
        (("A.parquet", "absent.parquet"), 2, "There is no file"),
        (("broken.parquet", "--m", "0"), 2, "Cannot read"),
        (("all.parquet", "--provider", "clinic"), 2, "Column 'clinic' is not there once"),
        (("all.parquet", "--provider", "age"), 2, "has two roles"),
        (("A.parquet", "other.parquet"), 2, "'age' is bigint and string"),
        (("large.parquet", "half.parquet"), 2, "Column 'age' has whole numbers beyond 2^53"),
        (
            ("A.parquet", "half.parquet", "spelled.parquet"),
            2,
            "Column 'ill' has a value in several",
        ),
        (("all.parquet", "--provider", "hospital", "--limit", "9"), 2, "--backend spark verifies"),
        (("all.parquet", "--provider", "hospital", "--method", "binary"), 2, "--backend spark"),
    ],
)
def test_what_is_wrong_is_said(call, folder, monkeypatch, arguments, code, words):
    monkeypatch.chdir(folder)
    (folder / "broken.parquet").write_text("no Parquet at all")
    other = pd.DataFrame({"age": ["x"], "zip.code": ["N"], "ill": ["flu"]})
    other.to_parquet(folder / "other.parquet")
    other.assign(age=2**53 + 1).to_parquet(folder / "large.parquet")
    other.assign(age=0.5).to_parquet(folder / "half.parquet")
    other.assign(age=1, ill="Flu ").to_parquet(folder / "spelled.parquet")
    found = call("verify", *arguments, *ROLES, "--k", "2", "--backend", "spark")
    assert found[0] == code
    assert words in found[2]
    assert found[2].count("\n") == 1


def test_a_folder_that_exists_is_refused_before_anything_is_done(call, folder):
    (folder / "out.parquet").write_text("mine")
    asked = ("anonymize", *files(folder, "parquet"), *ROLES, "--k", "999", "--backend", "spark")
    code, _, error = call(*asked, "--output", str(folder / "out.parquet"))
    assert code == 2
    assert "already exists" in error
    assert (folder / "out.parquet").read_text() == "mine"
    code, _, error = call(*asked, "--output", str(folder / "new.parquet"))
    assert code == 1
    assert "does not withstand" in error
    assert not (folder / "new.parquet").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_without_pyspark_there_is_a_sentence(folder, monkeypatch, capsys, ending):
    usual = builtins.__import__

    def absent(name, *rest):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    for command in (["verify"], ["anonymize", "--output", str(folder / "out.parquet")]):
        code = run([*command, *files(folder, ending), *ROLES, "--k", "2", "--backend", "spark"])
        assert code == 2
        assert "pip install 'quiltwork[spark]'" in capsys.readouterr().err
