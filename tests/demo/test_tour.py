from __future__ import annotations

import json

import pytest

from quiltwork.demo import CHAPTERS, chapters, report


@pytest.fixture(scope="module")
def told():
    return list(chapters())


def test_every_chapter_tells_something_in_all_three_ways(told):
    assert len(told) == len(CHAPTERS)
    assert len({one.name for one in told}) == len(told)
    for one in told:
        assert one.title
        assert one.lines
        assert one.parts
        assert all(len(line) <= 100 for line in one.lines)
        json.dumps(dict(one.data), allow_nan=False)


def test_the_page_has_every_chapter_and_fetches_nothing(told):
    text = report(told)
    for one in told:
        assert f'<section id="{one.name}">' in text
    assert "<script" not in text
    assert "src=" not in text.replace('src="data:', "")
