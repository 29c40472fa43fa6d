"""The evidence runner keeps what passed, goes on where it stopped and reports what failed."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from evidence import run as runner


@pytest.fixture
def check(tmp_path, monkeypatch):
    """A check called `sample` that counts its runs."""
    module = ModuleType("evidence.checks.sample")
    module.__file__ = str(tmp_path / "sample.py")
    (tmp_path / "sample.py").write_text("original")
    module.NAME, module.CLAIM, module.runs = "sample", "one is one", 0

    def run(progress):
        module.runs += 1
        progress(1, 1)
        return {"cases": 20_000, "violations": 0}

    module.run = run
    monkeypatch.setitem(sys.modules, "evidence.checks.sample", module)
    return module


def test_a_result_is_stored_and_reused_until_the_source_changes(check, tmp_path):
    results = tmp_path / "results"
    assert runner.run_check("sample", force=False, folder=results)
    stored = (results / "sample.txt").read_text()
    assert "one is one" in stored
    assert "cases: 20,000" in stored
    runner.run_check("sample", force=False, folder=results)
    assert check.runs == 1
    runner.run_check("sample", force=True, folder=results)
    assert check.runs == 2
    (tmp_path / "sample.py").write_text("changed")
    runner.run_check("sample", force=False, folder=results)
    assert check.runs == 3


def test_a_counterexample_fails_and_stores_nothing(check, tmp_path, capsys):
    results = tmp_path / "results"

    def run(progress):
        raise AssertionError("leaks 1.2 at epsilon 1")

    check.run = run
    assert not runner.run_check("sample", force=False, folder=results)
    assert not (results / "sample.txt").exists()
    assert "leaks 1.2" in capsys.readouterr().err


def test_an_unknown_name_is_refused(capsys):
    assert runner.main(["no-such-check"]) == 2
    assert "no check is called 'no-such-check'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("counts", "lines"),
    [({"cases": 1000}, ["cases: 1,000"]), ("a\nb", ["a", "b"]), (iter(["a"]), ["a"])],
)
def test_counts_may_be_a_dict_text_or_lines(counts, lines):
    assert runner.as_lines(counts) == lines


def test_every_check_states_its_claim():
    for path in runner.CHECKS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert all(part in text for part in ("NAME = ", "CLAIM = ", "def run(progress")), path.name
