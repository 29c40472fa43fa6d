from __future__ import annotations

import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.publishing.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.publishing.histogram import Histogram
from quiltwork.publishing.monotonicity import refute

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
        assert constraint.holds(Histogram.of(found.satisfied))
        assert not constraint.holds(Histogram.of(found.violating))
    assert constraint.generalization_monotonic
    assert refute(constraint, "generalization") is None


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
