from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import KAnonymity, LDiversity
from quiltwork.tables.m_privacy import verify_m_privacy
from quiltwork.tables.providers.originals import verify_published
from quiltwork.tables.providers.own_view import own_view
from quiltwork.tables.publishing.for_providers import for_providers, write_row_groups
from quiltwork.tables.table import Table

BOXES = [(0, 4), (3, 7), (5, 9)]
ROLES = {"quasi_identifiers": ["age"], "sensitive": "ill"}


def text(box):
    return f"{box[0]}..{box[1]}"


@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.integers(0, 9), st.sampled_from("xy")),
        min_size=2,
        max_size=6,
    ),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.integers(0, 1),
    st.sampled_from([KAnonymity(1), KAnonymity(2), LDiversity(2)]),
    st.integers(0, 2),
)
@settings(max_examples=100)
def test_the_answer_is_that_of_all_ways_in_which_the_table_can_be_made_of_the_rows(
    rows, chosen, left_out, asked, m
):
    """Every row is put into every box that covers it, or left out, in all ways."""
    fits = [[b for b in BOXES if b[0] <= age <= b[1]] for _, age, _ in rows]
    shown = [
        (text(options[pick % len(options)]), row[2])
        for row, options, pick in zip(rows, fits, chosen, strict=False)
    ][left_out:]
    published = Counter(shown)
    verdicts = set()
    for way in product(*([*options, None] for options in fits)):
        there = [(w, text(b), v) for (w, _, v), b in zip(rows, way, strict=True) if b is not None]
        if Counter((group, value) for _, group, value in there) != published:
            continue
        private = True
        for group in {group for _, group, _ in there}:
            inside = [(who, value) for who, g, value in there if g == group]
            names = sorted({who for who, _ in inside})
            for size in range(min(m, len(names) - 1) + 1):
                for coalition in combinations(names, size):
                    left = [value for who, value in inside if who not in coalition]
                    enough = len(left) if isinstance(asked, KAnonymity) else len(set(left))
                    private &= enough >= (asked.k if isinstance(asked, KAnonymity) else asked.l)
        verdicts.add(private)
    assert verdicts
    found = verify_published(
        Table(pd.DataFrame(shown, columns=["age", "ill"]), None, **ROLES),
        Table(pd.DataFrame(rows, columns=["who", "age", "ill"]), "who", **ROLES),
        asked,
        m,
    )
    assert found.private in (None, *verdicts)
    if len(verdicts) == 2 and not found.made_again:
        assert found.private is None
    if found.known == found.groups:
        assert found.private is not None


def hospitals(seed=3, rows=150):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": rng.choice(["north", "east", "Århus"], rows),
            "age": rng.integers(20, 80, rows),
            "zip": [f"{z:05d}" for z in rng.integers(100, 130, rows)],
            "ill": rng.choice(["flu", "cold", "épilepsie", "gout"], rows),
        }
    )


WIDE = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill"}
ASKED = KAnonymity(3) & LDiversity(2)


@pytest.mark.parametrize("split", ["loss", "fitness"])
def test_with_the_placed_rows_every_table_is_verified_exactly_by_all_and_by_each(split, tmp_path):
    frame = hospitals()
    table = Table(frame, "who", **WIDE)
    made = anonymize(table, ASKED, m=1, split=split, suppression=0.05)
    shown = Table(made.write(tmp_path / "published.csv"), None, **WIDE)
    files = write_row_groups(made, tmp_path / "row_groups")
    placed = Table.concat({file.stem: file for file in files}, **WIDE)
    for m in (0, 1, 2):
        found = verify_published(shown, table, ASKED, m, row_groups=placed)
        assert found.private == verify_m_privacy(made.table, ASKED, m).private
    gone = {name: len(part) for name, part in frame.groupby("who")}
    for name, part in made.table.frame.groupby("who"):
        gone[name] -= len(part)
    assert found.left_out == gone
    for file in files:
        mine = Table(frame[frame["who"] == file.stem], None, **WIDE)
        view = own_view(shown, mine, ASKED, row_groups=Table(file, None, **WIDE))
        assert (view.verdict, view.unmatched) == ("holds", gone[file.stem])
    with pytest.raises(InvalidInputError, match="Choose a new folder"):
        write_row_groups(made, tmp_path / "row_groups")
    other = Table(anonymize(table, ASKED, m=1, method="baseline").frame, None, **WIDE)
    with pytest.raises(InvalidInputError, match="row groups"):
        verify_published(other, table, ASKED, 1, row_groups=placed)


RECIPES = [{}, {"split": "fitness"}, {"split": "range"}, {"relaxed": True}, {"suppression": 0.05}]


@pytest.mark.parametrize("options", RECIPES, ids=str)
def test_a_table_made_again_has_the_true_verdict_and_a_changed_one_is_not_called_private(
    options, tmp_path
):
    """Files come in another order and spelling; then two records exchange boxes, which may fit."""
    ambiguous = 0
    for seed, m in enumerate((1, 2)):
        frame = hospitals(seed, 90)
        made = anonymize(Table(frame, "who", **WIDE), ASKED, m, **options)
        mixed = frame.sample(frac=1, random_state=seed)
        parts = {}
        for name, part in mixed.groupby("who"):
            parts[name] = tmp_path / f"{seed}{name}.csv"
            spelled = part.assign(age=part["age"].map("{}.0".format)) if seed else part
            spelled.drop(columns="who").to_csv(parts[name], index=False)
        originals = Table.concat(dict(reversed(parts.items())), **WIDE)
        shown = made.frame.astype(str).sample(frac=1, random_state=seed)
        for asked in (1, 2):
            found = verify_published(
                Table(shown, None, **WIDE), originals, ASKED, asked, made=options
            )
            if asked == m and options in ({}, {"split": "fitness"}, {"suppression": 0.05}):
                guessed = verify_published(Table(shown, None, **WIDE), originals, ASKED, m)
                assert guessed.private is found.private
            assert found.private is verify_m_privacy(made.table, ASKED, asked).private
            assert sum(found.rows.values()) - sum(found.left_out.values()) == len(shown)
            ambiguous += bool(found.made_again)
        for one in (0, 30, 60):
            changed = shown.reset_index(drop=True)
            changed.loc[[one, one + 1], ["age", "zip"]] = changed.loc[
                [one + 1, one], ["age", "zip"]
            ].to_numpy()
            found = verify_published(
                Table(changed, None, **WIDE), originals, ASKED, m, made=options
            )
            same = Counter(map(tuple, changed.values)) == Counter(map(tuple, shown.values))
            assert same or not found.made_again
    assert ambiguous > 1


def test_a_changed_table_or_row_is_noticed(tmp_path):
    """Each cell of the published file gets another value; each provider's row, another disease."""
    frame = hospitals(rows=60)
    made = anonymize(Table(frame, "who", **WIDE), ASKED, m=1, method="baseline")
    shown = made.frame.astype(str)
    originals = Table(frame, "who", **WIDE)
    assert verify_published(Table(shown, None, **WIDE), originals, ASKED, 1).private
    for row in range(0, len(shown), 7):
        for column, value in (("age", "20..21"), ("zip", "00100"), ("ill", "leprosy")):
            changed = shown.copy()
            changed.loc[row, column] = value
            found = verify_published(Table(changed, None, **WIDE), originals, ASKED, 1)
            assert found.private is False
        other = frame.copy()
        other.loc[row, "ill"] = "leprosy"
        found = verify_published(Table(shown, None, **WIDE), Table(other, "who", **WIDE), ASKED, 1)
        assert (found.private, found.unmatched, found.verdict) == (False, 1, None)
        assert "1 of 60 published records is no provider's row" in found.explain()


@pytest.mark.parametrize("m", [0, 1])
def test_the_weakest_coalition_leaves_fewest(m):
    frame = hospitals(seed=5)
    made = anonymize(Table(frame, "who", **WIDE), KAnonymity(4), m=m)
    found = for_providers(made)
    left = []
    for _, group in made.table.frame.groupby(["age", "zip"]):
        sizes = group["who"].value_counts()
        many = min(m + 1, len(sizes) - 1)
        left.append(len(group) - int(sizes.iloc[:many].sum()))
    breach = found.safe.breach
    assert int(found.safe) == m
    assert breach.left_size == min(left) == sum(breach.left.values())
    assert found.rows == frame["who"].value_counts().sort_index().to_dict() == found.published
    words = found.explain()
    assert f"It withstands {m} colluding. Weakest: {' and '.join(breach.coalition)} " in words
    assert found.body()["weakest"]["left"] == min(left)


def test_nothing_is_weak_where_every_coalition_is_withstood():
    frame = hospitals()
    made = anonymize(Table(frame, "who", **WIDE), KAnonymity(4), m=2)
    everyone = "withstands every coalition that leaves one of them out"
    assert f"{everyone}." in made.explain()
    least = anonymize(Table(frame, "who", **WIDE), KAnonymity(4), m=2)
    withstood = dataclasses.replace(for_providers(least), asked=0).withstood
    assert f"{everyone}, although only 0 was requested: m = 2 costs nothing here." in withstood
    alone = anonymize(Table(frame, None, **WIDE), KAnonymity(4), m=0)
    assert for_providers(alone).explain() == ""


def test_people_with_several_records_are_not_counted_as_several():
    """Six records of one person are not six people: whoever names people is told."""
    rows = pd.DataFrame(
        {"h": list("AABBCC"), "age": range(6), "ill": ["flu", "gout"] * 3, "who": 1}
    )
    shown = Table(
        pd.DataFrame({"age": ["0..5"] * 6, "ill": ["flu", "gout"] * 3}), None, ["age"], "ill"
    )
    named = Table(rows, "h", ["age"], "ill", subject="who")
    assert not verify_m_privacy(named, KAnonymity(3), 1).private
    with pytest.raises(UnsupportedError, match="not people"):
        verify_published(shown, named, KAnonymity(3), 1)
    with pytest.raises(UnsupportedError, match="not people"):
        own_view(shown, Table(rows[:2], None, ["age"], "ill", subject="who"), KAnonymity(3))
