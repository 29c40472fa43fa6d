"""Each constraint against its definition in exact fractions, its score, and its monotonicity."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import coalition_reference as reference
from quiltwork.errors import InvalidInputError
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
    as_constraint,
)
from quiltwork.tables.constraints.constraint import score
from quiltwork.tables.table import Table
from tests.sizes import sample

CODES = st.lists(st.integers(0, 4), min_size=1, max_size=12)
NUMBERS = st.integers(1, 12).map(lambda n: Fraction(n, 4))


def records(codes):
    return [reference.Record("P", code, i) for i, code in enumerate(codes)]


def bound(constraint, codes):
    frame = pd.DataFrame({"q": 0, "s": [*codes]})
    return constraint.bind(Table(frame, None, ["q"], "s").encoded)


@given(CODES, st.integers(1, 6), NUMBERS, st.fractions(0, Fraction(9, 10), max_denominator=10))
@settings(max_examples=sample(75, full=150))
def test_constraints_are_their_definitions(codes, number, c, t):
    whole = [*range(5), 0, 1, 1, 2]
    level = 1 + c
    pairs = [
        (KAnonymity(number), reference.k_anonymous(number)),
        (LDiversity(number), reference.distinct_diverse(number)),
        (EntropyLDiversity(level), reference.entropy_diverse(level)),
        (RecursiveLDiversity(c, number), reference.recursively_diverse(c, number)),
        (bound(TCloseness(t), whole), reference.close(t, records(whole), None)),
        (
            bound(TCloseness(t, "ordered"), whole),
            reference.close(t, records(whole), range(5)),
        ),
    ]
    for constraint, rule in pairs:
        histogram = SecretCounts.of(codes)
        assert constraint.holds(histogram) is rule(records(codes)), str(constraint)
        assert (constraint.fitness(histogram) >= 1) is constraint.holds(histogram)


def test_equal_frequencies_are_exactly_l_diverse():
    for size in (2, 3, 7, 49, 1000):
        assert EntropyLDiversity(size).holds(SecretCounts.of([*range(size)] * 3))
        assert not EntropyLDiversity(size + Fraction(1, 10**9)).holds(SecretCounts.of(range(size)))


def test_emd_of_a_known_case():
    """Salaries 3k to 11k in nine steps: the t-closeness paper's example, 0.375 and 0.167."""
    constraint = bound(TCloseness(0.2, "ordered"), range(9))
    assert constraint.emd(SecretCounts.of([0, 1, 2])) == Fraction(3, 8)
    assert constraint.emd(SecretCounts.of([3, 5, 8])) == Fraction(1, 6)
    assert constraint.holds(SecretCounts.of([3, 5, 8]))
    assert not constraint.holds(SecretCounts.of([0, 1, 2]))


def test_large_tables_do_not_overflow():
    whole = SecretCounts(4 * 10**9, np.array([0, 1]), np.array([10**9, 3 * 10**9]))
    constraint = TCloseness(0.1, reference=(10**12, 3 * 10**12))
    assert constraint.emd(whole) == 0


@given(CODES, st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.3, 0.8]))
def test_the_score_is_equation_1_kept_below_1_where_violated(codes, k, number, alpha):
    histogram = SecretCounts.of(codes)
    constraint = KAnonymity(k) & LDiversity(number)
    mean = (1 - alpha) * len(codes) / k + alpha * len(set(codes)) / number
    found = score(constraint, histogram, alpha)
    assert (found >= 1) is constraint.holds(histogram)
    if constraint.holds(histogram) or mean < 1:
        assert found == pytest.approx(mean)


def test_a_callable_joins_by_and():
    def no_majority(counts):
        return max(counts.values()) * 2 <= sum(counts.values())

    both = KAnonymity(2) & no_majority
    assert [str(part) for part in both.parts] == ["2-anonymity", "no_majority"]
    assert both.holds(SecretCounts.of([0, 1]))
    assert not both.holds(SecretCounts.of([0, 1, 1]))
    assert not both.eg_monotonic
    assert (no_majority & KAnonymity(2)).parts == both.parts[::-1]


def test_a_custom_constraint_sees_labels():
    seen = []
    frame = pd.DataFrame({"q": [1, 1], "s": ["flu", "cold"]})
    constraint = Custom(lambda counts: bool(seen.append(counts)) or True)
    constraint.bind(Table(frame, None, ["q"], "s").encoded).holds(SecretCounts.of([0, 1, 1]))
    assert seen == [{"cold": 1, "flu": 2}]


def test_declared_monotonicity_of_conjunctions():
    """Observation 2.2."""
    eg = KAnonymity(2) & LDiversity(2)
    assert eg.eg_monotonic
    assert eg.generalization_monotonic
    loose = eg & EntropyLDiversity(2)
    assert not loose.eg_monotonic
    assert loose.generalization_monotonic
    assert (eg & Custom(lambda counts: True, eg_monotonic=True)).eg_monotonic


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KAnonymity(0), "k must be at least 1"),
        (lambda: LDiversity(True), "l must be an integer"),
        (lambda: EntropyLDiversity(0.5), "l must be at least 1"),
        (lambda: RecursiveLDiversity(0, 2), "c must be greater than 0"),
        (lambda: TCloseness(1), "below 1"),
        (lambda: TCloseness(0.1, "far"), "'equal' or 'ordered'"),
        (lambda: TCloseness(0.1).holds(SecretCounts.of([0])), "bind"),
        (lambda: as_constraint(3), "3 is not a privacy constraint"),
        (lambda: as_constraint(KAnonymity), "not a privacy constraint"),
        (lambda: score(KAnonymity(1), SecretCounts.of([0]), alpha=1), "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_the_ordered_distance_needs_an_order():
    with pytest.raises(InvalidInputError, match="needs sensitive values with an order"):
        bound(TCloseness(0.1, "ordered"), ["x", "y"])


@pytest.mark.parametrize("constraint", [EntropyLDiversity, TCloseness])
def test_an_endless_level_is_refused_in_a_short_sentence(constraint):
    with pytest.raises(InvalidInputError, match=r"at least .* \(401 characters\)") as told:
        constraint(10**400)
    assert len(str(told.value)) < 200
