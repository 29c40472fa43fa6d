"""Who is pinned down, against every way to give people values that gives groups their counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.tables.risk.worlds import Memberships, pinned_down

GROUPS = (3, 3)


@st.composite
def populations(draw):
    """People with up to two records in each of two tables of three groups, and one value each."""
    number = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    several = draw(st.booleans())
    person, group = [], []
    for who in range(number):
        for table in (0, 1):
            times = int(rng.integers(0, 3)) if several else int(rng.integers(0, 5) > 0)
            person += [who] * times
            group += (table * GROUPS[0] + rng.integers(0, GROUPS[table], times)).tolist()
        if who not in person:
            person.append(who)
            group.append(0)
    value = rng.integers(0, 3, number)
    counts = np.zeros((sum(GROUPS), 3), dtype=np.int64)
    np.add.at(counts, (np.array(group), value[np.array(person)]), 1)
    return Memberships(counts, GROUPS[0], np.array(person), np.array(group), value)


def enumerated(people):
    """Try every assignment; return for each person whether all that fit agree."""
    number, values = len(people.value), people.counts.shape[1]
    possible = [set() for _ in range(number)]
    for way in product(range(values), repeat=number):
        counts = np.zeros_like(people.counts)
        np.add.at(counts, (people.group, np.array(way)[people.person]), 1)
        if (counts == people.counts).all():
            for who, value in enumerate(way):
                possible[who].add(value)
    return [len(held) == 1 for held in possible]


@given(populations())
@settings(max_examples=60)
def test_bounds_hold_for_what_enumeration_finds(people):
    sure, may = pinned_down(people)
    truth = np.array(enumerated(people))
    assert (sure <= truth).all()
    assert (truth <= may).all()


@pytest.mark.parametrize("limits", [{"most_entries": 0}, {"most_steps": 0}, {}])
def test_what_is_too_large_is_bounded(limits):
    rng = np.random.default_rng(5)
    undecided = 0
    for _ in range(30):
        number = int(rng.integers(3, 7))
        person = np.repeat(np.arange(number), 2)
        group = rng.integers(0, 3, 2 * number) + np.tile([0, 3], number)
        value = rng.integers(0, 3, number)
        counts = np.zeros((6, 3), dtype=np.int64)
        np.add.at(counts, (group, value[person]), 1)
        people = Memberships(counts, 3, person, group, value)
        sure, may = pinned_down(people, **limits)
        truth = np.array(enumerated(people))
        assert (sure <= truth).all()
        assert (truth <= may).all()
        undecided += int((sure != may).any())
    assert undecided <= (30 if limits else 3)  # bounds and cycles decide nearly all
    if "most_entries" in limits:
        assert undecided  # values alone leave more open than counts do
