from __future__ import annotations

import json


def test_the_list_names_every_experiment(reproduce):
    from papers import all_experiments

    ran = reproduce("--list", "--json")
    assert [one["name"] for one in ran.document["experiments"]] == list(all_experiments())
    plain = reproduce("--list").out
    assert all(name in plain for name in all_experiments())


def test_a_run_writes_its_page_and_is_resumed(reproduce, tmp_path):
    arguments = ["geometric-figure-2", "--output", str(tmp_path), "--json"]
    first = reproduce(*arguments).document["outcomes"][0]
    second = reproduce(*arguments).document["outcomes"][0]
    assert (first["kept"], second["kept"]) == (False, True)
    assert first["result"] == second["result"]
    assert "36 of 36" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not reproduce(*arguments, "--fresh").document["outcomes"][0]["kept"]


def test_the_page_keeps_what_earlier_runs_finished(reproduce, tmp_path):
    for name in ("geometric-figure-2", "geometric-example-2-2"):
        assert "Page: " in reproduce(name, "--output", str(tmp_path)).out
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="geometric-figure-2"' in page
    assert 'id="geometric-example-2-2"' in page


def test_pieces_for_the_documentation(reproduce, tmp_path):
    docs = tmp_path / "docs"
    ran = reproduce(
        *("geometric-example-2-2", "--output", str(tmp_path / "out")),
        *("--docs", str(docs), "--full", "--json"),
    )
    assert str(docs / "geometric-example-2-2.md") in ran.document["files"]
    assert "FULL=1" in (docs / "geometric-example-2-2.md").read_text(encoding="utf-8")


def test_an_unknown_name_is_an_input_error(reproduce):
    ran = reproduce("no-such-thing", "--json")
    assert ran.code == 2
    assert json.loads(ran.err)["error"]["kind"] == "invalid-input"


def test_an_experiment_without_its_data_is_skipped_unless_named(reproduce, tmp_path, monkeypatch):
    from papers import Experiment, registry
    from quiltwork.errors import UnsupportedError

    def absent(progress):
        raise UnsupportedError("The data file is not here; get it.")

    made = Experiment("absent", "Absent", "nowhere", {}, {}, absent)
    usual = registry.all_experiments()["geometric-figure-2"]
    monkeypatch.setattr(registry, "all_experiments", lambda: {"a": made, "b": usual})
    ran = reproduce("--output", str(tmp_path), "--json")
    assert ran.code == 0
    assert ran.document["skipped"] == {"absent": "The data file is not here; get it."}
    assert [one["name"] for one in ran.document["outcomes"]] == ["geometric-figure-2"]
    assert "absent: skipped." in reproduce("--output", str(tmp_path)).out
    assert reproduce("a", "--output", str(tmp_path)).code == 2
