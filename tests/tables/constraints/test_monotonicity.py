from __future__ import annotations

from functools import reduce
from itertools import product
from operator import and_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)

ALL = [
    KAnonymity(3),
    LDiversity(2),
    KAnonymity(3) & LDiversity(2),
    EntropyLDiversity(2),
    RecursiveLDiversity(2, 2),
    TCloseness(0.3, reference=(3, 2, 1)),
    TCloseness(0.2, "ordered", reference=(3, 2, 1)),
    KAnonymity(2) & EntropyLDiversity(2),
]


def breaks_by_adding(constraint):
    """Whether one more record breaks it; all sets of up to four of each of three values."""
    return any(
        constraint.holds(counted(some)) and not constraint.holds(counted((*some, value)))
        for some in SETS
        for value in range(3)
    )


def breaks_in_unions(constraint):
    """Whether it holds in two groups and not in both together."""
    fine = [some for some in SETS if len(some) < 7 and constraint.holds(counted(some))]
    return any(not constraint.holds(counted(one + two)) for one in fine for two in fine)


def counted(records):
    return SecretCounts.of(records)


SETS = [(0,) * a + (1,) * b + (2,) * c for a, b, c in product(range(5), repeat=3) if a + b + c]


@pytest.mark.parametrize("constraint", ALL, ids=str)
def test_every_declaration_stands_and_every_denial_has_a_reason(constraint):
    assert breaks_by_adding(constraint) is not constraint.eg_monotonic
    assert constraint.generalization_monotonic
    assert not breaks_in_unions(constraint)


RECORDS = st.lists(st.integers(0, 3), min_size=1, max_size=9)
FEATURES = st.one_of(
    st.integers(1, 5).map(KAnonymity),
    st.integers(1, 4).map(LDiversity),
    st.integers(0, 3).map(
        lambda value: Custom(lambda counts: value in counts, eg_monotonic=True, name="holds")
    ),
)


@given(st.lists(FEATURES, min_size=2, max_size=4), RECORDS, RECORDS)
def test_observation_2_2_conjunctions_keep_the_monotonicity_of_their_parts(parts, some, more):
    """Every part holds for the larger set where it holds for the smaller, and so do all of them."""
    whole = reduce(and_, parts)
    assert whole.eg_monotonic
    assert whole.holds(SecretCounts.of(some)) == all(p.holds(SecretCounts.of(some)) for p in parts)
    assert whole.holds(SecretCounts.of(some + more)) or not whole.holds(SecretCounts.of(some))


def test_observation_2_2_fails_with_one_part_that_is_not_monotonic():
    """The test above would notice: entropy diversity undoes a conjunction that claims otherwise."""

    def two_diverse(counts):
        return EntropyLDiversity(2).holds(SecretCounts.from_counts(counts))

    lie = KAnonymity(2) & Custom(two_diverse, eg_monotonic=True)
    assert lie.eg_monotonic
    assert breaks_by_adding(lie)


def test_the_papers_two_records():
    """Two records with two values are entropy 2-diverse; a third record undoes it."""
    assert EntropyLDiversity(2).holds(counted((0, 1)))
    assert not EntropyLDiversity(2).holds(counted((0, 1, 1)))
