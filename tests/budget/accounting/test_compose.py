"""The theorems of the paper, each against enumeration; and what they do not say."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import quiltwork as qw
from evidence import accounting_reference as reference
from papers.examples import gap, theorem_3_4
from quiltwork import queries
from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.budget import Accountant, Spending, compose
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import calibrate, max_influence
from tests.budget.test_spending import HOSTILE
from tests.sizes import sample

SHAPES = ["positive", "sparse", "periodic", "deterministic"]
FAST = MarkovChain([[0.55, 0.45], [0.45, 0.55]])


def test_levels_add_up_exactly():
    assert compose.sequential([0.1] * 10, mqm=True) == 1.0
    assert compose.sequential([]) == 0.0
    assert compose.sequential([1, Fraction(1, 3)], mqm=True) >= 4 / 3
    assert qw.compose is compose


def test_numbers_do_not_add_up_unless_somebody_says_what_they_are():
    with pytest.raises(InvalidInputError, match=r"mqm=True if all of them are"):
        compose.sequential([1, 1])
    with pytest.raises(InvalidInputError, match=r"mqm=True"):
        compose.sequential([calibrate(FAST, 9, 1), 1])


def test_releases_say_themselves_whether_their_levels_add_up():
    data, query = FAST.sample(9, seed=1), qw.queries.count(1)
    one = qw.release(data, query, FAST, epsilon=0.25, method="exact")
    two = qw.release(data, qw.queries.histogram(), FAST, epsilon=0.5, method="group")
    assert compose.sequential([one, two]) == compose.sequential([one, two], mqm=True) == 0.75
    calibrations = [
        calibrate(FAST, 9, 0.25, "exact", query=query),
        calibrate(FAST, 9, 0.5, "exact"),
    ]
    assert compose.sequential(calibrations) == 0.75
    shorter = qw.release(data[:-1], query, FAST, epsilon=0.25, method="exact")
    coin = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    other = qw.release(data, query, coin, epsilon=0.25, method="exact")
    some = qw.release(data, query, FAST, epsilon=0.25, method="exact", secrets=(1, 2))
    for different in (shorter, other, some):
        with pytest.raises(InvalidInputError, match="agree in all three"):
            compose.sequential([one, different])
    swept = qw.release(data, query, FAST, epsilon=0.25)
    with pytest.raises(UnsupportedError, match="do not add up"):
        compose.sequential([swept, swept])


def test_levels_of_optimal_scale_releases_are_not_added_up():
    """Two of level 1 leak more than 2 together, by the exact law of both answers."""
    chain, query = MarkovChain([[0.9, 0.1], [0.4, 0.6]]), qw.queries.count(1)
    found = calibrate(chain, 6, 1, method="optimal-scale", query=query)
    assert qw.audit.leakage(chain, 6, [(query, found.scale)] * 2) > 2.05
    released = qw.release([0, 1] * 3, query, chain, epsilon=1, method="optimal-scale")
    for one in (found, released):
        for more in ({}, {"mqm": True}):
            with pytest.raises(UnsupportedError, match="does not add up with others"):
                compose.sequential([one, one], **more)


def test_entry_dp_counts_at_what_it_keeps():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.warns(qw.QuiltworkWarning):
        found = calibrate(chain, 100, 1, method="entry")
    assert compose.sequential([found]) == qw.influence_curve(chain, 100).epsilon(1) > 3


@pytest.mark.parametrize("value", [value for value in HOSTILE if value != [1]])
def test_hostile_levels_are_refused(value):
    for call in (
        lambda: compose.sequential([1, value], mqm=True),
        lambda: compose.parallel(value, 1, 0, 0),
        lambda: compose.general(1, value, 0),
    ):
        with pytest.raises(InvalidInputError):
            call()


@pytest.mark.parametrize("value", [-1, True, "1", float("nan"), -float("inf"), None])
def test_hostile_influences_are_refused(value):
    with pytest.raises(InvalidInputError):
        compose.parallel(1, 1, value, 0)
    with pytest.raises(InvalidInputError):
        compose.general(1, 1, value)


def test_arbitrary_mechanisms_are_refused_with_the_example():
    with pytest.raises(UnsupportedError, match=r"3\.4.*docs/theory/composition"):
        compose.sequential([1, 0.5], mqm=False)


def test_the_example_of_theorem_3_4_reproduces_the_printed_numbers():
    found = theorem_3_4.compare(0.9, 0.01)
    assert found.one**2 / math.e**2 == pytest.approx(6.2672, abs=5e-5)
    assert found.two / math.e**2 == pytest.approx(6.3448, abs=5e-5)
    assert found.level_of_both > found.twice_the_level


def test_the_example_of_theorem_3_4_is_what_enumeration_finds():
    chain = MarkovChain([[0.99, 0.01], [0.1, 0.9]], initial=[0.5, 0.5])
    law, release = reference.chain_law(chain, 2), (1, 1, 2, 1)
    found = theorem_3_4.compare(0.9, 0.01)
    one, two = (reference.exact_leakage(law, 2, [release] * k, nodes=[1]) for k in (1, 2))
    assert one == pytest.approx(math.log(found.one), rel=1e-9)
    assert two == pytest.approx(found.level_of_both, rel=1e-9)


@pytest.mark.parametrize("name", ["theorem_3_4", "gap"])
def test_the_examples_run(name):
    command = [sys.executable, "-m", f"papers.examples.{name}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ("6.2672" in shown and "6.3448" in shown) or "2" in shown.splitlines()[-1]


def test_between_two_windows_both_releases_are_paid():
    chain = gap.coin_chain()
    ab, ba = compose.influence_between(chain, (1, 1), (3, 3), 3)
    assert max(ab, ba) < 1e-12
    assert compose.parallel(1, 1, ab, ba) == pytest.approx(1)
    assert gap.leakage_between() == pytest.approx(2)
    account = Accountant(chain, 3)
    account.spend(1, 1, 1)
    account.spend(1, 3, 3)
    assert account.epsilon() == pytest.approx(2, rel=1e-9)
    assert account.leakage(1, 1) == pytest.approx(1, rel=1e-9)
    scoped = [b for b in account.explain().bounds if b.theorem.startswith("Theorem 3.1")]
    assert scoped[0].epsilon == pytest.approx(1)
    assert scoped[0].scope == "1..1 and 3..3 only"
    assert not scoped[0].won


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_lemma_1_1_a_larger_set_of_nodes_has_no_less_influence(seed):
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, rng.choice(SHAPES))
    law, length = reference.path_law(start, matrix, 6), 6
    node = int(rng.integers(1, length + 1))
    others = [i for i in range(1, length + 1) if i != node]
    large = [i for i in others if rng.random() < 0.6]
    small = [i for i in large if rng.random() < 0.5]
    above, below = (reference.influence(law, node, tuple(s)) for s in (large, small))
    assert below <= above + 1e-12


def test_lemma_1_2_the_answer_and_the_remote_part_together_stay_within_the_level():
    """By the papers' quilts; with the sweep's noise and these quilts it would not hold."""
    exact, swept = (
        [_with_remote_part(seed, method) for seed in range(sample(30, full=60))]
        for method in ("exact", "sweep")
    )
    compared = [ratio for ratio in exact if ratio is not None]
    assert len(compared) >= len(exact) * 4 // 5  # the others have no node far from theirs
    assert max(compared) <= 1 + 1e-9
    assert max(compared) > 0.9
    assert max(ratio for ratio in swept if ratio is not None) > 1.1


def _with_remote_part(seed, method):
    """log P(answer, X_RUQ | X_i = a)/P(answer, X_RUQ | X_i = b) over ε; None if R is empty."""
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, "positive")
    length, epsilon = 5, float(rng.uniform(0.2, 3))
    chain = MarkovChain(matrix, initial=start)
    law = reference.chain_law(chain, length)
    scale = calibrate(chain, length, epsilon, method).scale
    quilts = calibrate(chain, length, epsilon, "exact").active_quilts()
    remote = {
        one.node: [i for i in range(1, length + 1) if not _near(i, one.node, one.quilt, length)]
        for one in quilts
    }
    nodes = [node for node in remote if remote[node]]
    if not nodes:
        return None
    node = nodes[int(rng.integers(len(nodes)))]
    worst = 0.0
    for answer in range(length + 1):
        seen: dict[tuple[int, ...], dict[int, float]] = {}
        mass: dict[int, float] = {}
        for path, p in law.items():
            x, rest = path[node - 1], tuple(path[i - 1] for i in remote[node])
            mass[x] = mass.get(x, 0.0) + p
            noise = math.exp(-abs(answer - sum(path)) / scale)
            given_rest = seen.setdefault(rest, {})
            given_rest[x] = given_rest.get(x, 0.0) + p * noise
        for densities in seen.values():
            if len(densities) == 2:
                conditional = [densities[x] / mass[x] for x in densities]
                worst = max(worst, abs(math.log(conditional[0] / conditional[1])))
    return worst / epsilon


def _near(i, node, quilt, length):
    first = max((q for q in quilt if q < node), default=0)
    last = min((q for q in quilt if q > node), default=length + 1)
    return first < i < last


def two_windows(rng, length):
    a, b, c, d = sorted(int(t) for t in rng.choice(np.arange(1, length + 1), 4, replace=False))
    return (a, b), (c, d)


@given(st.integers(0, 10**9))
@settings(max_examples=sample(20, full=40))
def test_theorem_3_1_holds_and_joint_quilts_are_never_worse_inside_the_windows(seed):
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, rng.choice(SHAPES))
    chain, length = MarkovChain(matrix, initial=start), 6
    law = reference.chain_law(chain, length)
    window_a, window_b = two_windows(rng, length)
    scales = [Fraction(int(rng.integers(1, 12)), 3) for _ in range(2)]
    releases = [(1, *window_a, scales[0]), (1, *window_b, scales[1])]
    alone = [Spending.dp(1 / s, *w) for s, w in zip(scales, (window_a, window_b), strict=True)]
    inside = [list(range(w[0], w[1] + 1)) for w in (window_a, window_b)]
    influences = compose.influence_between(chain, window_a, window_b, length)
    truth = reference.exact_leakage(law, length, releases, nodes=inside[0] + inside[1])

    quilt_levels = [
        max(reference.total(law, length, [one], nodes), 1e-9)
        for one, nodes in zip(alone, inside, strict=True)
    ]
    exact_levels = [
        max(reference.exact_leakage(law, length, [one], nodes), 1e-9)
        for one, nodes in zip(releases, inside, strict=True)
    ]
    assert truth <= compose.parallel(*exact_levels, *influences) + 1e-9
    account = Accountant(chain, length)
    account.add_all(alone)
    joint = max(account.leakage(*window) for window in (window_a, window_b))
    assert joint <= compose.parallel(*quilt_levels, *influences) * (1 + 1e-9) + 1e-9
    assert truth <= joint * (1 + 1e-9) + 1e-12


def test_the_influence_between_windows_is_paid_by_the_right_side():
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], initial=[0.99, 0.01])
    ab, ba = compose.influence_between(chain, (1, 2), (4, 5), 5)
    assert ab == max_influence(chain, 2, (4,), 5)
    assert ba == max_influence(chain, 4, (2,), 5)
    assert ab != ba
    assert compose.parallel(3, 3, ab, ba) == pytest.approx(3 + max(ab, ba))
    assert compose.parallel(1, 2, math.inf, 0.5) == 3
    with pytest.raises(InvalidInputError, match="disjoint"):
        compose.influence_between(chain, (1, 3), (3, 5), 5)


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_theorem_3_6_holds_with_the_divergence_of_all_answers(seed):
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, rng.choice(["positive", "sparse"]))
    chain, length = MarkovChain(matrix, initial=start), 4
    windows = [sorted(int(t) for t in rng.integers(1, length + 1, 2)) for _ in range(2)]
    scales = [Fraction(int(rng.integers(1, 9)), 2) for _ in range(2)]
    law = reference.chain_law(chain, length)
    releases = [(1, *w, s) for w, s in zip(windows, scales, strict=True)]
    levels = [reference.exact_leakage(law, length, [one]) for one in releases]
    assume(min(levels) > 0)
    truth, divergence = (of(law, length, releases) for of in (reference.exact_leakage, _divergence))
    assert truth <= compose.general(*levels, divergence) + 1e-9
    counts = [
        (queries.count(state).on(*window), scale)
        for state, window, scale in zip(chain.states[1:] * 2, windows, scales, strict=True)
    ]
    assert compose.count_divergence(chain, length, *counts) == pytest.approx(
        divergence, rel=1e-8, abs=1e-9
    )
    assert compose.count_divergence(chain, length, *counts) >= divergence


def test_the_divergence_of_two_counts_says_where_it_cannot_be_computed():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    count = queries.count(1)
    with pytest.raises(UnsupportedError, match="cells; up to 4,096"):
        compose.count_divergence(chain, 100, (count, 1), (count, 1))
    for belief in (
        ChainBox([[0, 0], [0, 0]], [[1, 1], [1, 1]]),
        MarkovChain(chain.transition, "any"),
    ):
        with pytest.raises(UnsupportedError, match="known start"):
            compose.count_divergence(belief, 9, (count, 1), (count, 1))
    for scale in (0, -1, True, math.nan, "1"):
        with pytest.raises(InvalidInputError, match="scale"):
            compose.count_divergence(chain, 9, (count, 1), (count, scale))
    with pytest.raises(InvalidInputError, match="count"):
        compose.count_divergence(chain, 9, (queries.histogram(), 1), (count, 1))
    tiny = compose.count_divergence(chain, 9, (count, Fraction(1, 10**6)), (count, 1))
    assert tiny == math.inf


def _divergence(law, length, releases):
    """E by definition, on answers between and beyond the counts too."""
    counts = {
        path: tuple(sum(x == s for x in path[a - 1 : b]) for s, a, b, _ in releases) for path in law
    }
    answers = np.linspace(-2, length + 2, 8 * (length + 4) + 1)
    worst = 0.0
    for node in range(1, length + 1):
        for state in {path[node - 1] for path in law}:
            here = {path: p for path, p in law.items() if path[node - 1] == state}
            mass = sum(here.values())
            kernels = [
                {n: np.exp(-np.abs(answers - n) / float(scale)) for n in range(length + 1)}
                for *_, scale in releases
            ]
            joint = sum(
                p / mass * np.outer(kernels[0][counts[x][0]], kernels[1][counts[x][1]])
                for x, p in here.items()
            )
            one, two = (
                sum(p / mass * kernels[j][counts[x][j]] for x, p in here.items()) for j in (0, 1)
            )
            worst = max(worst, float(np.abs(np.log(joint / np.outer(one, two))).max()))
    return worst


def test_theorem_2_6_holds_with_fixed_quilts_and_unequal_levels_by_enumeration():
    """One quilt for each node, whatever the level: K releases cost at most K times the largest."""
    closest, compared = 0.0, 0
    for seed in range(sample(12, full=60)):
        rng = np.random.default_rng(seed)
        start, matrix = reference.random_chain(rng, 2, "positive")
        chain, length = MarkovChain(0.3 * matrix + 0.35, initial=start), 5
        fixed = {
            node: tuple(q for q in (node - 1, node + 1) if 1 <= q <= length)
            for node in range(1, length + 1)
        }
        influence = {node: max_influence(chain, node, fixed[node], length) for node in fixed}
        least = max(influence.values())
        levels = [float(least + rng.uniform(0.1, 2)) for _ in range(2)]
        scales = [max(1 / (level - influence[node]) for node in fixed) for level in levels]
        law = reference.chain_law(chain, length)
        state = chain.states[1]
        truth = reference.exact_leakage(law, length, [(state, 1, length, s) for s in scales])
        bound = compose.same_quilts(levels)
        assert bound == pytest.approx(2 * max(levels), rel=1e-12)
        assert truth <= bound * (1 + 1e-9)
        closest, compared = max(closest, truth / bound), compared + (levels[0] != levels[1])
    assert compared > 9
    assert closest > 0.2


def test_theorem_2_6_is_for_levels_of_quilts():
    assert compose.same_quilts([0.1, 0.3, 0.2]) == pytest.approx(0.9)
    assert compose.same_quilts([]) == 0
    swept = calibrate(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 50, 1)
    with pytest.raises(UnsupportedError, match="do not add up"):
        compose.same_quilts([swept])


FAR = MarkovChain([[0.65, 0.35], [0.4, 0.6]])


def test_theorem_3_3_windows_far_apart_cost_the_larger_level():
    """Two counts with MQMApprox noise, each for its window, about every secret of both, exactly."""
    applies, closest = 0, 0.0
    for seed in range(sample(30, full=300)):
        rng = np.random.default_rng(seed)
        stay, move = sorted(rng.uniform(0.3, 0.7, 2))[::-1]
        chain = MarkovChain([[stay, 1 - stay], [move, 1 - move]])
        sizes = [int(size) for size in rng.integers(6, 25, 2)]
        length = sum(sizes) + max(sizes) - 2
        windows = (1, sizes[0]), (length - sizes[1] + 1, length)
        levels = [float(rng.uniform(3, 9)) for _ in windows]
        try:
            bound = compose.distant(*levels, chain, *windows, length)
        except UnsupportedError:
            continue
        noise = [
            calibrate(chain, n, e, "spectral").scale for n, e in zip(sizes, levels, strict=True)
        ]
        releases = [(queries.count(1).on(*w), s) for w, s in zip(windows, noise, strict=True)]
        truth = max(qw.audit.leakage(chain, length, releases, secrets=w) for w in windows)
        assert bound == pytest.approx(max(levels), rel=1e-12)
        assert truth <= bound * (1 + 1e-9)
        applies, closest = applies + 1, max(closest, truth / bound)
    assert applies >= 10
    assert closest > 0.15


def test_theorem_3_3_by_enumeration_of_all_paths():
    chain, size, levels = MarkovChain([[0.52, 0.48], [0.5, 0.5]]), 5, (30, 28)
    windows, length = ((1, 5), (9, 13)), 13
    assert compose.distant(*levels, chain, *windows, length) == 30
    noise = [calibrate(chain, size, level, "spectral").scale for level in levels]
    releases = [(chain.states[1], *w, s) for w, s in zip(windows, noise, strict=True)]
    law = reference.chain_law(chain, length)
    truth = reference.exact_leakage(law, length, releases, nodes=[3, 5, 9])
    assert 1 < truth <= 30


def test_theorem_3_3_asks_for_windows_that_are_far_and_for_a_quilt_on_both_sides():
    assert compose.distant(3, 2, FAR, (1, 30), (60, 90), 90) == 3
    with pytest.raises(UnsupportedError, match=r"29 time points apart; Theorem 3\.3 needs 30"):
        compose.distant(3, 2, FAR, (1, 30), (59, 89), 90)
    with pytest.raises(
        UnsupportedError, match=r"no time point of 1\.\.3 has an active quilt on both"
    ):
        compose.distant(0.1, 2, FAR, (1, 3), (60, 62), 90)
    with pytest.raises(UnsupportedError, match="about MQMApprox on chains"):
        compose.distant(3, 2, ChainBox([[0.5] * 2] * 2, [[0.6] * 2] * 2), (1, 30), (60, 90), 90)
    with pytest.raises(InvalidInputError, match="disjoint, A first"):
        compose.distant(3, 2, FAR, (60, 90), (1, 30), 90)
