"""Refusals are noted, in the transaction that refuses, and do not fill the log."""

from __future__ import annotations

from fractions import Fraction

import pytest

from quiltwork.beliefs import Clusters
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.ledger.notes import MOST_AN_HOUR
from quiltwork.errors import BudgetExceeded


def test_refusals_without_end_do_not_fill_the_log(sqlite_url, independent):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 3, 1)
    for _ in range(MOST_AN_HOUR + 20):
        with pytest.raises(BudgetExceeded):
            ledger.debit("d", Spending.dp(2, 1, 3))
    notes = ledger.notes()
    assert len(notes) == MOST_AN_HOUR
    assert "not noted" not in notes[-2].text
    assert notes[-1].text.endswith("(Further refusals of this hour are not noted.)")
    ledger.verify()


def test_a_refusal_is_noted_in_the_transaction_that_refuses(sqlite_url, independent):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.5, 1, 3))
    seen = []
    honest = ledger._store.write_together
    ledger._store.write_together = lambda work: (seen.append(work), honest(work))[1]
    with pytest.raises(BudgetExceeded, match=r"to 1\.4, above"):
        ledger.debit("d", Spending.dp(0.9, 1, 3))
    assert len(seen) == len(ledger.notes()) == 1


def test_clusters_far_from_a_window_are_not_charged_for_it(sqlite_url):
    """Rows 1001, 1003, … are one cluster, on which nothing is spent; most is around row 698."""
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", Clusters([i if i < 1000 or i % 2 else "z" for i in range(1600)]), 1600, 0.5)
    windows = [(500 + i, 800 + i) for i in range(199)] + [(i, i) for i in range(1, 400, 2)]
    level = Fraction(1, 1000)
    asked = [Spending(*one, level, once=level) for one in windows]
    asked.append(Spending(698, 699, Fraction(1, 50), Fraction(45, 1000)))
    ledger.debit_all("d", asked[:-1])
    ledger.debit("d", asked[-1])
    charges = [sum(one.cost(row, row) for one in asked) for row in range(690, 710)]
    assert ledger.status("d").exact_total == max(charges) < Fraction(1, 2)
