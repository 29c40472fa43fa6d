"""What a ledger promises, in both kinds of database."""

from __future__ import annotations

import json
import pickle
import re
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork.beliefs import Clusters
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.ledger import claims, verification
from quiltwork.budget.ledger.entries import Draft, canonical
from quiltwork.budget.ledger.notes import MOST_AN_HOUR
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    StorageError,
    UnsupportedError,
)
from tests.budget.accounting.test_growing_series import SUM, SWING


def test_ten_releases_of_a_tenth_fit_a_budget_of_one(ledger, independent):
    ledger.create("d", independent, 3, 1.0)
    for _ in range(10):
        ledger.accountant("d").spend(dp_epsilon=0.1)
    assert ledger.status("d").exact_total == 1
    with pytest.raises(BudgetExceeded, match="0 is left"):
        ledger.accountant("d").spend(dp_epsilon=1e-9)
    assert len(ledger.history("d")) == 10


def test_another_process_sees_the_same_account(ledger, url, chain):
    ledger.create("d", chain, 40, 2)
    ledger.accountant("d").spend(dp_epsilon=0.01, start=1, stop=10)
    expected = Accountant(chain, 40, 2)
    expected.spend(dp_epsilon=0.01, start=1, stop=10)
    other = Ledger.open(url)
    assert other.accountant("d").epsilon() == pytest.approx(expected.epsilon(), rel=1e-9)
    other.accountant("d").spend(dp_epsilon=0.02, start=5, stop=30)
    expected.spend(dp_epsilon=0.02, start=5, stop=30)
    assert ledger.accountant("d").epsilon() == pytest.approx(expected.epsilon(), rel=1e-9)
    assert [debit.spending for debit in ledger.history("d")] == list(expected.spendings)


def test_a_refused_request_changes_nothing(ledger, chain):
    ledger.create("d", chain, 40, 1)
    ledger.accountant("d").spend(dp_epsilon=0.01)
    before = ledger.log(), ledger.accountant("d").epsilon()
    for bad, error in [
        (lambda: ledger.accountant("d").spend(dp_epsilon=50.0), BudgetExceeded),
        (
            lambda: ledger.accountant("d").spend(dp_epsilon=0.01, start=30, stop=50),
            InvalidInputError,
        ),
        (lambda: Ledger("sqlite:///budget.db"), InvalidInputError),
        (lambda: ledger.debit("d", "histogram"), InvalidInputError),
        (lambda: ledger.debit("elsewhere", Spending.dp(0.1, 1, 2)), InvalidInputError),
        (lambda: ledger.extend("d", 39), InvalidInputError),
        (lambda: ledger.create("d", chain, 40, 5), InvalidInputError),
        (lambda: ledger.create("e", chain, 0, 5), InvalidInputError),
        (lambda: ledger.debit("d", _alone()), UnsupportedError),
        (lambda: ledger.allot("d", "ana", reserved=3), BudgetExceeded),
    ]:
        with pytest.raises(error) as refusal:
            bad()
        assert len(str(refusal.value)) > 30
    entries = tuple(entry for entry in ledger.log() if entry.kind != "refusal")
    assert (entries, ledger.accountant("d").epsilon()) == before
    (note_draft,) = ledger.notes()
    assert (note_draft.kind, note_draft.dataset, note_draft.who) == ("refusal", "d", "")
    assert "above the budget of 1" in note_draft.text


def _alone() -> Spending:
    return Spending(1, 40, composes_by="nothing", epsilon=Fraction(1, 10))


def test_rows_record_the_theorem_and_combinations_without_one_are_refused(ledger, chain):
    ledger.create("d", chain, 40, 1)
    ledger.debit("d", _alone())
    assert ledger.history("d")[0].composes_by == "nothing"
    with pytest.raises(UnsupportedError, match=r"[Nn]o theorem combines"):
        ledger.accountant("d").spend(dp_epsilon=0.001)
    assert json.loads(ledger.log()[1].body)["spending"]["composes_by"] == "nothing"


def test_a_chain_grows_and_what_was_spent_costs_no_more(ledger, chain):
    ledger.create("d", chain, 40, 1)
    ledger.accountant("d").spend(dp_epsilon=0.05)
    before = ledger.status("d").exact_total
    assert ledger.extend("d", 400).exact_total <= before
    ledger.accountant("d").spend(dp_epsilon=0.01, start=390)
    assert ledger.status("d").length == 400


def test_a_dataset_grows_as_far_as_budget_reserve_and_caps_allow(ledger):
    ledger.create("d", SWING, 2, 1.05)
    ledger.debit("d", SUM)
    with pytest.raises(BudgetExceeded, match=r"1\.366.* above the budget of 1\.05; the longest"):
        ledger.extend("d", 60)
    assert (ledger.status("d").length, len(ledger.log())) == (2, 2)
    kept = Fraction("1.05") - ledger.status("d").exact_total
    ledger.allot("d", "ana", reserved=kept)
    with pytest.raises(BudgetExceeded, match=r"of which 0\.032\d* is reserved; not even one"):
        ledger.extend("d", 4)
    ledger.create("capped", SWING, 2, 5)
    ledger.allot("capped", "ben", cap=1.05)
    ledger.debit("capped", SUM, analyst="ben")
    with pytest.raises(BudgetExceeded, match=r"above the cap of 'ben', 1\.05; the longest series"):
        ledger.extend("capped", 60)
    ledger.verify()


def test_a_dataset_that_a_correction_makes_dearer_grants_nothing_more_and_accuses_nobody(
    ledger, monkeypatch
):
    """As a corrected bound leaves one: a series that grew by an entry that records too little."""
    ledger.create("d", SWING, 2, 1.05)
    ledger.debit("d", SUM)
    bound = {"total": 1.04, "by": "priced", "version": 1}
    body = {"length": 60, "at": "2026-01-01T00:00:00+00:00", "after": 2, "bound": bound}
    draft = Draft("f" * 32, "d", "extend", canonical(body))
    ledger.store.write(lambda log: log.append(draft))
    small = Spending.of_query(qw.queries.sum(0, 1).on(5, 5), 10**6, 60)
    with pytest.raises(StorageError, match=r"entry 3 .* costs 1\.04 at most, .* cost 1\.366"):
        ledger.verify()  # no correction explains it
    monkeypatch.setattr(claims, "VERSION", 3)
    monkeypatch.setattr(verification, "VERSION", 3)
    monkeypatch.setitem(claims.CORRECTIONS, 2, "the bound for series that grow was too low")
    monkeypatch.setitem(claims.CORRECTIONS, 4, "something of later")
    why = r"costs 1\.366.* by version 3 .* by version 1, the bound for series that grow was too low"
    with pytest.raises(BudgetExceeded, match=why):
        ledger.debit("d", small)
    with pytest.raises(StorageError, match=why) as told:
        ledger.verify()
    assert not re.search("somebody|who writes|put in|[Rr]etire|damaged|later", str(told.value))
    ledger.create("e", SWING, 2, 5)
    ledger.debit("e", SUM)
    assert ledger.log()[-1].content["bound"]["version"] == 3


def test_a_retired_dataset_keeps_its_history_and_its_name(ledger, chain):
    ledger.create("d", chain, 40, 1)
    receipt = ledger.debit("d", Spending.dp(0.01, 1, 40), key="k")
    receipt.complete("answer")
    ledger.retire("d", "study ended")
    with pytest.raises(BudgetExceeded, match="study ended"):
        ledger.accountant("d").spend(dp_epsilon=0.001)
    with pytest.raises(InvalidInputError, match="exists already"):
        ledger.create("d", chain, 40, 1)
    assert ledger.debit("d", Spending.dp(0.01, 1, 40), key="k").stored == "answer"
    assert ledger.history("d")[0].state == "released"
    assert ledger.accountant("d").remaining == 0


def test_a_preview_prices_without_spending(ledger, chain):
    ledger.create("d", chain, 40, 1)
    reference = Accountant(chain, 40, 1)
    preview = ledger.preview("d", Spending.dp(0.02, 1, 40))
    assert preview.fits
    assert preview.after == reference.cost_after(Spending.dp(0.02, 1, 40))
    refused = ledger.preview("d", Spending.dp(9, 1, 40))
    assert not refused.fits
    assert refused.after == reference.cost_after(Spending.dp(9, 1, 40))
    assert "above the budget" in refused.refusal
    assert ledger.history("d") == ()


def test_unknown_places_and_datasets_get_sentences(url, ledger, chain):
    for ask in (
        ledger.verify,
        lambda: ledger.debit("d", Spending.dp(0.02, 1, 40)),
        lambda: ledger.debit_all("d", [Spending.dp(0.02, 1, 40)]),
        lambda: ledger.extend("d", 50),
    ):
        with pytest.raises(StorageError, match="no ledger at"):
            ask()
    ledger.create("d", chain, 40, 1)
    with pytest.raises(InvalidInputError, match=r"no dataset 'x'; there are 'd'\."):
        ledger.history("x")


def test_an_accountant_answers_every_question_of_an_accountant(ledger, chain):
    ledger.create("d", chain, 40, 1)
    account, reference = ledger.accountant("d"), Accountant(chain, 40, 1)
    for one in (account, reference):
        one.spend(dp_epsilon=0.02, start=3, stop=20)
    assert account.largest_next() == reference.largest_next()
    assert account.how_many_more(Spending.dp(0.01, 1, 5)) == reference.how_many_more(
        Spending.dp(0.01, 1, 5)
    )
    assert account.beliefs == reference.beliefs
    assert account.remaining == reference.remaining
    assert account.fits(Spending.dp(0.01, 1, 5))
    with pytest.raises(AttributeError):
        _ = account.nonsense


amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=2, max_denominator=10**6)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(amounts, st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=3), st.data())
def test_a_release_calibrated_to_what_remains_fits(tmp_path_factory, chain, budget, windows, data):
    url = f"sqlite:///{tmp_path_factory.mktemp('fits') / 'budget.db'}"
    ledger = Ledger.open(url)
    ledger.create("d", chain, 12, budget)
    for first, last in windows:
        window = sorted((first, last))
        part = data.draw(st.fractions(Fraction(1, 100), Fraction(3, 4), max_denominator=100))
        level = ledger.accountant("d").largest_next(*window)
        if level:
            ledger.accountant("d").spend(Fraction(level) * part, *window)
    level = ledger.accountant("d").largest_next()
    if level:
        Ledger.open(url).accountant("d").spend(level)
    assert ledger.status("d").exact_total <= budget


class TestKeys:
    def test_a_repeated_key_costs_nothing_and_returns_the_answer_byte_for_byte(
        self, ledger, url, chain
    ):
        ledger.create("d", chain, 40, 1)
        answer = '{"value": [1, 2.50], "text": "ä\\u0000\ud800"}'
        ledger.debit("d", Spending.dp(0.01, 1, 40), key="k").complete(answer)
        again = Ledger.open(url).debit("d", Spending.dp(0.01, 1, 40), key="k")
        assert again.stored == answer
        assert ledger.answer("d", "k") == answer
        assert len(ledger.history("d")) == 1

    def test_a_key_of_another_request_is_refused(self, ledger, chain):
        ledger.create("d", chain, 40, 1)
        ledger.debit("d", Spending.dp(0.01, 1, 40), key="k").complete("a")
        for other in (Spending.dp(0.01, 1, 39), Spending.dp(0.02, 1, 40)):
            with pytest.raises(InvalidInputError, match="another request"):
                ledger.debit("d", other, key="k")

    def test_every_analyst_has_keys_of_her_own(self, ledger, chain):
        """What one of them asked under a key tells another nothing."""
        ledger.create("d", chain, 40, 1)
        for who in (None, "ana", "ben"):
            level = Spending.dp(0.02 if who == "ben" else 0.01, 1, 40)
            ledger.debit("d", level, key="k", analyst=who).complete(f"for {who}")
        for who in (None, "ana", "ben"):
            assert ledger.answer("d", "k", analyst=who) == f"for {who}"
        assert len(ledger.history("d")) == 3
        again = ledger.debit("d", Spending.dp(0.01, 1, 40), key="k", analyst="ana")
        assert again.stored == "for ana"
        ledger.verify()

    def test_keys_are_the_datasets_own(self, ledger, chain):
        for name in ("d", "e"):
            ledger.create(name, chain, 40, 1)
            ledger.debit(name, Spending.dp(0.01, 1, 40), key="k").complete(name)
        assert [ledger.answer(name, "k") for name in ("d", "e")] == ["d", "e"]

    def test_an_answer_that_was_never_stored_is_not_drawn_again(self, ledger, url, chain):
        ledger.create("d", chain, 40, 1)
        ledger.debit("d", Spending.dp(0.01, 1, 40), key="k")
        total = ledger.status("d").exact_total
        with pytest.raises(NotPrivateError, match="second release"):
            Ledger.open(url).debit("d", Spending.dp(0.01, 1, 40), key="k")
        assert ledger.status("d").exact_total == total
        ledger.debit("d", Spending.dp(0.01, 1, 40), key="another").complete("a")

    def test_a_debit_has_one_answer(self, ledger, chain):
        ledger.create("d", chain, 40, 1)
        receipt = ledger.debit("d", Spending.dp(0.01, 1, 40))
        receipt.complete("first")
        with pytest.raises(InvalidInputError, match="one answer only"):
            receipt.complete("second")
        with pytest.raises(InvalidInputError, match="must be text"):
            ledger.debit("d", Spending.dp(0.01, 1, 40)).complete(3)


class TestShares:
    def test_what_is_reserved_is_left_for_its_analyst(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ana", reserved=0.4)
        ben, ana = (ledger.accountant("d", analyst=name) for name in ("ben", "ana"))
        ben.spend(dp_epsilon=0.6)
        with pytest.raises(BudgetExceeded, match="reserved for other"):
            ben.spend(dp_epsilon=0.1)
        with pytest.raises(BudgetExceeded, match="reserved for other"):
            ledger.accountant("d").spend(dp_epsilon=0.1)
        for _ in range(4):
            ana.spend(dp_epsilon=0.1)
        assert ledger.status("d").exact_total == 1
        assert ledger.status("d").charged == {"ben": Fraction(3, 5), "ana": Fraction(2, 5)}

    def test_a_cap_binds_its_analyst_only(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ben", cap=0.2)
        ben = ledger.accountant("d", analyst="ben")
        ben.spend(dp_epsilon=0.1)
        ben.spend(dp_epsilon=0.1)
        with pytest.raises(BudgetExceeded, match=r"above the cap of 0\.2"):
            ben.spend(dp_epsilon=0.01)
        ledger.allot("d", "ana")
        ledger.accountant("d", analyst="ana").spend(dp_epsilon=0.7)

    def test_a_share_changes_only_where_it_is_asked_to(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ben", cap=0.5)
        with pytest.raises(InvalidInputError, match=r"at most 0\.5; reserve less or raise the cap"):
            ledger.allot("d", "ben", reserved=0.6)
        shares = ledger.allot("d", "ben", reserved=0.4).shares
        assert (shares["ben"].cap, shares["ben"].reserved) == (Fraction(1, 2), Fraction(2, 5))
        shares = ledger.allot("d", "ben", cap=1).shares
        assert (shares["ben"].cap, shares["ben"].reserved) == (1, Fraction(2, 5))
        with pytest.raises(InvalidInputError, match=r"cap of 2 is above the budget of 1"):
            ledger.allot("d", "ben", cap=2)
        assert ledger.allot("d", "ben").shares == shares
        lifted = ledger.allot("d", "ben", cap=None, reserved=None).shares["ben"]
        assert (lifted.cap, lifted.reserved) == (None, 0)

    def test_a_cap_of_0_ends_what_an_analyst_may_use(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ben = ledger.accountant("d", analyst="ben")
        ben.spend(dp_epsilon=0.1)
        ledger.allot("d", "ben", cap=0, reserved=0)
        ledger.allot("d", "new", cap=0.0)
        for who in ("ben", "new"):
            with pytest.raises(BudgetExceeded, match=r"above the cap of 0 for this analyst"):
                ledger.debit("d", Spending.dp(Fraction(1, 10**9), 1, 3), analyst=who)
        ledger.verify()
        with pytest.raises(InvalidInputError, match="cap"):
            ledger.allot("d", "ben", cap=False)

    def test_nobody_gets_around_a_cap_by_no_name_or_a_new_one(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ben", cap=0.2)
        for who, words in [(None, "with analyst="), ("nobody", "let the owner allot one")]:
            for ask in (ledger.debit, ledger.preview):
                with pytest.raises(InvalidInputError, match=words) as refusal:
                    ask("d", Spending.dp(0.1, 1, 3), analyst=who)
                assert "ben" not in str(refusal.value)
            with pytest.raises(InvalidInputError, match=words):
                ledger.debit_all("d", [Spending.dp(0.1, 1, 3)], analyst=who)
        assert ledger.history("d") == ()
        assert [note.who for note in ledger.notes()] == ["", "", "nobody", "nobody"]
        for number in range(MOST_AN_HOUR):  # of new names there is no end
            with pytest.raises(InvalidInputError, match="allot"):
                ledger.debit("d", Spending.dp(0.1, 1, 3), analyst=f"nobody{number}")
        assert len(ledger.notes()) == MOST_AN_HOUR

    def test_a_cap_also_bounds_what_the_analyst_learns_alone(self, ledger):
        """In one cluster a second point costs the joint total nothing where others have paid."""
        ledger.create("d", Clusters(["a", "b"]), None, 1)
        ledger.allot("d", "ben", cap=0.3)
        ledger.allot("d", "ana")
        ledger.accountant("d", analyst="ana").spend(dp_epsilon=0.9, start=1, stop=1)
        ben = ledger.accountant("d", analyst="ben")
        ben.spend(dp_epsilon=0.2, start=2, stop=2)
        assert ledger.status("d").charged["ben"] == 0
        with pytest.raises(BudgetExceeded, match="cap"):
            ben.spend(dp_epsilon=0.2, start=2, stop=2)

    def test_shares_that_cannot_be_kept_are_refused(self, ledger, independent):
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ana", reserved=0.7)
        with pytest.raises(BudgetExceeded, match="neither spent nor reserved"):
            ledger.allot("d", "ben", reserved=0.4)
        with pytest.raises(InvalidInputError, match=r"at most 0\.1"):
            ledger.allot("d", "ben", cap=0.1, reserved=0.2)
        ledger.allot("d", "ana", reserved=0.6)
        ledger.allot("d", "ben", reserved=0.4)

    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_a_reserved_share_can_always_be_used(self, tmp_path_factory, chain, data):
        """Whatever others do, what is charged to ana can reach her share."""
        url = f"sqlite:///{tmp_path_factory.mktemp('shares') / 'budget.db'}"
        ledger = Ledger.open(url)
        share = data.draw(st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=20))
        ledger.create("d", chain, 8, 1)
        ledger.allot("d", "ana", reserved=share)
        for _ in range(data.draw(st.integers(0, 5))):
            who = data.draw(st.sampled_from(["ana", "ben", None]))
            first, last = sorted(data.draw(st.tuples(*[st.integers(1, 8)] * 2)))
            level = data.draw(st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=50))
            with suppress(BudgetExceeded):
                ledger.accountant("d", analyst=who).spend(level, first, last)
        used = ledger.status("d").charged.get("ana", Fraction(0))
        for _ in range(30):
            asked = Spending.dp(Fraction(1, 200), 1, 8)
            preview = ledger.preview("d", asked, analyst="ana")
            rise = Fraction(preview.after) - ledger.status("d").exact_total
            if used + rise > share:
                break
            ledger.debit("d", asked, analyst="ana")  # never refused
            used = ledger.status("d").charged["ana"]


def test_a_ledger_is_pickled_as_its_url_and_opens_the_same_budget(ledger, independent):
    ledger.create("d", independent, 4, 1)
    ledger.accountant("d").spend(dp_epsilon=0.25)
    with pickle.loads(pickle.dumps(ledger)) as again:  # noqa: S301  (our own bytes)
        assert len(again.history("d")) == 1


def test_a_cap_lowered_below_what_was_used_keeps_no_series_from_growing(ledger, chain):
    """Nothing more is granted to her, and what she was told stays as it is."""
    ledger.create("d", chain, 60, 1)
    ledger.allot("d", "ana", cap=Fraction(1, 2))
    ledger.debit("d", Spending.dp(0.05, 1, 60), analyst="ana")
    ledger.allot("d", "ana", cap=0)
    before = ledger.status("d").exact_total
    assert ledger.extend("d", 90).length == 90
    assert ledger.status("d").exact_total == pytest.approx(before)
    with pytest.raises(BudgetExceeded, match="above the cap of 0"):
        ledger.debit("d", Spending.dp(0.001, 70, 90), analyst="ana")
    ledger.verify()
