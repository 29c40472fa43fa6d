"""A sample of `make evidence`: every method against brute force over the definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from evidence.checks import m_privacy
from quiltwork.counts import GeometricMechanism


def test_all_methods_agree_with_all_coalitions():
    found = m_privacy.check_monotonic(60, 1)
    assert found["disagreements"] == 0


def test_every_set_in_between_is_covered():
    m_privacy.check_between(80, 2)


def test_people_with_several_records():
    m_privacy.check_people(60, 3)


def test_missing_values_and_chapters():
    m_privacy.check_uncounted(120, 5)


def test_a_thousand_providers_and_half_of_them_colluding():
    """Searching coalitions would take C(1000, 500) checks."""
    found = m_privacy.many_providers(1000, 500, 12)
    assert found["most checks in one group"] < 1000


def test_differential_privacy_implies_n_minus_1_privacy():
    """Every coalition, every rest, every answer of a geometric mechanism, in exact fractions."""
    providers, alpha = 4, Fraction(1, 3)
    law = GeometricMechanism(providers, alpha=alpha).matrix(exact=True)
    tables = list(product((0, 1), repeat=providers))  # one record each

    def told(table, answer):
        return Fraction(law[sum(table)][answer])

    worst = Fraction(0)
    rng = np.random.default_rng(5)
    for size in range(providers):
        for coalition in combinations(range(providers), size):
            victim = next(i for i in range(providers) if i not in coalition)
            weights = [Fraction(int(w), 97) for w in rng.integers(1, 97, providers)]
            for own in product((0, 1), repeat=size):
                fits = [
                    t for t in tables if all(t[i] == v for i, v in zip(coalition, own, strict=True))
                ]
                for answer in range(providers + 1):
                    odds = [Fraction(0), Fraction(0)]
                    for table in fits:  # the others' records, independent of the victim's
                        belief = Fraction(1)
                        for i in {*range(providers)} - {*coalition, victim}:
                            belief *= weights[i] if table[i] else 1 - weights[i]
                        odds[table[victim]] += belief * told(table, answer)
                    worst = max(worst, odds[0] / odds[1], odds[1] / odds[0])
    assert worst == 1 / alpha, "reached, and never above"
    # All records alike: independence is needed.
    together = told((1,) * providers, providers) / told((0,) * providers, providers)
    assert together > 1 / alpha


def test_what_is_published_keeps_the_definition_under_every_constraint_and_option():
    assert m_privacy.check_published(56, 4)["of which published"] > 20
