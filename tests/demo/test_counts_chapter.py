from __future__ import annotations

from collections import Counter

from quiltwork.demo.counts_chapter import MODES, PEOPLE, SHARES, chapter, survey, tally


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


def test_the_same_seed_gives_the_same_people():
    assert survey() == survey()
    assert survey(seed=1) != survey(seed=2)


def test_the_tally_is_that_of_a_counter_with_absent_modes():
    assert tally(survey()) == {mode: Counter(survey())[mode] for mode in MODES}
    assert tally([]) == dict.fromkeys(MODES, 0)


def test_the_shares_are_about_right():
    counted = tally(survey(20 * PEOPLE))
    for mode, share in zip(MODES, SHARES, strict=True):
        assert abs(counted[mode] / (20 * PEOPLE) - share) < 0.02
