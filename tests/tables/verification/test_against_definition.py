"""A sample of `make evidence`: every method against brute force over the definition."""

from __future__ import annotations

from evidence.checks import m_privacy


def test_all_methods_agree_with_all_coalitions():
    found = m_privacy.check_monotonic(60, 1)
    assert found["disagreements"] == 0


def test_every_set_in_between_is_covered():
    m_privacy.check_between(80, 2)


def test_people_with_several_records():
    m_privacy.check_people(60, 3)


def test_a_thousand_providers_and_half_of_them_colluding():
    """Searching coalitions would take C(1000, 500) checks."""
    found = m_privacy.many_providers(1000, 500, 12)
    assert found["most checks in one group"] < 1000
