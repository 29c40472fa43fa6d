from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.examples.hospitals import table_a, table_b
from quiltwork.tables import max_m, verify_m_privacy
from quiltwork.tables.constraints import Custom, EntropyLDiversity, KAnonymity, LDiversity
from quiltwork.tables.table import Table

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=25
)


def test_table_one():
    strict = max_m(table_b(), KAnonymity(3) & LDiversity(2))
    assert strict == 0
    assert isinstance(strict, int)
    assert strict.breach.m == 1
    assert strict.largest_passing_k == 2
    assert strict.explain().endswith("With k = 2 it would withstand 1.")
    assert max_m(table_b(), KAnonymity(2) & LDiversity(2)) == 1
    assert max_m(table_a(), KAnonymity(3) & LDiversity(2)).breach.coalition == ("P1",)


def test_the_ends_of_the_scale():
    assert max_m(table_a(), KAnonymity(1)) == 3
    assert max_m(table_a(), KAnonymity(1)).breach is None
    assert "every coalition" in max_m(table_a(), KAnonymity(1)).explain()
    hopeless = max_m(table_a(), KAnonymity(5))
    assert hopeless == -1
    assert hopeless.largest_passing_k == 3
    assert "Not safe even against outsiders" in hopeless.explain()
    assert max_m(table_a(), EntropyLDiversity(2)).largest_passing_k is None


@given(ROWS, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=40)
def test_it_is_the_last_m_that_verifies_and_k_mends_what_it_says(rows, k, number):
    table = Table(pd.DataFrame(rows, columns=["p", "q", "s"]), "p", ["q"], "s")
    constraint = KAnonymity(k) & LDiversity(number)
    found = max_m(table, constraint)
    providers = len({row[0] for row in rows})
    passing = [m for m in range(providers) if verify_m_privacy(table, constraint, m)]
    assert found == max(passing, default=-1)
    if found.breach is None:
        return
    mending = [
        lower
        for lower in range(1, k)
        if verify_m_privacy(table, KAnonymity(lower) & LDiversity(number), found + 1)
    ]
    assert found.largest_passing_k == max(mending, default=None)


def test_what_cannot_be_tried_counts_as_breached():
    rows = [(p, 1, v) for p in "ABCDEF" for v in range(8)] * 3
    table = Table(pd.DataFrame(rows, columns=["p", "q", "s"]), "p", ["q"], "s")
    never = Custom(lambda counts: True)
    found = max_m(table, never, limit=1000)
    assert found == 0
    assert not found.breach.settled
    assert found.explain().startswith("Proven safe only against outsiders. More may be withstood.")
    assert "Undecided" in found.explain()
    with pytest.raises(TypeError):
        max_m(table)


def test_a_constraint_without_k_is_not_told_to_lower_it():
    frame = pd.DataFrame({"who": ["A", "A", "B"], "age": [1, 1, 1], "ill": ["a", "b", "c"]})
    safe = max_m(Table(frame, "who", ["age"], "ill"), LDiversity(3))
    assert safe.breach is not None
    assert " k " not in safe.explain()


def test_the_largest_k_asked_for_is_the_one_to_mend():
    table = Table(pd.DataFrame({"who": [*"AAB"], "age": 1, "ill": [*"xyx"]}), "who", ["age"], "ill")
    for asked in (KAnonymity(4), KAnonymity(1) & KAnonymity(4)):
        assert max_m(table, asked).largest_passing_k == 3
