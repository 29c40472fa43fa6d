from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from quiltwork.counts import exact_draws
from quiltwork.counts.exact_draws import draw_index


@pytest.mark.parametrize(
    "probabilities",
    [
        [Fraction(1, 3), Fraction(2, 3)],
        [Fraction(0), Fraction(1, 4), Fraction(0), Fraction(3, 4), Fraction(0)],
        [Fraction(1, 7)] * 7,
    ],
)
def test_indices_have_their_probabilities(probabilities):
    draws = 12_000  # 0.03 is 7 standard deviations of the widest frequency
    seen = Counter(draw_index(probabilities) for _ in range(draws))
    for index, probability in enumerate(probabilities):
        assert seen[index] / draws == pytest.approx(float(probability), abs=0.03)


def test_impossible_indices_are_never_drawn():
    assert {draw_index([Fraction(0), Fraction(1)]) for _ in range(20)} == {1}
    assert {draw_index([Fraction(1), Fraction(0)]) for _ in range(20)} == {0}


def test_the_first_word_decides_exactly(monkeypatch):
    """Words at the threshold 1/2: below it the first index, from it on the second."""
    half = 1 << 31
    for first, index in ((0, 0), (half - 1, 0), (half, 1), (2**32 - 1, 1)):
        words = iter([first, 5, 5, 5])
        monkeypatch.setattr(exact_draws, "word", lambda words=words: next(words))
        assert draw_index([Fraction(1, 2), Fraction(1, 2)]) == index
