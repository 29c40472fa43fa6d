"""DP to Bayesian DP and back: against every adversary and the worst mechanism of a level."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evidence.bayesian_enumeration import chain_joint, leakage_of, mechanisms, worst_leakage
from evidence.random_chains import random_chain
from quiltwork.beliefs import ChainBox, Clusters, HiddenChain, MarkovChain
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import to_fraction
from quiltwork.influence import bayesian_dp, dp_for_bayesian_dp, influence_curve
from tests.sizes import sample
from tests.strategies import chains

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
LEVELS = st.floats(1e-3, 10)


@pytest.mark.parametrize("seed", range(6))
def test_no_mechanism_betrays_more_about_a_chain(seed):
    rng = np.random.default_rng(seed)
    chain, length = random_chain(rng, 2), 4
    joint = chain_joint(chain.start, chain.transition, length)
    level = float(rng.choice([0.2, 1.0]))
    true = worst_leakage(joint, level)
    tight = bayesian_dp(chain, level, length=length)
    assert true <= tight + 1e-7
    assert tight <= bayesian_dp(chain, level, length=length, bound="paper")
    assert max(leakage_of(joint, one) for one in mechanisms(joint.shape, level)) <= true + 1e-9
    allowed = dp_for_bayesian_dp(chain, 0.7, length=length)
    if math.isfinite(allowed):
        assert worst_leakage(joint, allowed) <= 0.7 + 1e-7


def test_any_start_covers_every_start():
    matrix = np.array([[0.7, 0.3], [0.2, 0.8]])
    found = bayesian_dp(MarkovChain(matrix, initial="any"), 1, length=4)
    for start in ([1, 0], [0.5, 0.5], [0.01, 0.99]):
        assert worst_leakage(chain_joint(np.array(start), matrix, 4), 1) <= found + 1e-7


def test_a_box_covers_chains_that_change_from_step_to_step():
    box = ChainBox([[0.5, 0.2], [0.3, 0.4]], [[0.8, 0.5], [0.6, 0.7]])
    rng = np.random.default_rng(3)
    for bound in ("tight", "paper"):
        found = bayesian_dp(box, 1.5, length=4, bound=bound)
        joint = rng.dirichlet(np.ones(2))
        for _ in range(3):
            share = rng.uniform(0, 1, 2)
            low, high = box.lower[:, 0], np.minimum(box.upper[:, 0], 1 - box.lower[:, 1])
            first = low + share * (high - low)
            joint = joint[..., None] * np.stack([first, 1 - first], axis=1)
        assert worst_leakage(joint, 1.5) <= found + 1e-7


def test_the_influence_itself_would_not_do():
    """The negative control: with b instead of h the bound is broken by randomized response."""
    chain, level, length = MarkovChain([[0.84, 0.16], [0.12, 0.88]]), 4, 4
    joint = chain_joint(chain.stationary, chain.transition, length)
    leak = max(leakage_of(joint, one) for one in mechanisms(joint.shape, level))
    assert 1.05 * influence_curve(chain, length).epsilon(level) < leak
    assert leak <= bayesian_dp(chain, level, length=length)


def test_the_enumeration_would_notice_five_per_cent():
    """Two copies of a coin leak exactly twice the level."""
    copies = np.diag([0.5, 0.5])
    assert worst_leakage(copies, 0.3) == pytest.approx(0.6, rel=1e-6)
    assert bayesian_dp(Clusters(["a", "a"]), 0.3) == 0.6


@given(st.fractions(Fraction(1, 1000), 99))
def test_independent_rows_reduce_to_dp_exactly(level):
    alone = Clusters(range(5))
    assert to_fraction(bayesian_dp(None, level), "x") == pytest.approx(level, rel=1e-15)
    assert bayesian_dp(None, level) == bayesian_dp(alone, level) >= Fraction(0)
    assert dp_for_bayesian_dp(None, level) == dp_for_bayesian_dp(alone, level)


@pytest.mark.parametrize("level", [0.1, 0.3, 1, 0.7, 2.3, 1e-6])
def test_independent_rows_keep_the_number_that_was_typed(level):
    for rows in (None, Clusters(range(9)), MarkovChain([[0.4, 0.6], [0.4, 0.6]])):
        length = 9 if isinstance(rows, MarkovChain) else None
        assert bayesian_dp(rows, level, length=length) == level
        assert dp_for_bayesian_dp(rows, level, length=length) == level


def test_clusters_pay_for_the_largest():
    homes = Clusters(["a", "b", "a", "c", "a", "b"])
    assert bayesian_dp(homes, 0.1) == 0.3
    assert dp_for_bayesian_dp(homes, 0.3) == 0.1
    assert bayesian_dp(homes, 0.1, bound="paper") == 0.3


@given(chains(2, 3), st.integers(1, 30), LEVELS, st.sampled_from(["tight", "paper"]))
@settings(max_examples=30)
def test_back_and_forth_never_gains(chain, length, epsilon, bound):
    level = dp_for_bayesian_dp(chain, epsilon, length=length, bound=bound)
    if math.isinf(level):
        assert bayesian_dp(chain, 1, length=length, bound=bound) == 0
    else:
        there = bayesian_dp(chain, level, length=length, bound=bound)
        assert there <= epsilon * (1 + 1e-11)
        assert there == pytest.approx(epsilon, rel=1e-6)


@given(chains(2, 3), st.integers(1, 30), LEVELS)
@settings(max_examples=sample(15, full=30))
@example(MarkovChain([[0, 0, 1], [0, 0, 1], [0, 0.5, 0.5]], initial="any"), 4, 5.0)
@example(MarkovChain([[1 / 3] * 3, [0.2, 0.6, 0.2], [0.2, 0.6, 0.2]], [0, 0.5, 0.5]), 3, 1.0)
def test_tight_is_never_worse_than_the_paper(chain, length, level):
    assert bayesian_dp(chain, level, length=length) <= bayesian_dp(
        chain, level, length=length, bound="paper"
    )


def test_the_length_does_not_matter_once_the_best_quilt_fits():
    assert bayesian_dp(CHAIN, 0.05, length=10**3) == bayesian_dp(CHAIN, 0.05, length=10**8)


def test_known_rows_have_nothing_to_betray():
    known = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    assert bayesian_dp(known, 3, length=10) == 0
    assert dp_for_bayesian_dp(known, 3, length=10) == math.inf


def test_a_list_of_beliefs_costs_as_much_as_the_worst():
    other = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    assert bayesian_dp([CHAIN, other], 0.1, length=50) == bayesian_dp(CHAIN, 0.1, length=50)
    assert dp_for_bayesian_dp([CHAIN, other], 1, length=50) == dp_for_bayesian_dp(
        CHAIN, 1, length=50
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CHAIN, 0, 5), "psilon must be greater than 0"),
        ((CHAIN, True, 5), "psilon must be a number"),
        ((CHAIN, 1, None), "length is missing"),
        ((CHAIN, 1, 5.0), "length must be an integer, not 5.0"),
        ((None, 1, 5.0), "length must be an integer, not 5.0"),
        ((CHAIN, 1, 5, "loose"), "bound must be 'tight' or 'paper', not 'loose'"),
        (("chain", 1, 5), "beliefs is str"),
        ((Clusters(["a", ""]), 1, 5), "the belief is about 2 rows"),
    ],
)
@pytest.mark.parametrize("translate", [bayesian_dp, dp_for_bayesian_dp])
def test_nonsense_gets_a_sentence(translate, arguments, message):
    belief, level, length, *bound = arguments
    options = {"length": length, **({"bound": bound[0]} if bound else {})}
    with pytest.raises(InvalidInputError, match=message):
        translate(belief, level, **options)


@pytest.mark.parametrize("translate", [bayesian_dp, dp_for_bayesian_dp])
def test_lengths_are_given_by_name(translate):
    with pytest.raises(TypeError, match="positional"):
        translate(CHAIN, 15_264, 1)


def test_a_length_in_the_place_of_a_level_is_noticed():
    with pytest.warns(QuiltworkWarning, match=r"is 15264: .* e\^15264, which protects nothing"):
        dp_for_bayesian_dp(CHAIN, 15_264, length=1)


@pytest.mark.parametrize("switch", [1e-2, 1e-4])
def test_slow_chains_of_any_length_leak_what_endless_ones_do(switch):
    """R = n − 1 + L, tanh(L/4) = tanh(Δ/4)·tanh((1 + R)/4) with the diameter Δ of n steps."""
    chain = MarkovChain([[1 - switch, switch], [switch, 1 - switch]])
    found = bayesian_dp(chain, 1, length=10**13)
    stays = [(n, np.expm1(n * np.log1p(-2 * switch))) for n in 2 ** np.arange(12)]
    least = math.inf
    for n, less in stays:
        diameter = 2 * math.log((2 + less) / -less)
        side = 1e3
        for _ in range(100_000):
            before, side = (
                side,
                n - 1 + 4 * math.atanh(math.tanh(diameter / 4) * math.tanh((1 + side) / 4)),
            )
            if before - side < 1e-9:
                break
        least = min(least, side)
    assert found == pytest.approx(1 + 2 * least, rel=1e-4)


def shown_joint(belief, length):
    """The law of what is shown, by adding up all inner paths."""
    inner = chain_joint(belief.inner.start, belief.inner.transition, length)
    joint = np.zeros((belief.size,) * length)
    for path in np.ndindex(*inner.shape):
        joint[tuple(belief.shown[list(path)])] += inner[path]
    return joint


def random_hidden(rng, kind):
    """Memory of two states, stays by age, or a hidden Markov model."""
    if kind == "order 2":
        follow = rng.dirichlet(np.ones(2), size=4)
        rows = np.zeros((4, 4))
        for last, now in np.ndindex(2, 2):
            rows[2 * last + now, 2 * now : 2 * now + 2] = follow[2 * last + now]
        return HiddenChain(rows, [0, 1, 0, 1], rng.dirichlet(np.ones(4)))
    if kind == "durations":  # state and age 1 or 2, what is older counted as 2
        leave, rows = rng.uniform(0.05, 0.95, 4), np.zeros((4, 4))
        for state, age in np.ndindex(2, 2):
            rows[2 * state + age, 2 * state + 1] = 1 - leave[2 * state + age]
            rows[2 * state + age, 2 * (1 - state)] = leave[2 * state + age]
        return HiddenChain(rows, [0, 0, 1, 1], rng.dirichlet(np.ones(4)))
    return HiddenChain.from_emissions(
        rng.dirichlet(np.ones(2), size=2), rng.dirichlet(np.ones(2), size=2), [0.4, 0.6]
    )


@pytest.mark.parametrize("kind", ["order 2", "durations", "emissions"])
@pytest.mark.parametrize("seed", range(sample(3, 60)))
def test_no_mechanism_betrays_more_about_functions_of_a_state(seed, kind):
    rng = np.random.default_rng(seed)
    belief, length = random_hidden(rng, kind), 4
    joint, level = shown_joint(belief, length), float(rng.choice([0.1, 0.5, 2.0]))
    found = bayesian_dp(belief, level, length=length)
    assert worst_leakage(joint, level) <= found + 1e-7
    assert found <= length * level
    allowed = dp_for_bayesian_dp(belief, 0.7, length=length)
    assert bayesian_dp(belief, allowed, length=length) <= 0.7 * (1 + 1e-9)


def test_memory_of_two_states_costs_no_group_privacy_and_long_durations_are_refused():
    data = MarkovChain([[0.8, 0.2], [0.3, 0.7]]).sample(5000, seed=1)
    order2 = MarkovChain.fit(data, order=2)
    assert bayesian_dp(order2, 0.01, length=10_000) < 0.2
    stays = [0] * 30 + [1] * 20
    long = MarkovChain.fit(stays * 40, durations=True)
    with pytest.raises(UnsupportedError, match="Bayesian DP is not proved"):
        bayesian_dp(long, 0.01, length=100)
