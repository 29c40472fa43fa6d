from __future__ import annotations

from functools import reduce
from operator import and_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.tables.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.constraints.constraint import SecretCounts
from quiltwork.tables.constraints.monotonicity import refute

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


@pytest.mark.parametrize("constraint", ALL, ids=str)
def test_every_declaration_stands_and_every_denial_has_a_reason(constraint):
    found = refute(constraint, "eg")
    assert (found is None) is constraint.eg_monotonic
    if found is not None:
        assert constraint.holds(SecretCounts.of(found.satisfied))
        assert not constraint.holds(SecretCounts.of(found.violating))
    assert constraint.generalization_monotonic
    assert refute(constraint, "generalization") is None


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
    assert refute(lie, "eg") is not None


def test_the_papers_two_records():
    """Two records with two values are entropy 2-diverse; a third record undoes it."""
    found = refute(EntropyLDiversity(2))
    assert found is not None
    assert sorted(found.satisfied) == [0, 1]
    assert len(found.added) == 1


def test_a_false_declaration_is_refuted():
    lie = Custom(lambda counts: sum(counts.values()) % 2 == 0, eg_monotonic=True)
    assert refute(lie, "eg") is not None
    even_is_closed_under_unions = refute(lie, "generalization")
    assert even_is_closed_under_unions is None
    odd = Custom(lambda counts: sum(counts.values()) % 2 == 1, generalization_monotonic=True)
    assert refute(odd, "generalization") is not None


def test_an_unknown_property_is_refused():
    with pytest.raises(InvalidInputError, match="'eg' or 'generalization'"):
        refute(KAnonymity(1), "both")
