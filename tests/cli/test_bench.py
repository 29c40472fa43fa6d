from __future__ import annotations

import json

import quiltwork


def test_benchmarks_are_listed_in_a_checkout(cli):
    ran = cli("bench", "--list", "--json")
    assert ran.code == 0
    assert ran.document["benchmarks"] == sorted(ran.document["benchmarks"])


def test_an_unknown_benchmark_is_refused(cli):
    ran = cli("bench", "no-such-bench")
    assert ran.code == 2
    assert "no-such-bench" in ran.err


def test_outside_a_checkout_it_says_where_benchmarks_are(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(quiltwork, "__file__", str(tmp_path / "lib" / "site" / "q" / "__init__.py"))
    ran = cli("bench", "--json")
    assert ran.code == 2
    assert "make bench" in json.loads(ran.err)["error"]["message"]


def test_a_bench_runs_and_its_tables_come_back(cli, monkeypatch, tmp_path):
    (tmp_path / "bench" / "results").mkdir(parents=True)
    (tmp_path / "bench" / "run.py").write_text(
        "import sys, pathlib\n"
        "print('timing', *sys.argv[1:])\n"
        "pathlib.Path('bench/results/sums.csv').write_text('name,median_seconds\\nours,0.5\\n')\n"
    )
    (tmp_path / "bench" / "bench_sums.py").write_text("")
    monkeypatch.setattr(quiltwork, "__file__", str(tmp_path / "src" / "quiltwork" / "__init__.py"))
    ran = cli("bench", "sums", "--json")
    assert ran.code == 0
    assert ran.document["results"] == [
        {"table": "sums", "rows": [{"name": "ours", "median_seconds": "0.5"}]}
    ]
