"""Risks of a table, counted again record by record."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from quiltwork.exact import percent
from quiltwork.tables.risk import assess, intersection
from quiltwork.tables.risk.assessment import SMALL
from quiltwork.tables.table import Table


@pytest.fixture
def frame():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "age": rng.choice(["0..19", "20..39", "40..59"], 200, p=[0.1, 0.5, 0.4]),
            "zip": rng.choice(["n", "{e, w}", "s"], 200, p=[0.05, 0.45, 0.5]),
            "ill": rng.choice(["flu", "cold", "gout"], 200, p=[0.7, 0.2, 0.1]),
            "pay": rng.integers(0, 3, 200),
            "person": rng.integers(0, 120, 200),
        }
    )


def test_reidentification_counts_records(frame):
    found = assess(Table(frame, None, ["age", "zip"], "ill")).reidentification
    sizes = Counter(zip(frame.age, frame.zip, strict=True))
    each = [sizes[pair] for pair in zip(frame.age, frame.zip, strict=True)]
    assert found.highest == max(1 / n for n in each)
    assert found.mean == pytest.approx(sum(1 / n for n in each) / 200)
    assert found.unique == each.count(1)
    assert found.below == {limit: sum(n < limit for n in each) for limit in SMALL}
    assert found.sizes == dict(Counter(sizes.values()))


def test_a_person_with_several_records_counts_once(frame):
    found = assess(Table(frame, None, ["age", "zip"], "ill", subject="person")).reidentification
    pairs = frame[["age", "zip", "person"]].drop_duplicates()
    sizes = pairs.groupby(["age", "zip"]).size()
    assert found.people == len(pairs)
    assert found.highest == 1 / sizes.min()
    assert found.below[10] == sizes[sizes < 10].sum()


def test_disclosure_is_what_the_best_guess_hits(frame):
    found = assess(Table(frame, None, ["age", "zip"], ["ill", "pay"])).disclosures
    assert [one.attribute for one in found] == ["ill", "pay"]
    for one in found:
        groups = frame.groupby(["age", "zip"])[one.attribute].agg(list)
        tops = [(Counter(g).most_common(1)[0][1], len(g)) for g in groups]
        assert one.records == 200
        assert one.mean == pytest.approx(sum(top for top, _ in tops) / 200)
        assert one.highest == max(top / size for top, size in tops)
        assert one.certain == sum(size for top, size in tops if top == size)
        assert one.surer[0.8] == sum(size for top, size in tops if top >= 0.8 * size)
        assert one.base == Counter(frame[one.attribute]).most_common(1)[0][1] / 200


def test_every_attack_is_named_with_figures_of_the_table(frame):
    earlier = frame.assign(age="0..59", person=frame.index)
    tables = [
        Table(f, None, ["age", "zip"], "ill", subject="person")
        for f in (earlier, frame.assign(person=frame.index))
    ]
    against = intersection(*tables)
    found = assess(tables[1], against)
    told = {one.attack: one.message for one in found.attacks}
    assert list(told) == ["minimality", "deFinetti", "downcoding", "intersection", "subtraction"]
    sizes = frame.groupby(["age", "zip"]).size()
    told_cells = sum(2 + 2 * (place[1] == "{e, w}") for place in sizes.index)
    cells = len(frame) + sum(frame.zip == "{e, w}")
    assert f"{percent(cells / 400)} of all cells are generalized" in told["downcoding"]
    assert f"{percent(told_cells / cells)} of these cells are revealed" in told["downcoding"]
    assert percent(found.disclosures[0].base) in told["deFinetti"]
    assert against.exact
    assert against.explain() in told["intersection"]
    assert "200 people are in both." in told["intersection"]
    plain = assess(Table(frame[["pay", "ill"]], None, ["pay"], "ill"))
    assert "No value is generalized" in plain.attacks[2].message
    assert "--against" in plain.attacks[3].message


def test_the_assessment_is_json_ready(frame):
    found = assess(Table(frame, None, ["age", "zip"], "ill"))
    read = json.loads(json.dumps(found.body()))
    assert read["models"]["k"] == found.models.k
    assert read["against"] is None
