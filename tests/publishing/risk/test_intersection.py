"""Two releases about the same people, against an attacker who goes through each person."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.publishing.risk import assess
from quiltwork.publishing.risk.extents import Reading, overlaps
from quiltwork.publishing.risk.intersection import intersection
from quiltwork.publishing.table import Table

KNOWN = ["age", "zip"]
CUTS = st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True).map(sorted)


def released(people: pd.DataFrame, ages: list[int], zips: list[int]) -> pd.DataFrame:
    """Ranges of age and sets of zips, each cut at some places: a partition of the whole space."""
    frame = people.copy()
    edges = np.searchsorted(ages, people["age"])
    for part in np.unique(edges):
        low = 0 if part == 0 else ages[part - 1] + 1
        high = 11 if part == len(ages) else ages[part]
        frame.loc[edges == part, "age"] = low if low == high else f"{low}..{high}"
    side = np.searchsorted(zips, people["zip"].map("nsew".index))
    for part in np.unique(side):
        low = 0 if part == 0 else zips[part - 1] + 1
        high = 3 if part == len(zips) else zips[part]
        members = "nsew"[low : high + 1]
        text = members if len(members) == 1 else "{" + ", ".join(members) + "}"
        frame.loc[side == part, "zip"] = text
    return frame


def attacked(earlier: pd.DataFrame, later: pd.DataFrame) -> int:
    """Person by person: the values of both groups, if neither group alone has a single one."""
    pinned = 0
    for person in earlier.index:
        held = [
            set(frame.loc[(frame[KNOWN] == frame.loc[person, KNOWN]).all(axis=1), "ill"])
            for frame in (earlier, later)
        ]
        pinned += len(held[0] & held[1]) == 1 and min(map(len, held)) > 1
    return pinned


@st.composite
def two_releases(draw):
    rows = draw(st.integers(2, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    people = pd.DataFrame(
        {
            "age": rng.integers(0, 12, rows).astype(object),
            "zip": rng.choice(list("nsew"), rows).astype(object),
            "ill": rng.choice(["flu", "cold", "gout", "none"], rows),
            "person": [f"p{i}" for i in range(rows)],
        }
    )
    zips = st.lists(st.integers(0, 2), max_size=2, unique=True).map(sorted)
    return [released(people, draw(CUTS), draw(zips)) for _ in range(2)]


@given(two_releases())
@settings(max_examples=60)
def test_with_subjects_the_count_is_exact_and_without_it_lies_within_the_bounds(frames):
    truth = attacked(*frames)
    shuffled = [frames[0], frames[1].sample(frac=1, random_state=1)]
    named = [Table(f.astype(str), None, KNOWN, "ill", subject="person") for f in shuffled]
    exact = intersection(*named)
    assert (exact.least, exact.most) == (truth, truth)
    assert exact.people == len(frames[0])
    nameless = [Table(f.drop(columns="person").astype(str), None, KNOWN, "ill") for f in shuffled]
    found = intersection(*nameless)
    assert found.least <= truth <= found.most


def test_people_alone_in_both_their_groups_are_counted():
    ill = ["flu", "cold", "flu", "cold"]
    first = pd.DataFrame({"age": ["a", "a", "b", "b"], "ill": ill, "who": [1, 2, 3, 4]})
    second = pd.DataFrame({"age": ["a", "b", "b", "b"], "ill": ill, "who": [1, 2, 3, 4]})
    tables = [Table(f, None, ["age"], "ill", subject="who") for f in (first, second)]
    assert intersection(*tables).alone == 2  # persons 1 and 2; 3 and 4 share both groups


def test_more_than_64_values_are_compared_too():
    values = [f"v{i}" for i in range(150)]
    first = pd.DataFrame({"age": ["a"] * 150 + ["b"] * 2, "ill": [*values, "v0", "x"]})
    second = pd.DataFrame({"age": ["a"] * 2 + ["b"] * 150, "ill": ["v149", "x", *values]})
    tables = [Table(f, None, ["age"], "ill") for f in (first, second)]
    found = intersection(*tables)
    assert (found.least, found.most) == (2, 2)  # v149 in a, v0 in b


def test_a_bound_is_reached_and_its_worth_is_seen():
    """Every group pair pins: both bounds equal the truth; a coarser later table pins nobody."""
    first = pd.DataFrame({"age": ["0..4", "0..4", "5..9", "5..9"], "ill": ["x", "y", "y", "z"]})
    second = pd.DataFrame({"age": ["0..4", "0..4", "5..9", "5..9"], "ill": ["x", "w", "w", "z"]})
    third = pd.DataFrame({"age": ["0..9"] * 4, "ill": ["x", "y", "y", "z"]})
    tables = [Table(f, None, ["age"], "ill") for f in (first, second, third)]
    found = intersection(tables[0], tables[1])
    assert (found.least, found.most) == (2, 2)
    assert intersection(tables[0], tables[2]).most == 0


def test_labels_of_hierarchies_and_orders_are_read():
    tree = Reading.of("zip", None, [("12", "1*", "*"), ("13", "1*", "*"), ("21", "2*", "*")])
    assert overlaps(tree, ["12", "1*", "*"], ["13", "1*", "2*"]).tolist() == [
        [False, True, False],
        [True, True, False],
        [True, True, True],
    ]
    masks = Reading.of("zip", None, None)
    assert overlaps(masks, ["98***", "*****", "12345"], ["987**", "99999", "1234*"]).tolist() == [
        [True, False, False],
        [True, True, True],
        [False, False, True],
    ]
    sizes = Reading.of("size", ["small", "medium", "large"], None)
    assert overlaps(sizes, ["small..medium", "large"], ["medium..large"]).tolist() == [
        [True],
        [True],
    ]
    dates = Reading.of("born", None, None)
    assert overlaps(dates, ["1970-01-01..1970-06-30"], ["1970-06-30", "1971-01-01"]).tolist() == [
        [True, False]
    ]
    times = Reading.of("seen", None, None)
    given = ["05:00:00..07:00:00", "1 day, 0:00:00..2 days, 1:30:00"]
    assert overlaps(times, given, ["07:00:00", "0:30:00", "1 day, 23:59:59.5"]).tolist() == [
        [True, False, False],
        [False, False, True],
    ]
    gaps = Reading.of("pay", None, None)
    assert overlaps(gaps, ["{1..3, missing}", "4..5"], ["missing", "2"]).tolist() == [
        [True, True],
        [False, False],
    ]


def test_tables_that_cannot_be_compared_are_refused():
    first = Table(pd.DataFrame({"age": ["1"], "ill": ["x"]}), None, ["age"], "ill")
    other = Table(pd.DataFrame({"zip": ["1"], "ill": ["x"]}), None, ["zip"], "ill")
    with pytest.raises(InvalidInputError, match="quasi-identifiers"):
        intersection(first, other)
    secret = Table(pd.DataFrame({"age": ["1"], "pay": ["x"]}), None, ["age"], "pay")
    with pytest.raises(InvalidInputError, match="sensitive"):
        intersection(first, secret)
    with pytest.raises(InvalidInputError, match="'zip' is declared"):
        intersection(first, first, hierarchies={"zip": [("1", "*")]})
    with pytest.raises(InvalidInputError, match="Give a Table"):
        intersection(first.frame, first)
    with pytest.raises(InvalidInputError, match="Give a Table"):
        assess(first.frame)
    with pytest.raises(InvalidInputError, match="declare the order"):
        overlaps(Reading.of("size", None, None), ["small..large"], ["large"])
