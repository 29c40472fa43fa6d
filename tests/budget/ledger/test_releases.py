"""Series, counts and tables debit the same ledger, before they draw."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    StorageError,
    UnsupportedError,
)
from quiltwork.influence import sweep_bound


@pytest.fixture
def data(chain):
    return chain.sample(40, seed=1)


def test_a_release_is_debited_and_its_answer_stored(ledger, chain, data):
    ledger.create("d", chain, 40, 2)
    released = qw.release(
        data, qw.queries.histogram(), chain, epsilon=1.0, ledger=ledger, dataset="d", key="monday"
    )
    (debit,) = ledger.history("d")
    assert (debit.state, debit.key, debit.composes_by) == ("released", "monday", "levels")
    assert debit.request["query"]["kind"] == "histogram"
    assert "value" not in debit.request
    assert ledger.answer("d", "monday") == released.to_json()
    reference = Accountant(chain, 40, 2)
    reference.add(released)
    assert ledger.accountant("d").epsilon() == reference.epsilon() <= 1


def test_a_repeated_release_is_the_same_answer_for_nothing(ledger, url, chain, data, monkeypatch):
    ledger.create("d", chain, 40, 1)
    asked = {"dataset": "d", "key": "k", "epsilon": 0.5}
    query = qw.queries.count("walk").on(3, 30)
    first = qw.release(data, query, chain, ledger=ledger, **asked)
    total = ledger.status("d").exact_total
    again = qw.release(data, query, chain, ledger=Ledger.open(url), **asked)
    assert again.to_json() == first.to_json()
    with monkeypatch.context() as later:  # a version that computes other noise
        later.setattr(sweep_bound, "_ROUNDING", Fraction(1001, 1000))
        other = qw.calibrate(chain, 40, 0.5, query=query).exact_scale
        assert other != first.noise_scale
        again = qw.release(data, query, chain, ledger=Ledger.open(url), **asked)
        assert again.to_json() == first.to_json()
        with pytest.raises(InvalidInputError, match="another request"):
            qw.release(data, query, chain, ledger=ledger, **{**asked, "epsilon": 0.25})
    assert ledger.status("d").exact_total == total
    with pytest.raises(InvalidInputError, match="another request"):
        qw.release(data, qw.queries.histogram(), chain, ledger=ledger, **asked)


def test_a_refused_release_uses_no_data_and_leaves_no_trace(ledger, chain, data, monkeypatch):
    ledger.create("d", chain, 40, 1)
    monkeypatch.setattr("quiltwork.series.releases.answer.draw_answer", None)
    with pytest.raises(BudgetExceeded):
        qw.release(data, qw.queries.histogram(), chain, epsilon=4.0, ledger=ledger, dataset="d")
    assert [entry.kind for entry in ledger.log()] == ["create", "refusal"]
    assert ledger.status("d").total == 0


def test_other_beliefs_and_longer_data_are_refused_with_a_way_out(ledger, chain, data):
    ledger.create("d", chain, 40, 1)
    other = qw.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "walk"])
    histogram = qw.queries.histogram()
    with pytest.raises(InvalidInputError, match=r"release with ledger.status\('d'\).beliefs"):
        qw.release(data, histogram, other, epsilon=0.1, ledger=ledger, dataset="d")
    longer = chain.sample(50, seed=1)
    with pytest.raises(InvalidInputError, match=r"ledger.extend\('d', 50\)"):
        qw.release(longer, histogram, chain, epsilon=0.1, ledger=ledger, dataset="d")
    ledger.extend("d", 50)
    beliefs = ledger.status("d").beliefs
    qw.release(longer, histogram, beliefs, epsilon=0.1, ledger=ledger, dataset="d")
    assert len(ledger.history("d")) == 1
    with pytest.raises(InvalidInputError, match=r"have 40 .* 'd' has 50; give all .*query\.on"):
        qw.release(data, histogram, chain, epsilon=0.1, ledger=ledger, dataset="d")
    assert len(ledger.history("d")) == 1


def test_a_release_protects_the_stretches_of_its_dataset_unless_it_says_otherwise(
    ledger, chain, data
):
    ledger.create("d", chain, 40, 5, episode=4)
    asked = {"epsilon": 0.1, "ledger": ledger, "dataset": "d"}
    for said, episode in (({}, 4), ({"protect": "episode"}, 4), ({"protect": "moment"}, 1)):
        found = qw.release(data, qw.queries.histogram(), chain, **asked, **said)
        alone = qw.release(data, qw.queries.histogram(), chain, epsilon=0.1, episode=episode)
        assert (found.episode, found.noise_scale) == (episode, alone.noise_scale)


def test_a_series_may_be_behind_its_ledger_if_that_is_said(ledger, chain, data):
    ledger.create("d", chain, len(data) + 20, 5)
    asked = {"ledger": ledger, "dataset": "d", "key": "q"}
    with pytest.raises(InvalidInputError, match="give all of them"):
        qw.release(data, qw.queries.histogram(), chain, **asked)
    with pytest.raises(InvalidInputError, match="beginning_of"):
        qw.release(data, qw.queries.histogram(), chain, **asked, beginning_of=len(data) - 1)
    assert ledger.history("d") == ()
    first = qw.release(data, qw.queries.histogram(), chain, **asked, beginning_of=len(data) + 20)
    ledger.extend("d", len(data) + 30)
    again = qw.release(data, qw.queries.histogram(), chain, **asked, beginning_of=len(data) + 30)
    assert again == first
    assert len(ledger.history("d")) == 1


def test_no_cell_is_looked_at_for_a_release_that_is_not_about_the_dataset(ledger, chain, data):
    """Else beliefs with fewer states would find out, for nothing, which states occur."""
    ledger.create("d", chain, 40, 1)
    guesses = [
        qw.MarkovChain(np.full((2, 2), 0.5), states=states)
        for states in (["rest", "run"], ["rest", "walk"], ["swim", "walk"])
    ]
    refusals = set()
    for guess in guesses:
        with pytest.raises(InvalidInputError) as refused:
            qw.release(data, qw.queries.histogram(), guess, ledger=ledger, dataset="d")
        refusals.add(str(refused.value))
    assert len(refusals) == 1


@pytest.mark.parametrize("rows", [[1, 2, 3, 4], [99, -7, 3, 4], ["a", 2, 3, 4]])
def test_rows_without_states_say_nothing_before_they_are_paid_for(ledger, rows):
    """Whatever a query chooses, it is granted or refused alike, but for rows without a number."""
    ledger.create("d", qw.Clusters(range(4)), None, 2)
    asked = {"beliefs": qw.Clusters(range(4)), "ledger": ledger, "dataset": "d", "epsilon": 0.1}
    queries = [qw.queries.histogram(states=[3]), qw.queries.transitions(states=[3, 9])]
    queries += [qw.queries.most_common(states=[8, 3]), qw.queries.count(3)]
    queries += [qw.queries.mean(0, high) for high in (1, 5, 200)] if rows[0] != "a" else []
    for number, query in enumerate(queries, start=1):
        qw.release(rows, query, **asked)
        assert len(ledger.history("d")) == number


def test_a_key_stands_for_one_version_of_a_function(ledger, chain, data):
    ledger.create("d", chain, 40, 1)
    asked = {"epsilon": 0.1, "ledger": ledger, "dataset": "d", "key": "k"}

    def counted(version, scale=1):
        return qw.queries.custom(
            lambda x: scale * (x == "walk").sum(),
            lipschitz=Fraction(scale),
            name="count",
            version=version,
        )

    first = qw.release(data, counted("1"), chain, **asked)
    assert qw.release(data, counted("1"), chain, **asked) == first
    for other in (counted("2"), counted("1", scale=2)):
        with pytest.raises(InvalidInputError, match="another request"):
            qw.release(data, other, chain, **asked)
    assert len(ledger.history("d")) == 1
    with pytest.raises(UnsupportedError, match=r"has no version.*version='1'"):
        qw.release(data, counted(None), chain, **asked)
    qw.release(data, counted(None), chain, epsilon=0.1, ledger=ledger, dataset="d")


def test_a_crash_while_drawing_leaves_the_debit_and_no_second_draw(
    ledger, chain, data, monkeypatch
):
    ledger.create("d", chain, 40, 1)
    asked = {"epsilon": 0.5, "ledger": ledger, "dataset": "d", "key": "k"}
    with monkeypatch.context() as crash:
        crash.setattr("quiltwork.series.releases.answer.draw_answer", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            qw.release(data, qw.queries.histogram(), chain, **asked)
    assert [debit.state for debit in ledger.history("d")] == ["debited"]
    with pytest.raises(NotPrivateError, match="second release"):
        qw.release(data, qw.queries.histogram(), chain, **asked)


def test_an_answer_that_cannot_be_stored_is_not_shown(ledger, chain, data, monkeypatch):
    ledger.create("d", chain, 40, 1)

    def full(*_):
        raise StorageError("no room")

    monkeypatch.setattr(Ledger, "complete", full)
    with pytest.raises(StorageError, match="no room"):
        qw.release(data, qw.queries.histogram(), chain, 0.5, ledger=ledger, dataset="d")
    assert [debit.state for debit in ledger.history("d")] == ["debited"]


def test_every_query_can_be_debited(ledger, chain, data):
    ledger.create("d", chain, 40, 50)
    queries = qw.queries
    asked = [
        queries.count("walk"),
        queries.histogram(),
        queries.frequencies(),
        queries.transitions(),
        queries.most_common(),
        queries.count("walk").on(3, 9),
        queries.custom(lambda codes: float(len(codes)), lipschitz=1),
    ]
    reference = Accountant(chain, 40, 50)
    for query in asked:
        reference.add(qw.release(data, query, chain, epsilon=1, ledger=ledger, dataset="d"))
    assert ledger.accountant("d").exact_epsilon == reference.exact_epsilon
    ledger.verify()


def test_entry_dp_on_a_chain_is_charged_and_recorded_at_its_true_price(ledger, chain, data):
    ledger.create("d", chain, 40, 10)
    with pytest.warns(qw.QuiltworkWarning):
        released = qw.release(
            data, qw.queries.count("walk"), chain, 1, method="entry", ledger=ledger, dataset="d"
        )
    (debit,) = ledger.history("d")
    price = qw.influence_curve(chain, 40).epsilon(1)
    assert price > 3
    assert released.epsilon == pytest.approx(price) == ledger.accountant("d").epsilon()
    assert debit.spending.epsilon == released.exact_epsilon
    assert Fraction(debit.request["exact_epsilon"]) == released.exact_epsilon


def test_a_release_without_noise_is_refused(ledger):
    certain = qw.MarkovChain([[0.0, 1.0], [1.0, 0.0]], initial=[1, 0])
    ledger.create("d", certain, 4, 1)
    with pytest.raises(UnsupportedError, match="no noise"):
        qw.release([0, 1, 0, 1], qw.queries.histogram(), certain, ledger=ledger, dataset="d")


def test_pooled_subjects_cost_one_subject(ledger, chain):
    ledger.create("fleet", chain, 40, 1)
    fleet = {f"home {n}": chain.sample(40 - n, seed=n) for n in range(5)}
    released = qw.release(
        fleet, qw.queries.histogram(), chain, epsilon=0.5, ledger=ledger, dataset="fleet"
    )
    assert released.subjects == 5
    assert ledger.accountant("fleet").epsilon() <= 0.5


def test_counts_debit_the_same_ledger(ledger):
    people = qw.Clusters(np.repeat(np.arange(10), 2))
    ledger.create("people", people, None, 1)
    mechanism = qw.GeometricMechanism(20, epsilon=Fraction(1, 10))
    answer = mechanism.release(7, ledger=ledger, dataset="people", key="count")
    assert mechanism.release(7, ledger=ledger, dataset="people", key="count") == answer
    assert ledger.status("people").exact_total == Fraction(2, 10)
    for _ in range(4):
        mechanism.release(7, ledger=ledger, dataset="people")
    with pytest.raises(BudgetExceeded):
        mechanism.release(7, ledger=ledger, dataset="people")
    assert [debit.mechanism for debit in ledger.history("people")] == ["geometric"] * 5
    assert ledger.answer("people", "count") == str(answer)


def test_counts_for_other_beliefs_are_refused(ledger):
    people = qw.Clusters(np.repeat(np.arange(10), 2))
    ledger.create("people", people, None, 1)
    same = qw.GeometricMechanism(20, epsilon=0.5, beliefs=people)
    same.release(7, ledger=ledger, dataset="people")
    assert ledger.status("people").exact_total == Fraction(1, 2)
    other = qw.GeometricMechanism(20, epsilon=0.1, beliefs=qw.Clusters(range(20)))
    with pytest.raises(InvalidInputError, match="other beliefs"):
        other.release(7, ledger=ledger, dataset="people")


def test_tables_of_counts_debit_the_same_ledger(ledger):
    from quiltwork.counts import release_table

    ledger.create("people", qw.Clusters(range(20)), None, 1)
    asked = {"epsilon": 0.5, "ledger": ledger, "dataset": "people", "key": "t"}
    first = release_table({"f": 12, "m": 8}, **asked)
    assert release_table({"f": 12, "m": 8}, **asked) == first
    assert len(ledger.history("people")) == 1


@pytest.mark.parametrize("people", [19, 20, 21, 40, 41])
def test_a_table_is_about_as_many_people_as_the_dataset(ledger, chain, people):
    """Else other numbers of people would find out, for nothing, how many were counted."""
    from quiltwork.counts import release_table

    ledger.create("d", chain, 40, 1)
    asked = {"beliefs": chain, "people": people, "epsilon": 0.1, "ledger": ledger, "dataset": "d"}
    if people == 40:
        release_table({"f": 12, "m": 8}, **asked)
    else:
        with pytest.raises(InvalidInputError, match=f"have {people} time points, .* has 40"):
            release_table({"f": 12, "m": 8}, **asked)
    assert len(ledger.history("d")) == (people == 40)


def test_a_release_of_simulated_data_is_priced_without_spending(ledger, chain, data):
    ledger.create("d", chain, 40, 1)
    for epsilon, fits in ((0.5, True), (5, False)):
        tried = qw.release(data, qw.queries.histogram(), chain, epsilon=epsilon)
        assert ledger.preview("d", tried).fits == fits
    assert ledger.history("d") == ()


def test_several_releases_are_debited_together_or_not_at_all(ledger, independent):
    ledger.create("d", independent, 3, 1)
    account = ledger.accountant("d")
    account.add_all([Spending.dp(0.25, 1, 3)] * 3)
    before = ledger.history("d")
    with pytest.raises(BudgetExceeded):
        account.add_all([Spending.dp(0.125, 1, 3)] * 3)
    assert ledger.history("d") == before
    assert account.exact_epsilon == Fraction(3, 4)
    account.add_all([Spending.dp(0.125, 1, 3)] * 2)
    assert account.exact_epsilon == 1
    for forbidden in ("record", "take", "from_body"):
        with pytest.raises(AttributeError):
            getattr(account, forbidden)
