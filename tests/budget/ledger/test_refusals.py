"""Refusals are noted, in the transaction that refuses, and do not fill the log."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction

import pytest

from quiltwork import queries, release
from quiltwork.beliefs import Clusters, MarkovChain
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
    honest = ledger._store.write_batched
    ledger._store.write_batched = lambda work: (seen.append(work), honest(work))[1]
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


class TestWhatFits:
    """Every refusal ends with the largest level and the least noise that fit, and these do."""

    CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])

    def refused(self, ledger, spending, analyst=None):
        with pytest.raises(BudgetExceeded) as found:
            ledger.debit("d", spending, analyst=analyst)
        return str(found.value)

    @pytest.mark.parametrize("share", [None, "capped", "beside what is reserved"])
    def test_what_is_said_to_fit_fits_and_more_does_not(self, sqlite_url, share):
        ledger, who = Ledger.open(sqlite_url), None if share is None else "ana"
        ledger.create("d", self.CHAIN, 100, 1)
        if share == "capped":
            ledger.allot("d", "ana", cap=Fraction(1, 3))
        if share == "beside what is reserved":
            ledger.allot("d", "ben", reserved=Fraction(1, 2))
            ledger.allot("d", "ana")
        ledger.debit("d", Spending.dp(0.01, 1, 60), analyst=who)
        asked = Spending.of_query(queries.count("walk").on(20, 60), 2, 100)
        said = self.refused(ledger, asked, who)
        level, times, epsilon = (
            Fraction(one)
            for one in re.search(
                r"dp_epsilon of (\S+) fits, with (\S+) times this noise; a release with epsilon "
                r"(\S+) has it\.$",
                said,
            ).groups()
        )
        for more in (level * Fraction(101, 100), asked.dp_epsilon / times * Fraction(101, 100)):
            assert not ledger.preview("d", Spending.dp(more, 20, 60), who).fits
        for one in (Spending.dp(level, 20, 60), asked.times(1 / times)):
            assert ledger.preview("d", one, who).fits
        data = self.CHAIN.sample(100, seed=1)
        beliefs = ledger.status("d").beliefs
        paid = {"ledger": ledger, "dataset": "d", "analyst": who}
        release(data, queries.count("walk").on(20, 60), beliefs, epsilon, **paid)

    def test_a_note_and_a_refusal_that_nobody_reads_price_nothing_more(
        self, sqlite_url, monkeypatch
    ):
        ledger = Ledger.open(sqlite_url)
        ledger.create("d", self.CHAIN, 100, 1)
        monkeypatch.setattr("quiltwork.budget.accounting.headroom.largest_factor", None)
        with pytest.raises(BudgetExceeded) as found:
            ledger.debit("d", Spending.dp(2, 1, 3))
        assert found.value.reason.endswith("Nothing was recorded.")
        assert ledger.notes()[0].text == found.value.reason

    def test_a_refusal_goes_to_another_process_with_its_sentence(self, sqlite_url):
        ledger = Ledger.open(sqlite_url)
        ledger.create("d", self.CHAIN, 100, 1)
        with pytest.raises(BudgetExceeded) as found:
            ledger.debit("d", Spending.dp(2, 1, 3))
        again = pickle.loads(pickle.dumps(found.value))  # noqa: S301
        assert isinstance(again, BudgetExceeded)
        assert str(again) == str(found.value)

    def test_where_nothing_fits_it_says_so(self, sqlite_url):
        ledger = Ledger.open(sqlite_url)
        ledger.create("d", self.CHAIN, 100, 1)
        ledger.allot("d", "ana", cap=0)
        assert self.refused(ledger, Spending.dp(1, 1, 3), "ana").endswith(
            "Nothing fits on this window any more."
        )
