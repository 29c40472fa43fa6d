"""The bench harness measures what it says: ratios against the candidate, and peak memory."""

from __future__ import annotations

import csv
import sys
from types import SimpleNamespace

import pytest

from bench import harness


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return tmp_path


def test_ratios_are_relative_to_the_first_and_tables_are_written(results, capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(harness, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def takes(seconds: float):
        return lambda: clock.append(clock.pop() + seconds)

    both = {"small": takes(2), "large": takes(6)}
    rows = harness.compare("Sums: small & large", both, repeats=5, memory=False)
    assert rows[0].ratio == rows[0].ratio_low == rows[0].ratio_high == 1
    assert rows[1].ratio == rows[1].ratio_low == rows[1].ratio_high == 3
    assert [row.median_seconds for row in rows] == [2, 6]
    table = (results / "sums-small-large.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    with (results / "sums-small-large.csv").open(newline="", encoding="utf-8") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["small", "large"]


def test_rows_are_medians_and_quartiles_of_the_ratios_within_a_repeat():
    seconds = {"candidate": [1.0, 2.0, 4.0, 8.0, 16.0], "peer": [2.0, 6.0, 16.0, 40.0, 96.0]}
    peer = harness._rows(seconds, {"candidate": None, "peer": None})[1]
    assert (peer.ratio_low, peer.ratio, peer.ratio_high) == (3, 4, 5)
    assert peer.median_seconds == 16


def test_the_peak_of_a_function_counts_what_it_allocates():
    touched = 64 * 2**20
    small, large = harness.compare(
        "Memory", {"small": lambda: bytes(10), "large": lambda: b"x" * touched}, repeats=2
    )
    assert large.peak_mebibytes - small.peak_mebibytes == pytest.approx(64, abs=16)


def test_the_peak_of_a_command_is_its_own():
    ballast = b"x" * (256 * 2**20)
    (row,) = harness.compare_commands("Start", {"python": [sys.executable, "-c", ""]}, repeats=2)
    assert ballast
    assert 1 < row.peak_mebibytes < 128


def test_a_failing_command_stops_the_bench():
    with pytest.raises(Exception, match="exit status"):
        harness.compare_commands("Failure", {"false": ["false"]}, repeats=2)


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (0.5, "500 ms"), (2e-6, "2 µs")])
def test_durations_read_well(seconds, text):
    assert harness._duration(seconds) == text
