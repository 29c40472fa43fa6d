"""What is refused early would be refused by an account from scratch, and is noted."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import Clusters, MarkovChain
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.notes import MOST_AN_HOUR
from quiltwork.budget.ledger.refusing import exceeding_near, refuse_alone
from quiltwork.budget.ledger.totals import Totals
from quiltwork.errors import BudgetExceeded
from tests.budget.ledger.test_shortcuts import BELIEFS, LENGTH, QUIET, P, spendings
from tests.sizes import sample


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
    honest = ledger._store.write
    ledger._store.write = lambda work: (seen.append(work), honest(work))[1]
    with pytest.raises(BudgetExceeded, match=r"to 1\.4, above"):
        ledger.debit("d", Spending.dp(0.9, 1, 3))
    assert len(seen) == len(ledger.notes()) == 1


def test_what_asks_for_as_much_as_was_refused_is_refused_without_a_sweep(sqlite_url, monkeypatch):
    """Whatever was debited since; a longer series is looked at anew, and so is less."""
    ledger, other = Ledger.open(sqlite_url), Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[0], 500, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 500))
    with pytest.raises(BudgetExceeded, match="is left"):
        ledger.debit("d", Spending.dp(0.9, 100, 200))
    other.debit("d", Spending.dp(0.01, 1, 500))
    with monkeypatch.context() as patched:
        patched.setattr(Secrets, "found", None)
        patched.setattr(Secrets, "found_after", None)
        for one in (Spending.dp(0.9, 100, 200), Spending(90, 300, Fraction(1), Fraction(1, 2))):
            with pytest.raises(BudgetExceeded, match="or more, above the budget of 1"):
                ledger.debit("d", one)
    ledger.debit("d", Spending.dp(0.01, 100, 200))
    ledger.extend("d", 501)
    with pytest.raises(BudgetExceeded, match="is left"):
        ledger.debit("d", Spending.dp(0.9, 100, 200))
    assert len(ledger.notes()) == 4
    ledger.retire("d", "study ended")
    with pytest.raises(BudgetExceeded, match="is retired"):
        ledger.debit("d", Spending.dp(0.9, 100, 200))
    ledger.verify()


@settings(max_examples=sample(40, full=2000), suppress_health_check=QUIET)
@given(
    st.sampled_from([*BELIEFS, MarkovChain(P, [1, 0]), MarkovChain([[0, 1], [1, 0]], [1, 0])]),
    st.sampled_from([1, 3]),
    st.lists(spendings(60), min_size=1, max_size=3),
)
def test_what_is_refused_by_itself_is_above_the_budget_from_scratch(belief, episode, asked):
    """No more than a swept total is said; a chain that is known from its start hides nothing."""
    secrets = Secrets.read(belief, 60, episode)
    total = Account(secrets).plus(asked).total
    state = SimpleNamespace(name="d", created=1, length=60, budget=Fraction(0))
    found = max(_least(state, secrets, one) for one in asked)
    assert found <= total
    assert bool(found) == (belief in BELIEFS)


@settings(max_examples=sample(25, full=2000), deadline=None)
@given(
    st.sampled_from(BELIEFS),
    st.sampled_from([1, 3]),
    st.lists(spendings(), max_size=12),
    spendings(),
    st.booleans(),
    st.floats(0.5, 1.5),
)
def test_what_exceeds_the_budget_near_one_time_point_does_from_scratch(
    belief, episode, before, asked, known, share
):
    """At budgets around the total, where it is decided: only what exceeds them is refused."""
    scratch = Accountant(belief, LENGTH, episode=episode)
    scratch.add_all([*before, asked])
    budget = scratch.exact_epsilon * Fraction(share)
    account = Account(Secrets.read(belief, LENGTH, episode)).plus(before)
    if known:
        assert account.total >= 0  # so that its worst time point is known
    size = {"name": "d", "created": 1, "length": LENGTH, "budget": budget}
    state = SimpleNamespace(**size, tells=True, account=account, base=account)
    found = exceeding_near(state, asked, many=0)
    if found is None:
        return
    assert scratch.exact_epsilon > budget
    assert budget < found.total <= scratch.exact_epsilon * (1 + Fraction(1, 2**26))


def test_refusals_near_the_limit_say_that_it_would_be_more(sqlite_url):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[0], LENGTH, 1)
    ledger.debit_all("d", [Spending.dp(Fraction(1, 9**6), n, 2 * n) for n in range(1, 900)])
    for window in ((1, LENGTH), (1000, 1100)):
        with pytest.raises(BudgetExceeded, match="or more"):
            ledger.debit("d", Spending.dp(Fraction(999, 1000), *window))
    ledger.debit("d", Spending.dp(Fraction(1, 50), 1, 10))


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


def test_what_asks_too_much_by_itself_is_refused_by_the_row_alone(sqlite_url, monkeypatch):
    ledger = Ledger.open(sqlite_url)
    ledger.create("d", BELIEFS[0], 500, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 500))
    cold = Ledger.open(sqlite_url)
    with monkeypatch.context() as patched:
        patched.setattr(Totals, "found", None)
        with pytest.raises(BudgetExceeded, match=r"to 1\.1 or more, above the budget of 1\."):
            cold.debit("d", Spending.dp(1.1, 7, 7))
    assert [note.kind for note in cold.notes()] == ["refusal"]


def _least(state, secrets, asked):
    """The total that a refusal says, to as many digits as it does."""
    try:
        refuse_alone(state, secrets, asked)
    except BudgetExceeded as refusal:
        said = str(refusal).split(" or more")[0].rsplit(" ", 1)[1]
        return Fraction(said) * (1 - Fraction(1, 10**8))
    return 0
