"""Finished experiments are kept; any change of code or size runs them again."""

from __future__ import annotations

import dataclasses

import pytest

from papers import Experiment, Findings, Row, finished, run
from papers.runner import fingerprint


def quiet(done: int, total: int) -> None:
    pass


@pytest.fixture
def counted():
    """An experiment that counts its runs."""
    calls = []

    def work(progress, size):
        calls.append(size)
        progress(1, 1)
        return Findings("done", (Row("runs", len(calls)),))

    made = Experiment("counted", "Counted", "nowhere", {"size": 1}, {"size": 2}, work)
    return made, calls


def test_a_finished_experiment_is_not_run_again(counted, tmp_path):
    one, calls = counted
    first = run(one, "quick", tmp_path, quiet)
    second = run(one, "quick", tmp_path, quiet)
    assert (first.kept, second.kept, calls) == (False, True, [1])
    assert second.result == first.result
    assert second.seconds == first.seconds


def test_fresh_another_size_and_other_code_run_again(counted, tmp_path, monkeypatch):
    one, calls = counted
    run(one, "quick", tmp_path, quiet)
    run(one, "quick", tmp_path, quiet, fresh=True)
    run(one, "full", tmp_path, quiet)
    assert calls == [1, 1, 2]
    changed = dataclasses.replace(one, quick={"size": 3})
    assert fingerprint(changed, "quick") != fingerprint(one, "quick")
    run(changed, "quick", tmp_path, quiet)
    assert calls == [1, 1, 2, 3]
    monkeypatch.setattr("papers.runner._mathematics", lambda: b"another version")
    assert finished(one, "full", tmp_path) is None


@pytest.mark.parametrize("damage", ["", "{", '{"schema": "quiltwork/other", "version": 1}'])
def test_a_damaged_result_is_computed_again(counted, tmp_path, damage):
    one, calls = counted
    run(one, "quick", tmp_path, quiet)
    (tmp_path / "results" / "counted.quick.json").write_text(damage)
    assert not run(one, "quick", tmp_path, quiet).kept
    assert len(calls) == 2


def test_an_interrupted_experiment_leaves_the_finished_one_alone(counted, tmp_path):
    one, _ = counted
    run(one, "quick", tmp_path, quiet)

    def stop(progress, size):
        raise KeyboardInterrupt

    broken = dataclasses.replace(one, name="broken", function=stop)
    with pytest.raises(KeyboardInterrupt):
        run(broken, "quick", tmp_path, quiet)
    assert finished(one, "quick", tmp_path) is not None
    assert finished(broken, "quick", tmp_path) is None
