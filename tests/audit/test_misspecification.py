"""What a release tells under beliefs that it was not made for."""

from __future__ import annotations

from dataclasses import replace

import click
import numpy as np
import pytest

import quiltwork as qw
from evidence import sweep_program as program
from quiltwork import CyclicChain, InvalidInputError, MarkovChain, UnsupportedError, queries
from quiltwork.cli.option_names import OptionNames
from quiltwork.wording import speaking

P, STICKY = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.95, 0.05], [0.2, 0.8]])


def suprema(chain, scale, length):
    return program.two_state_suprema(chain.start, [STICKY] * (length - 1), (1 / scale,) * length)


def test_a_calibration_under_another_chain_is_the_closed_form_for_two_states():
    other = MarkovChain(STICKY)
    made = qw.calibrate(MarkovChain(P), 100, 1.0, query=queries.count(1))
    found = qw.audit.misspecification(made, other)
    assert found.promised == 1
    assert found.bound == pytest.approx(max(suprema(other, made.scale, 100)), rel=1e-6)
    exact = qw.audit.leakage(other, 100, [(queries.count(1), made.scale)])
    assert found.exact == pytest.approx(exact, rel=1e-6)
    assert not found.keeps
    assert "calibrate with both: beliefs=[this, the other]." in found.explain()
    with speaking(OptionNames(())), click.Context(click.Command("check"), info_name="check"):
        assert "calibrate with both: --belief THIS --belief OTHER." in found.explain()
    far = replace(found, node=12_345)
    assert "about time point 12,345" in far.explain()


def test_under_its_own_belief_a_release_keeps_its_promise():
    chain = MarkovChain(P)
    released = qw.release(chain.sample(200, seed=1), queries.histogram(), chain, epsilon=0.5)
    found = qw.audit.misspecification(released, chain)
    assert found.bound == pytest.approx(0.5, rel=1e-4)
    assert found.keeps
    assert "holds under it too" in found.explain()


def test_the_worst_of_several_and_what_no_exact_audit_takes():
    chain, day = MarkovChain(P), CyclicChain([P, STICKY])
    released = qw.release(chain.sample(200, seed=1), queries.count(1), chain, epsilon=0.5)
    alone = [qw.audit.misspecification(released, one) for one in (day, MarkovChain(STICKY))]
    both = qw.audit.misspecification(released, [day, MarkovChain(STICKY)])
    assert both.bound == pytest.approx(max(one.bound for one in alone), rel=1e-9)
    assert alone[0].exact == pytest.approx(
        qw.audit.leakage(day, 200, [(queries.count(1), released.scale)])
    )
    assert alone[1].exact <= alone[1].bound * (1 + 1e-9)


def test_an_account_is_added_up_under_the_other_belief():
    account = qw.Accountant(MarkovChain(P), 300)
    account.spend(dp_epsilon=0.1)
    account.spend(dp_epsilon=0.3, start=10, stop=50)
    other = qw.Accountant(MarkovChain(STICKY), 300)
    other.add_all(account.spendings)
    found = qw.audit.misspecification(account, MarkovChain(STICKY))
    assert (found.promised, found.bound) == (account.epsilon(), other.epsilon())
    assert found.exact is None


def test_what_was_not_made_has_no_misfit():
    with pytest.raises(InvalidInputError, match="neither a Release, a Calibration"):
        qw.audit.misspecification(3, MarkovChain(P))
    made = qw.calibrate(MarkovChain(P), 100, 1.0, query=queries.count(1))
    with pytest.raises(InvalidInputError, match="made for the states 0, 1, and"):
        qw.audit.misspecification(made, MarkovChain(P, states=["a", "b"]))


@pytest.mark.parametrize(
    "made",
    [
        qw.calibrate(MarkovChain(P), 100, 1.0),
        qw.calibrate(MarkovChain(P), 100, 1.0, query=queries.histogram()),
        qw.release([0, 1] * 50, queries.histogram(), MarkovChain(P)),
        qw.release([0, 1] * 50, queries.transitions(), MarkovChain(P)),
        qw.Accountant(MarkovChain(P), 100),
    ],
    ids=["calibration", "with a query", "histogram", "transitions", "account"],
)
def test_beliefs_about_other_states_are_refused(made):
    other = MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.3, 0.7]])
    with pytest.raises(InvalidInputError, match="made for the states 0, 1, and the other belief"):
        qw.audit.misspecification(made, other)
    assert qw.audit.misspecification(made, MarkovChain(STICKY)).bound >= 0


def test_a_release_explains_itself_under_alternatives():
    chain, day = MarkovChain(P), CyclicChain([P, STICKY])
    released = qw.release(chain.sample(200, seed=1), queries.histogram(), chain, epsilon=0.5)
    text = released.explain([day, MarkovChain(STICKY)])
    assert text.startswith(released.explain())
    for other in (day, MarkovChain(STICKY)):
        bound = released.leak_under([other])[0]
        assert f"  {bound:.6g} under {other.summary()}" in text


@pytest.mark.parametrize("other", [CyclicChain([P, P[::-1]]), MarkovChain(P[::-1])], ids=repr)
def test_what_no_memory_holds_is_refused_or_bounded(other):
    long = qw.calibrate(MarkovChain(P), 10**12, 1.0, query=queries.count(1))
    found = qw.audit.misspecification(long, other)
    assert found.exact is None
    assert 0 < found.bound < 10
    with pytest.raises(UnsupportedError, match="The exact law has"):
        qw.audit.worst_case(other, 10**12, [(queries.count(1), 3)])
    assert qw.audit.report(other, 10**12, [(queries.count(1), 3)]).lower >= 0
