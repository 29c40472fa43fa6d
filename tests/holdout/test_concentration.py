"""Concentration bounds against exact tails, computed by dynamic programming over all paths."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, Clusters, MarkovChain, Network
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.concentration import Concentration, concentration, coupling, spectral


def chain_sum_law(start, transition, values):
    """P(Σ values[t][X_t] = s) for integer values, exactly up to rounding: state × running sum."""
    top = int(sum(max(v) for v in values))
    table = np.zeros((len(start), top + 1))
    for state, value in enumerate(values[0]):
        table[state, value] += start[state]
    for step in values[1:]:
        moved = transition.T @ table
        table = np.zeros_like(moved)
        for state, value in enumerate(step):
            table[state, value:] += moved[state, : top + 1 - value]
    return table.sum(axis=0)


def worst_excess(law, most, n, found: Concentration):
    """The largest ratio of exact tail to bound over all deviations."""
    sums = np.arange(len(law)) / most
    mean = float(law @ sums)
    gaps = np.abs(sums - mean)
    worst = 0.0
    for gap in np.unique(gaps[gaps > 1e-12]):
        tail = float(law[gaps >= gap - 1e-12].sum())
        worst = max(worst, tail / found.tail(n, gap))
    return worst


def coin_blocks(sizes):
    """The law of a sum of blocks, each all ones or all zeros by its own fair coin."""
    law = np.array([1.0])
    for size in sizes:
        step = np.zeros(size + 1)
        step[[0, size]] += 0.5
        law = np.convolve(law, step)
    return law


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
@settings(max_examples=40)
def test_clusters_of_any_sizes_stay_below_their_bound(sizes):
    labels = [i for i, size in enumerate(sizes) for _ in range(size)]
    n = len(labels)
    assert worst_excess(coin_blocks(sizes), n, n, concentration(Clusters(labels))) <= 1


def test_copies_of_one_coin_break_the_bound_for_independent_rows():
    n = 250
    law = coin_blocks([n])
    assert worst_excess(law, n, n, concentration(None)) > 1e50
    assert worst_excess(law, n, n, concentration(Clusters([0] * n))) <= 1


def test_equal_clusters_count_as_rows_over_size_and_unequal_ones_for_more_than_the_largest():
    assert concentration(Clusters([i // 5 for i in range(50)])).rate == pytest.approx(2 / 5)
    mixed = Clusters([0] * 5 + list(range(1, 46)))
    assert concentration(mixed).rate == pytest.approx(2 * 50 / (25 + 45))


@st.composite
def chains(draw):
    k = draw(st.integers(2, 3))
    entries = st.lists(st.floats(0.03, 1.0), min_size=k, max_size=k)
    rows = np.array([draw(entries) for _ in range(k)])
    if draw(st.booleans()):
        rows = rows + rows.T  # symmetric weights make the chain reversible
    return MarkovChain(rows / rows.sum(axis=1, keepdims=True))


@given(chains(), st.integers(2, 24), st.data())
@settings(max_examples=60)
def test_chains_stay_below_both_bounds_even_if_functions_change_with_time(chain, n, data):
    steps = st.lists(st.integers(0, 3), min_size=chain.size, max_size=chain.size)
    values = [data.draw(steps) for _ in range(n)]
    law = chain_sum_law(chain.stationary, chain.transition, values)
    for found in (spectral(chain), coupling(chain.transition)):
        assert worst_excess(law, 3 * n, n, found) <= 1 + 1e-9


@given(chains(), st.integers(0, 2), st.integers(2, 24))
@settings(max_examples=30)
def test_coupling_holds_from_any_start(chain, first, n):
    start = np.eye(chain.size)[min(first, chain.size - 1)]
    law = chain_sum_law(start, chain.transition, [list(range(chain.size))] * n)
    found = concentration(MarkovChain(chain.transition, initial="any"))
    assert worst_excess(law, (chain.size - 1) * n, n, found) <= 1 + 1e-9


def two_state(stay):
    return MarkovChain([[stay, 1 - stay], [1 - stay, stay]])


def exponential_moment(chain, values, t):
    """ln E exp(t·Σ(f(X_i) − E f)), by matrix products."""
    vector = chain.stationary * np.exp(t * np.array(values[0]))
    for step in values[1:]:
        vector = (vector @ chain.transition) * np.exp(t * np.array(step))
    return math.log(vector.sum()) - t * sum(float(chain.stationary @ step) for step in values)


@pytest.mark.parametrize("stay", [0.5, 0.7, 0.9])
def test_the_spectral_rate_is_right_to_five_percent(stay):
    """A sub-Gaussian rate κ means ln E e^(tS) ≤ n·t²/(4κ); for small t it is nearly reached."""
    chain, n, t = two_state(stay), 4000, 0.005
    moment = exponential_moment(chain, [[0.0, 1.0]] * n, t)
    rate = spectral(chain).rate
    assert moment <= n * t**2 / (4 * rate)
    assert moment > n * t**2 / (4 * 1.05 * rate)


def test_a_negative_eigenvalue_does_not_help_functions_that_change_with_time():
    chain = two_state(0.1)
    alternating = [[0.0, 1.0], [1.0, 0.0]] * 2000
    moment = exponential_moment(chain, alternating, 0.005)
    leon_perron_with_lambda_zero = 4000 * 0.005**2 / (4 * 2)
    assert moment > 3 * leon_perron_with_lambda_zero
    assert moment <= 4000 * 0.005**2 / (4 * concentration(chain).rate)


def test_sticky_chains_break_the_bound_for_independent_rows():
    chain, n = two_state(0.95), 60
    law = chain_sum_law(chain.stationary, chain.transition, [[0, 1]] * n)
    assert worst_excess(law, n, n, concentration(None)) > 1e3


def test_the_coupling_covers_statistics_that_are_no_means():
    """The longest run of ones moves by many when one row changes, the number of ones does not:
    here the share of rows equal to their left neighbour, which moves by 2/n."""
    chain, n = two_state(0.6), 12
    found = concentration(chain, means_only=False)
    paths = np.array(np.meshgrid(*[[0, 1]] * n)).reshape(n, -1).T
    stays = (paths[:, 1:] == paths[:, :-1]).sum(axis=1)
    weight = 0.5 * 0.6**stays * 0.4 ** (n - 1 - stays)
    value = stays / (2 * n)  # scaled so that one row moves it by 1/n
    mean = weight @ value
    for gap in np.unique(np.abs(value - mean)):
        tail = weight[np.abs(value - mean) >= gap - 1e-12].sum()
        assert tail <= found.tail(n, gap) + 1e-12


def test_boxes_use_the_largest_distance_of_rows_and_wide_ones_are_refused():
    box = ChainBox([[0.6, 0.2], [0.3, 0.5]], [[0.8, 0.4], [0.5, 0.7]])
    # rows may differ by .8 − .3 in the first state
    assert concentration(box).rate == pytest.approx(2 * (1 - 0.5) ** 2)
    with pytest.raises(UnsupportedError, match="never coalesce"):
        concentration(ChainBox([[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]))


def test_chains_that_never_forget_are_refused():
    with pytest.raises(UnsupportedError, match="still depends on its state"):
        concentration(MarkovChain([[0.0, 1.0], [1.0, 0.0]], initial=[1, 0]))


def test_a_set_of_beliefs_has_the_weakest_rate():
    rows = [Clusters(range(12)), Clusters([i // 3 for i in range(12)])]
    assert concentration(rows).rate == pytest.approx(2 / 3)


def test_exact_tails_by_fractions_agree_with_the_floats_used_here():
    chain = two_state(0.75)
    law = chain_sum_law(chain.stationary, chain.transition, [[0, 1]] * 6)
    exact = [Fraction(0)] * 7
    for path in range(64):
        bits = [path >> i & 1 for i in range(6)]
        same = sum(a == b for a, b in itertools.pairwise(bits))
        weight = Fraction(1, 2) * Fraction(3, 4) ** same * Fraction(1, 4) ** (5 - same)
        exact[sum(bits)] += weight
    assert law == pytest.approx([float(p) for p in exact])


def ising_ring(size, coupling_strength):
    """Binary nodes on a ring, neighbours equal e^(2·strength) times as likely as different."""
    graph = nx.cycle_graph(size)
    table = [[math.e**coupling_strength, 1], [1, math.e**coupling_strength]]
    return Network(graph, {tuple(sorted(edge)): table for edge in graph.edges})


@pytest.mark.parametrize("strength", [0.2, 0.5, 0.9])
def test_networks_under_dobrushins_condition_stay_below_their_bound(strength):
    size = 12
    found = concentration(ising_ring(size, strength))
    paths = np.array(list(itertools.product([0, 1], repeat=size)))
    equal = (paths == np.roll(paths, 1, axis=1)).sum(axis=1)
    weight = np.exp(strength * equal)
    weight /= weight.sum()
    for signs in ([1] * size, [1, 0] * (size // 2)):
        sums = (paths == np.array(signs)).sum(axis=1)
        law = np.bincount(sums, weights=weight, minlength=size + 1)
        assert worst_excess(law, size, size, found) <= 1


def test_networks_beyond_dobrushins_condition_are_refused():
    graph = nx.complete_graph(4)
    table = [[math.e**2, 1], [1, math.e**2]]
    with pytest.raises(UnsupportedError, match="Dobrushin"):
        concentration(Network(graph, {tuple(sorted(edge)): table for edge in graph.edges}))


def test_independent_nodes_have_the_rate_of_independent_rows():
    graph = nx.DiGraph()
    graph.add_nodes_from(["a", "b"])
    assert concentration(Network(graph, {"a": [0.5, 0.5], "b": [0.2, 0.8]})).rate == pytest.approx(
        2
    )


def test_strides_never_promise_more_than_the_theorem_and_cost_little():
    """Against D itself, and against its bound by single steps up to the first theta below ½."""
    for stay in (0.5, 0.9, 0.99, 0.999):
        matrix = np.array([[stay, 1 - stay, 0], [0, stay, 1 - stay], [1 - stay, 0, stay]])
        power, thetas = np.eye(3), []
        while not thetas or thetas[-1] > 1e-4:
            thetas.append(0.5 * np.abs(power[:, None] - power[None]).sum(-1).max())
            power = power @ matrix
        stop = next(k for k, theta in enumerate(thetas) if theta < 0.5)
        stepwise = sum(thetas[:stop]) / (1 - thetas[stop])
        assert 2 / stepwise**2 * 0.96 <= coupling(matrix).rate <= 2 / sum(thetas) ** 2


@pytest.mark.parametrize(
    "chain", [MarkovChain(np.eye(40), initial="any"), MarkovChain([[0, 1], [1, 0]])]
)
def test_a_chain_that_never_forgets_is_refused_after_few_looks(chain, monkeypatch):
    looks = []
    monkeypatch.setattr(
        "quiltwork.holdout.concentration.largest_distance", lambda rows: looks.append(1) or 1.0
    )
    with pytest.raises(UnsupportedError, match="still depends on its state"):
        concentration(chain)
    assert len(looks) < 500
