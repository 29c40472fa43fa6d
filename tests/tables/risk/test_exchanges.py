"""Drawn assignments against enumerated ones."""

from __future__ import annotations

import numpy as np
import pytest

from quiltwork.tables import EntropyLDiversity, KAnonymity, LDiversity
from quiltwork.tables.risk import exchanges

GROUPS = np.repeat([0, 1, 2], [8, 7, 5])
VALUES = np.array([*"aaaabbcc", *"aaabbcc", *"aabbc"])
CODES = np.unique(VALUES, return_inverse=True)[1]
CUTS = (
    (np.arange(6),),  # two values: no single exchange leads from one pair of them to the other
    (np.array([4, 5, 8, 9, 10, 11]), np.array([0, 1, 2])),
    (np.array([12, 13, 14]),),
)


def shares(found):
    by_row = {}
    for part in found:
        for rows, of_value in part.found:
            by_row |= {row: dict(of_value) for row in rows.tolist()}
    return by_row


@pytest.mark.parametrize("asked", [KAnonymity(3) & LDiversity(3), EntropyLDiversity(2.5)])
def test_drawn_assignments_have_the_shares_of_enumerated_ones(asked):
    """5 standard errors of some thousand rounds that hang together: within 0.08."""
    every = exchanges.attacked(GROUPS, CODES, CUTS, asked)
    assert all(part.exact for part in every)
    assert sorted(np.concatenate([part.rows for part in every])) == list(range(15))
    often = exchanges.Effort(worlds=0, rounds=2500, cold=0.3)  # changes sides often enough
    drawn = exchanges.attacked(GROUPS, CODES, CUTS, asked, often)
    assert not any(part.exact for part in drawn)
    exact, found = shares(every), shares(drawn)
    assert exact.keys() == found.keys()
    for row, of_value in exact.items():
        assert of_value.keys() == found[row].keys()
        for value, share in of_value.items():
            assert abs(found[row][value] - share) < 0.08
    away = [
        abs(exact[row].get(value, 0) - np.mean(CODES[GROUPS[row] == GROUPS] == value))
        for row in exact
        for value in range(3)
    ]
    assert max(away) > 0.16  # groups' own shares would be noticed


def test_without_exchanges_nothing_is_concluded():
    none = exchanges.Effort(worlds=0, rounds=0)
    assert all(not p.found for p in exchanges.attacked(GROUPS, CODES, CUTS, LDiversity(3), none))
