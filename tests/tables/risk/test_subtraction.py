"""Subtraction against every coalition tried, and against the verification."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize, max_m
from quiltwork.tables.risk import assess, subtraction


def tried(frame: pd.DataFrame, size: int) -> set[int]:
    """Whose value some coalition of at most this size knows, by trying each of them."""
    found: set[int] = set()
    for _, group in frame.groupby("age"):
        owners = sorted(set(group["who"]))
        for number in range(min(size, len(owners) - 1) + 1):
            for coalition in combinations(owners, number):
                left = group[~group["who"].isin(coalition)]
                if left["ill"].nunique() == 1:
                    found |= set(left.index)
    return found


def best_guesses(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """For each provider, how often others' values are guessed before and after subtraction."""
    shares = {}
    for who in sorted(set(frame["who"])):
        before = after = others = 0
        for _, group in frame.groupby("age"):
            left = Counter(group.loc[group["who"] != who, "ill"])
            counts = Counter(group["ill"])
            first = min(v for v, n in counts.items() if n == max(counts.values()))
            others += left.total()
            before += left[first]
            after += max(left.values(), default=0)
        shares[who] = (before / others, after / others)
    return shares


@pytest.mark.parametrize("seed", range(12))
def test_whom_coalitions_know_is_what_trying_each_of_them_shows(seed):
    rng = np.random.default_rng(seed)
    rows = 40
    frame = pd.DataFrame(
        {
            "who": rng.choice([*"abcd"], rows),
            "age": rng.choice(["0..9", "10..19", "20", "30"], rows),
            "ill": rng.choice([*"xyz"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
    found = subtraction(Table(frame, "who", ["age"], "ill"))
    for size in range(4):
        assert found.certain(size) == len(tried(frame, size))
    shares = best_guesses(frame)
    assert (found.by_group, found.reached) == pytest.approx(shares[found.alone])
    assert found.reached - found.by_group == pytest.approx(
        max(after - before for before, after in shares.values())
    )
    if found.told:
        least = min(found.told)
        inside = frame[frame["age"] == found.group[0]]
        left = inside[~inside["who"].isin(found.smallest)]
        assert len(found.smallest) == least
        assert left["ill"].nunique() == 1
        assert len(left) == found.learned


def test_nobody_learns_before_the_verification_says_so():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "who": rng.choice([*"abcde"], 300),
            "age": rng.integers(0, 60, 300),
            "ill": rng.choice([*"xyz"], 300, p=[0.7, 0.2, 0.1]),
        }
    )
    table = Table(frame, "who", ["age"], "ill")
    made = anonymize(table, KAnonymity(4) & LDiversity(2), m=1)
    found = subtraction(made.table)
    assert min(found.told) == max_m(made.table, LDiversity(2)) + 1 > 1
    told = assess(made.table).attacks[4]
    assert (told.decided, told.certain) == ("exactly", "0")
    assert f"{min(found.told)} colluding providers are enough" in told.found


def test_one_provider_and_people_known_to_several_are_left_alone():
    frame = pd.DataFrame({"who": [*"ab"], "age": "1..2", "ill": [*"xy"], "person": [1, 2]})
    assert subtraction(Table(frame, None, ["age"], "ill")) is None
    assert subtraction(Table(frame, "who", ["age"], "ill", subject="person")) is None
    assert assess(Table(frame, None, ["age"], "ill")).attacks[4].decided == "not decided"
