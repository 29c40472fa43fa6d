from __future__ import annotations

from quiltwork.demo.counts import chapter


def test_the_intervals_hold_the_truth_as_often_as_they_say():
    """200 runs of 5 cells at 95 %: fewer than 90 % happens once in 10⁹."""
    inside = total = 0
    for _ in range(200):
        data = chapter().data
        for mode, (low, high) in data["intervals"].items():
            inside += low <= data["truth"][mode] <= high
            total += 1
    assert inside / total >= 0.9


def test_the_answers_are_noisy():
    assert len({tuple(chapter().data["table"]["values"]) for _ in range(5)}) > 1
