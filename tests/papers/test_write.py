from __future__ import annotations

import csv
from pathlib import Path

import pytest

from papers import Experiment, Figure, Findings, Reproduction, Row, Sheet
from papers.write import write_all, write_docs
from quiltwork.report import Line, LineChart, figures

ROOT = Path(__file__).resolve().parents[2]

RESULT = Findings(
    "What to see.",
    (Row("scale <b>", 12.5, 12.0, "1", "a | b"), Row("other", "2/3")),
    (Figure("curve", LineChart("Curve", "d", "x", "y", (Line("s", ((1.0, 2.0), (2.0, 3.0))),))),),
    (Sheet("values", ("a", "b"), ((1, 0.1),)),),
)


@pytest.fixture
def outcome():
    one = Experiment("scales", "Scales", "paper, Table 1", {"n": 5}, {"n": 9}, lambda: RESULT)
    return Reproduction(one, "quick", RESULT, 0.1234, kept=False)


def test_figures_tables_and_one_page(outcome, tmp_path):
    index, *others = write_all([outcome], tmp_path)
    names = {path.name for path in others}
    assert {"scales.csv", "scales-values.csv", "scales-curve.svg"} <= names
    assert ("scales-curve.png" in names) == figures.available()
    text = index.read_text(encoding="utf-8")
    assert "<td>scale &lt;b&gt;</td><td>12</td><td>12.5</td><td>+4.17 %</td>" in text
    assert "paper, Table 1 (quick: n = 5; 0.123 s)" in text
    with (tmp_path / "scales.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["published"] == "12.0"
    assert rows[0]["ours"] == "12.5"
    assert rows[1]["published"] == ""


def test_a_long_table_is_folded_after_the_figures(outcome, tmp_path):
    import dataclasses

    rows = tuple(Row(f"row {i}", i) for i in range(30))
    long = dataclasses.replace(outcome, result=dataclasses.replace(RESULT, rows=rows))
    text = write_all([long], tmp_path)[0].read_text(encoding="utf-8")
    assert text.index("<figure>") < text.index("All 30 values") < text.index("row 29")


def test_pieces_for_the_documentation(outcome, tmp_path):
    written = write_docs([outcome], tmp_path)
    text = (tmp_path / "scales.md").read_text(encoding="utf-8")
    assert (tmp_path / "scales.md") in written
    assert "do not edit" in text.splitlines()[0]
    assert "| scale <b> | 12 | 12.5 | +4.17 % | 1 | a \\| b |" in text
    assert "![Curve](scales-curve.svg)" in text
    assert (tmp_path / "scales-curve.svg").exists()


def test_an_exact_piece_in_the_documentation_is_what_the_command_writes_now(tmp_path):
    from papers import run, select

    one = select(["geometric-figure-2"])[0]
    made = write_docs([run(one, "quick", tmp_path / "out", lambda done, total: None)], tmp_path)
    for path in made:
        kept = ROOT / "docs" / "_generated" / path.name
        assert kept.read_bytes() == path.read_bytes(), f"run: quiltwork reproduce --docs ({kept})"


def test_every_piece_is_included_on_some_page():
    pages = "".join(
        page.read_text(encoding="utf-8")
        for page in (ROOT / "docs").rglob("*.md")
        if "_build" not in page.parts
    )
    for piece in (ROOT / "docs" / "_generated").glob("*.md"):
        assert f"_generated/{piece.name}" in pages
