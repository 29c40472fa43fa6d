"""The deFinetti attack against the same written out in plain Python; where it wins, and not."""

from __future__ import annotations

import importlib
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize
from quiltwork.tables.codes.encoding import Column
from quiltwork.tables.risk import assess, definetti, definetti_of_texts
from tests.sizes import sample

MODULE = importlib.import_module("quiltwork.tables.risk.definetti")

BOXES = {"0..4": range(5), "3..7": range(3, 8), "6..9": range(6, 10)}


def person_by_person(people, groups, truth):
    """The attack in plain Python: `people` are (quasi-identifiers, groups they may be in)."""
    pairs = [
        {(group, value): groups[group][value] for group in fits for value in groups[group]}
        for _, fits in people
    ]

    def to_one(weights):
        whole = sum(weights.values())
        return {key: weight / whole for key, weight in weights.items()}

    def guess(shares):
        by_value = Counter()
        for (_, value), share in shares.items():
            by_value[value] += share
        top = max(by_value.values())
        return [v for v, share in by_value.items() if math.isclose(share, top, rel_tol=1e-9)], top

    shares = [to_one(weights) for weights in pairs]
    scores = []
    for step in range(MODULE.ROUNDS + 1):
        if step:
            total, seen = Counter(), Counter()
            for (known, _), share in zip(people, shares, strict=True):
                for (_, value), weight in share.items():
                    total[value] += weight
                    for column, code in enumerate(known):
                        seen[column, code, value] += weight
            sizes = [1 + max(known[c] for known, _ in people) for c in range(len(people[0][0]))]
            shares = [
                to_one(
                    {
                        (group, value): math.prod(
                            (seen[c, code, value] + 1) / (total[value] + sizes[c])
                            for c, code in enumerate(known)
                        )
                        for group, value in share
                    }
                )
                for (known, _), share in zip(people, shares, strict=True)
            ]
            for _ in range(MODULE.SCALINGS):
                given_out = Counter()
                for share in shares:
                    given_out.update(share)
                shares = [
                    to_one({k: w * groups[k[0]][k[1]] / given_out[k] for k, w in share.items()})
                    for share in shares
                ]
        if step in (0, MODULE.ROUNDS):
            hits = 0.0
            for share, value in zip(shares, truth, strict=True):
                best, _ = guess(share)
                hits += (value in best) / len(best)
            scores.append(hits / len(people))
    return scores


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 1), st.sampled_from("xyz")),
        min_size=4,
        max_size=25,
    ),
    st.integers(0, 1000),
)
@settings(max_examples=sample(20, full=40), deadline=None)
def test_the_score_is_that_of_the_attack_written_out(rows, seed):
    """Boxes overlap, so that some people may be in several groups."""
    rng = np.random.default_rng(seed)
    original = pd.DataFrame(rows, columns=["age", "sex", "ill"])
    inside = [[name for name, ages in BOXES.items() if age in ages] for age in original["age"]]
    shown = original.assign(age=[rng.choice(names) for names in inside], sex="{0, 1}")
    tables = [Table(frame, None, ["age", "sex"], "ill") for frame in (shown, original)]
    (found,) = definetti_of_texts(*tables)
    groups = {name: Counter(part["ill"]) for name, part in shown.groupby("age")}
    ages = sorted(set(original["age"]))
    sexes = sorted(set(original["sex"]))
    people = [
        ((ages.index(age), sexes.index(sex)), [name for name in names if name in groups])
        for age, sex, names in zip(original["age"], original["sex"], inside, strict=True)
    ]
    by_group, learned = person_by_person(people, groups, original["ill"])
    assert found.by_group == pytest.approx(by_group)
    assert found.learned == pytest.approx(learned)
    assert found.people == len(rows)
    assert found.sure_right <= found.sure <= len(rows)


def population(rows: int, bound_to_sex: float, seed: int = 5) -> pd.DataFrame:
    """People whose illness follows their sex with some probability, and else nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, rows)
    sex = rng.random(rows) < np.where(age < 40, 0.3, 0.7)
    other = rng.random(rows) < 0.5
    follows = rng.random(rows) < bound_to_sex
    ill = np.where(np.where(follows, sex, other), "flu", "cold")
    return pd.DataFrame({"age": age, "sex": np.where(sex, "f", "m"), "ill": ill})


def published(frame: pd.DataFrame):
    table = Table(frame, None, ["age", "sex"], "ill")
    return anonymize(table, KAnonymity(40) & LDiversity(2), m=0)


def test_an_association_is_learned_from_the_groups_and_used_within_them():
    """Groups of both sexes say 60 % or less; the learner knows that it goes by sex."""
    frame = population(2000, 1.0)
    made = published(frame)
    (found,) = definetti(made)
    assert found.by_group < 0.80
    assert found.learned > 0.97
    assert found.sure_right > 0.9 * found.sure > 0
    assert found.by_group == pytest.approx(assess(made.table).disclosures[0].mean)


def test_without_an_association_there_is_nothing_to_learn():
    """Any guess within a group hits its share, so the learner's advantage is chance: 6 sigma."""
    frame = population(4000, 0.0)
    (found,) = definetti(published(frame))
    assert found.gain < 6 * math.sqrt(0.25 / 4000)


def test_texts_are_attacked_as_the_publication_is():
    """Mondrian's strict boxes do not overlap, so that everyone's group is known from the texts."""
    frame = population(600, 0.8)
    made = published(frame)
    texts = Table(made.frame, None, ["age", "sex"], "ill")
    assert definetti_of_texts(texts, Table(frame, None, ["age", "sex"], "ill")) == definetti(made)


def test_several_sensitive_columns_and_many_numbers():
    rng = np.random.default_rng(2)
    frame = population(900, 0.9).assign(
        pay=rng.integers(0, 10**6, 900), town=rng.integers(0, 3, 900)
    )
    table = Table(frame, None, ["age", "sex", "pay"], ["ill", "town"])
    made = anonymize(table, KAnonymity(30), m=0)
    whole = definetti(made)
    assert [one.attribute for one in whole] == ["ill", "town"]
    assert {one.people for one in whole} == {900}


def test_of_large_tables_some_groups_are_attacked_or_none():
    """People of one age are one group, and each of them may have any illness of it."""
    ages, ills = [20] * 60 + [30] * 4100, [*range(2)] * 30 + [*range(4100)]
    table = Table(pd.DataFrame({"age": ages, "ill": ills}), None, ["age"], "ill")
    made = anonymize(table, KAnonymity(30), m=0)
    assert [one.people for one in definetti(made)] == [60]  # every n-th group
    with pytest.raises(UnsupportedError, match="too many"):
        definetti_of_texts(Table(made.frame, None, ["age"], "ill"), table)


def test_many_numbers_fall_into_bins_of_equal_size_and_categories_do_not():
    rows = np.arange(1000)
    pay = np.random.default_rng(1).permutation(1000).astype(np.int32)
    numbers = Column("pay", "numeric", tuple(range(1000)), pay)
    bins = MODULE._binned(numbers, rows)
    assert set(np.bincount(bins)) == {15, 16}
    assert len(set(bins)) == 64
    assert all(np.diff(bins[np.argsort(pay)]) >= 0)
    towns = Column("town", "categorical", tuple(range(1000)), pay)
    assert MODULE._binned(towns, rows).tolist() == pay.tolist()


def test_tables_that_do_not_go_together_are_refused():
    frame = population(50, 1.0)
    table = Table(frame, None, ["age", "sex"], "ill")
    with pytest.raises(InvalidInputError, match="same quasi-identifiers"):
        definetti_of_texts(table, Table(frame, None, ["age"], "ill"))
    with pytest.raises(InvalidInputError, match="same sensitive"):
        definetti_of_texts(table, Table(frame.assign(x=1), None, ["age", "sex"], "x"))
    with pytest.raises(InvalidInputError, match="fits a published group"):
        definetti_of_texts(table, Table(frame.assign(age=1), None, ["age", "sex"], "ill"))
    with pytest.raises(InvalidInputError, match="Pass a Table"):
        definetti_of_texts(frame, table)
    with pytest.raises(InvalidInputError, match="the result of anonymize"):
        definetti(table)
    with pytest.raises(InvalidInputError, match="the result of intersection"):
        assess(table, against=5)
