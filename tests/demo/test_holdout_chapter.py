from __future__ import annotations

from quiltwork.demo import holdout_chapter


def test_a_plain_board_is_fooled_and_the_holdout_is_not():
    """The noise of an answer has scale 4/500: off by 0.25 happens less than once in 10¹³."""
    told = holdout_chapter.chapter()
    assert told.data["plain"] > 0.58
    assert told.data["reusable"] is None or abs(told.data["reusable"] - 0.5) < 0.25
    assert 0 <= told.data["rounds"] <= holdout_chapter.BUDGET
