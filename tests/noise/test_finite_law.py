"""The decision tree of the sampler, walked leaf by leaf: no statistics."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.noise import enclosure
from quiltwork.noise.finite_law import SamplingTable, Thresholds

WORD, DEPTH = 3, 4


def rational(edges: list[Fraction]) -> Thresholds:
    return Thresholds(
        len(edges), lambda j, bits: enclosure.of_fraction(edges[j], bits), lambda j: edges[j]
    )


def leaves(table: SamplingTable) -> Counter:
    """Count the words of DEPTH·WORD bits that end in each outcome; None where undecided."""
    counts: Counter = Counter()
    for words in product(range(2**WORD), repeat=DEPTH):
        rest = iter(words[1:])
        try:
            counts[table.outcome(words[0], lambda rest=rest: next(rest))] += 1
        except StopIteration:
            counts[None] += 1
    return counts


@given(st.lists(st.fractions(0, 1), min_size=1, max_size=6, unique=True))
def test_every_outcome_has_exactly_the_leaves_inside_its_interval(edges):
    edges = sorted(edge for edge in edges if 0 < edge < 1) or [Fraction(1, 3)]
    counts = leaves(SamplingTable(rational(edges), WORD))
    total = 2 ** (WORD * DEPTH)
    bounds = [Fraction(0), *edges, Fraction(1)]
    decided = 0
    for outcome, (low, high) in enumerate(pairwise(bounds)):
        sure = max(0, math.floor(high * total) - math.ceil(low * total))
        assert counts[outcome] == sure
        decided += sure
    assert counts[None] == total - decided <= len(edges)


def test_the_vectorized_search_agrees_with_the_scalar_one_on_every_word():
    table = SamplingTable(rational([Fraction(1, 7), Fraction(1, 2), Fraction(5, 7)]), 8)
    words = np.arange(256, dtype=np.uint32)
    vector = table.outcomes(words, lambda: 200)
    assert vector.tolist() == [table.outcome(int(word), lambda: 200) for word in words]


@pytest.mark.parametrize("edge", [Fraction(1, 2), Fraction(3, 4), Fraction(1, 2**32)])
def test_a_dyadic_threshold_is_placed_exactly(edge):
    assert SamplingTable(rational([edge])).cells == [int(edge * 2**32)]


def test_a_threshold_a_hair_below_one_leaves_a_reachable_last_outcome():
    edge = 1 - Fraction(1, 2**100)
    words = iter([2**32 - 1] * 3)
    assert SamplingTable(rational([edge])).outcome(2**32 - 1, lambda: next(words)) == 1
