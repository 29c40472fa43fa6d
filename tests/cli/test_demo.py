from __future__ import annotations

import re

from quiltwork import files


def test_the_demo_prints_a_result_and_writes_one_page(cli, tmp_path):
    ran = cli("demo", "--output", str(tmp_path / "tour"))
    page = tmp_path / "tour" / "index.html"
    assert ran.out.splitlines()[-1] == f"Report: {page}"
    assert re.search(r"bus +\d+ +\d+ to \d+", ran.out)
    text = page.read_text(encoding="utf-8")
    assert "What this does not protect" in text
    assert list((tmp_path / "tour").iterdir()) == [page]


def test_the_demo_as_json(cli, tmp_path):
    ran = cli("demo", "--output", str(tmp_path), "--json")
    document = files.load(ran.out, "demo", (1,))
    counts = next(one for one in document["chapters"] if one["name"] == "counts")
    assert sum(counts["truth"].values()) == 1200


def test_the_page_is_opened_on_request(cli, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    cli("demo", "--output", str(tmp_path), "--open")
    assert opened == [str(tmp_path / "index.html")]
