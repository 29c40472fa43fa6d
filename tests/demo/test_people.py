from __future__ import annotations

from collections import Counter

from quiltwork.demo.people import MODES, PEOPLE, SHARES, survey, tally


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
