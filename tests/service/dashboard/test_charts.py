from __future__ import annotations

import json

from quiltwork.beliefs import MarkovChain
from quiltwork.queries import histogram
from quiltwork.series import release
from quiltwork.service.dashboard.rendering import answer_of, over_time, sizes_chart

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


def answer(start, stop):
    data = CHAIN.sample(300, seed=1)
    made = release(data, histogram().on(start, stop), CHAIN, epsilon=1)
    return answer_of(json.loads(made.to_json()))


def test_answers_on_windows_as_long_are_compared_as_shares_in_the_order_of_time():
    found = [answer(201, 300), answer(1, 100), answer(1, 300), answer(101, 200)]
    chart = over_time(found)
    assert chart.x_names == ("1–100", "101–200", "201–300")
    for place, line in enumerate(chart.lines):
        shares = [one.value[place] / 100 for one in (found[1], found[3], found[0])]
        assert [y for _, y in line.points] == shares
        assert all(low <= high <= 1 for low, high in line.spread)


def test_one_answer_is_compared_with_nothing():
    assert over_time([]) is None
    assert over_time([answer(1, 100), answer(1, 300)]) is None


def test_many_sizes_of_groups_are_drawn_as_few_bars_that_hold_all_groups():
    few = sizes_chart({"5": 2, "7": 1}, 5)
    assert few.bars == (("5 records", 2.0), ("7 records", 1.0))
    many = {str(size): 1 for size in range(5, 205)}
    chart = sizes_chart(many, 5)
    assert len(chart.bars) <= 15
    assert sum(number for _, number in chart.bars) == 200
    assert chart.bars[0][0] == "5 to 18 records"
