"""The sweep against all mechanisms, on a sample; and the check against its own mutants."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidence import enumeration
from evidence import sweep_program as program
from evidence.checks import sweep, sweep_mutants, sweep_windows
from evidence.random_sweeps import Chain, long_series, truth
from quiltwork.beliefs import MarkovChain

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def test_no_mechanism_tells_more_than_the_sweep_says():
    assert sweep.check(2)["violations"] == 0


def test_short_windows_of_long_series_get_the_noise_that_they_need():
    assert sweep_windows.check(12)["violations"] == 0
    with pytest.raises(AssertionError, match="leaks more than"):
        sweep_windows.check(12, noise=0.95)


@pytest.mark.parametrize("name", sweep_mutants.MUTANTS)
def test_every_broken_sweep_is_caught(name):
    with sweep_mutants.MUTANTS[name]():
        wrong = sweep_mutants.faults(len(sweep_mutants.little_slack()), 2)
        assert next(wrong, None) is not None


def test_the_sweep_as_it_is_passes_what_catches_its_mutants():
    assert list(sweep_mutants.faults(len(sweep_mutants.little_slack()), 4)) == []


def test_a_claim_five_percent_too_low_is_seen():
    with pytest.raises(AssertionError, match="below the truth"):
        sweep.check(1, claim=lambda case: 0.95 * sweep.claimed(case))


def test_the_program_is_the_closed_form_for_two_nodes():
    law = program.chain_law([0.8, 0.2], [P])
    found = program.supremum(law, (0.3, 1.0), [0])
    rest = math.log((0.6 * math.e + 0.4) / (0.1 * math.e + 0.9))
    assert found == pytest.approx(0.3 + rest)


def test_a_noisy_count_tells_no_more_than_the_program_and_nearly_as_much():
    chain, scale = MarkovChain(P), 1.5
    weighted = enumeration.paths(chain, 6)
    told = enumeration.leakage(weighted, 6, lambda path: path.count(0), scale)
    law = program.chain_law(chain.start, [P] * 5)
    most = max(program.supremum(law, (1 / scale,) * 6, [node]) for node in range(6))
    assert told <= most + 1e-12
    assert told == pytest.approx(most, rel=1e-9)


def test_the_two_sides_of_a_node_are_programs_apart():
    rng = np.random.default_rng(7)
    law = program.chain_law(rng.dirichlet(np.ones(3)), [rng.dirichlet(np.ones(3), 3)] * 3)
    levels = (0.5, 1.0, 0.2, 2.0)
    for block in ([1], [1, 2]):
        whole = program.supremum(law, levels, block)
        assert program.chain_supremum(law, levels, block) == pytest.approx(whole, rel=1e-7)


def test_charges_that_share_nothing_are_plain_levels():
    law = program.chain_law([0.3, 0.7], [P] * 3)
    levels = (0.5, 0.1, 2.0, 1.0)
    for node in range(4):
        shared = program.charged_supremum(law, program.Charges(levels), [node])
        assert shared == pytest.approx(program.supremum(law, levels, [node]), rel=1e-7)


def test_the_closed_form_for_two_states_is_the_program():
    chain = Chain.of((0.2, 0.8), [P, P, P.T / P.T.sum(axis=1, keepdims=True)])
    levels = (0.5, 0.1, 2.0, 1.0)
    law = program.chain_law(chain.start, chain.matrices)
    found = program.two_state_suprema(chain.start, chain.matrices, levels)
    whole = [program.supremum(law, levels, [node]) for node in range(4)]
    assert found == pytest.approx(whole, rel=1e-7)


def test_a_long_series_leaks_what_the_closed_form_says():
    case = long_series(np.random.default_rng(1))
    assert sweep.claimed(case) == pytest.approx(truth(case), rel=1e-6, abs=1e-9)


def test_an_episode_of_hidden_states_covers_what_shifts_unseen():
    """Two assignments that agree at one end tell of the other's hidden state."""
    case = sweep_mutants.little_slack()[-1]
    assert case.episode == 2
    assert len(set(case.beliefs[0].values)) < len(case.beliefs[0].values)
    with sweep_mutants.ends_told_apart():
        assert (sweep.claimed(case) < truth(case) - 0.01).any()
    assert (sweep.claimed(case) >= truth(case) - 1e-6).all()
