"""Cyclic beliefs through the whole product: noise, accounts, ledgers, plans and releases."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from evidence import sweep_program as program
from quiltwork import CyclicChain, MarkovChain, UnsupportedError, queries

NIGHT = np.array([[0.9, 0.1], [0.4, 0.6]])
TURN = [NIGHT, NIGHT, np.array([[0.5, 0.5], [0.45, 0.55]])]


@pytest.mark.parametrize("initial", ["stationary", "any", [0.2, 0.8]])
@pytest.mark.parametrize("length", [40, 3000])
def test_equal_matrices_are_the_plain_chain(initial, length):
    plain = qw.calibrate(MarkovChain(NIGHT, initial), length, 1.0)
    turns = qw.calibrate(CyclicChain([NIGHT] * 3, initial=initial), length, 1.0)
    assert turns.scale == pytest.approx(plain.scale, rel=1e-8)


def test_the_noise_is_what_two_states_need():
    """The closed form for two states, at the noise found, leaks just ε and at no phase more."""
    chain, length = CyclicChain(TURN), 900
    scale = qw.calibrate(chain, length, 1.0).scale
    matrices = [TURN[t % 3] for t in range(length - 1)]
    told = program.two_state_suprema(chain.start, matrices, (1 / scale,) * length)
    assert max(told) == pytest.approx(1.0, rel=1e-6)
    deep = told[450:453]
    assert np.ptp(deep) > 0.05


def test_a_phase_matters_for_what_is_secret():
    chain = CyclicChain(TURN)
    scales = [qw.calibrate(chain, 900, 1.0, secrets=(t, t)).scale for t in (451, 452, 453)]
    assert max(scales) == pytest.approx(qw.calibrate(chain, 900, 1.0).scale, rel=1e-6)
    assert min(scales) < 0.97 * max(scales)


def test_methods_without_a_meaning_are_refused_and_baselines_are_there():
    chain = CyclicChain(TURN)
    for method in ("exact", "spectral"):
        with pytest.raises(UnsupportedError, match="has many matrices"):
            qw.calibrate(chain, 100, 1.0, method)
    assert qw.calibrate(chain, 100, 1.0, "group").scale == 100
    with pytest.warns(qw.QuiltworkWarning, match="entry"):
        assert qw.calibrate(chain, 100, 1.0, "entry").scale == 1
    sweep = qw.calibrate(chain, 100, 1.0).scale
    assert sweep < qw.calibrate(chain, 100, 1.0, "contraction").scale < 100


def test_known_rows_cost_more_than_none():
    chain = CyclicChain(TURN)
    level = qw.dp_for_bayesian_dp(chain, 1.0, length=1000)
    assert level < 1 / qw.calibrate(chain, 1000, 1.0).scale
    assert qw.bayesian_dp(chain, level, length=1000) == pytest.approx(1.0, rel=1e-3)


def test_episodes_cost_more_and_the_curve_goes_both_ways():
    chain = CyclicChain(TURN)
    scales = [qw.calibrate(chain, 500, 1.0, episode=w).scale for w in (1, 2, 6)]
    assert scales[0] < scales[1] < scales[2] < 10
    curve = qw.influence_curve(chain, 500)
    assert curve.epsilon(curve.dp_epsilon(1.0)) == pytest.approx(1.0, rel=1e-6)


def test_a_ledger_keeps_the_belief_and_prices_its_releases(tmp_path):
    chain = CyclicChain(TURN, ["rest", "walk"])
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.create("steps", chain, 300, budget=2.0)
    data = chain.sample(300, seed=1)
    first = qw.release(data, queries.histogram(), chain, 0.5, ledger=ledger, dataset="steps")
    asked = queries.count("walk").on(10, 60)
    second = qw.release(data, asked, chain, 0.5, ledger=ledger, dataset="steps")
    account = ledger.accountant("steps")
    alone = qw.Accountant(chain, 300)
    alone.add_all([first, second])
    assert account.epsilon() == pytest.approx(alone.epsilon(), rel=1e-9)
    assert 0.5 < account.epsilon() < 1.0


def test_previews_and_plans_take_days():
    chain = CyclicChain(TURN, ["rest", "walk"])
    shown = qw.preview(queries.histogram(), chain, length=300)
    assert shown.scale == pytest.approx(
        qw.calibrate(chain, 300, 1.0, query=queries.histogram()).scale
    )
    asked = [queries.histogram(), queries.count("walk")]
    planned = qw.plan(chain, length=300, budget=2.0, queries=asked)
    assert planned.total == pytest.approx(2.0, rel=1e-3)
