"""Joint-quilt totals: equal to brute force, never below the truth, however they are computed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quiltwork.accounting.joint import Joint, Quilts

from evidence import accounting_reference as reference
from quiltwork.accounting import Accountant, Spending, cells
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.influence import calibrate
from quiltwork.influence.arguments import outlooks
from tests.accounting.test_usage import spendings

SHAPES = ["positive", "sparse", "periodic", "deterministic"]


def random_case(seed):
    """A chain, its law and some releases on windows; everything small."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    length = int(rng.integers(1, 7 if size == 3 else 9))
    start, matrix = reference.random_chain(rng, size, rng.choice(SHAPES))
    records = []
    for _ in range(rng.integers(1, 5)):
        a, b = sorted(int(t) for t in rng.integers(1, length + 1, 2))
        costs = (Fraction(int(rng.integers(0, n)), d) for n, d in ((20, 10), (5, 30), (3, 7)))
        records.append(Spending(a, b, *costs))
    return MarkovChain(matrix, initial=start), length, records, rng


@given(st.integers(0, 10**9))
@settings(max_examples=60)
def test_totals_equal_brute_force_over_all_quilts(seed):
    chain, length, records, rng = random_case(seed)
    joint = Joint.nothing(Quilts(outlooks(chain, length, None), 1, length, int(rng.integers(1, 5))))
    for record in records:
        joint = joint.plus(record)
        if rng.random() < 0.5:
            joint.worst()
    expected = reference.total(reference.chain_law(chain, length), length, records)
    found = joint.worst()
    assert float(found.exact) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.exact >= Fraction(expected) * (1 - Fraction(1, 10**12))
    assert joint.fits(found.exact)
    if found.exact > 0:
        assert not joint.fits(found.exact * Fraction(99, 100))


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_the_worst_node_and_its_quilt_give_the_total(seed):
    chain, length, records, _ = random_case(seed)
    account = Accountant(chain, length)
    account.add_all(records)
    worst = account.after().joint.worst()
    if worst.node is None:
        assert worst.exact == 0
        return
    law = reference.chain_law(chain, length)
    first = max((q for q in worst.quilt if q < worst.node), default=0) + 1
    last = min((q for q in worst.quilt if q > worst.node), default=length + 1) - 1
    charge = sum((record.cost(first, last) for record in records), Fraction(0))
    influence = reference.influence(law, worst.node, worst.quilt)
    assert float(charge) + influence <= float(worst.exact) * (1 + 1e-12) + 1e-12


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_small_cells_and_repeated_questions_change_nothing(seed):
    chain, length, records, rng = random_case(seed)
    once = Accountant(chain, length)
    once.add_all(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_SMALLEST", 2)
        often = Accountant(chain, length, budget=10**6)
        for record in records:
            often.add(record)
            if rng.random() < 0.5:
                often.epsilon()
    assert often.epsilon() == pytest.approx(once.epsilon(), rel=1e-12, abs=1e-15)


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_the_profile_holds_at_every_node_and_is_attained_at_the_worst(seed):
    chain, length, records, _ = random_case(seed)
    account = Accountant(chain, length)
    account.add_all(records)
    profile = account.profile().values()
    law = reference.chain_law(chain, length)
    exact = [reference.node_leakage(law, length, i, records) for i in range(1, length + 1)]
    assert (profile >= np.array(exact) * (1 - 1e-12)).all()
    assert profile.max() == pytest.approx(account.epsilon(), rel=1e-12, abs=1e-12)
    assert profile == pytest.approx(np.array(exact), rel=1e-9, abs=1e-9)


def noisy_counts(rng, length, size):
    releases = []
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(int(t) for t in rng.integers(1, length + 1, 2))
        scale = Fraction(int(rng.integers(1, 12)), int(rng.integers(1, 4)))
        releases.append((int(rng.integers(0, size)), a, b, scale))
    return releases


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_no_answer_of_real_noise_tells_more_than_the_total(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    length = int(rng.integers(1, 5))
    start, matrix = reference.random_chain(rng, size, rng.choice(SHAPES))
    chain = MarkovChain(matrix, initial=start)
    releases = noisy_counts(rng, length, size)
    account = Accountant(chain, length)
    for _, a, b, scale in releases:
        account.spend(1 / scale, a, b)
    law = reference.chain_law(chain, length)
    assert reference.exact_leakage(law, length, releases) <= account.epsilon() * (1 + 1e-9) + 1e-12


def test_the_total_is_what_leaks_where_points_are_independent():
    coin = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    releases = [(1, 1, 4, Fraction(2)), (1, 2, 3, Fraction(1)), (0, 3, 3, Fraction(4))]
    account = Accountant(coin, 4)
    for _, a, b, scale in releases:
        account.spend(1 / scale, a, b)
    leaked = reference.exact_leakage(reference.chain_law(coin, 4), 4, releases)
    assert account.exact_epsilon == Fraction(7, 4)
    assert leaked == pytest.approx(1.75, rel=1e-9)


@given(st.integers(0, 10**9), st.integers(-1, 5))
@settings(max_examples=25)
def test_the_next_window_may_depend_on_the_last_answer(seed, answer):
    """Transcript by transcript: fix the first answer and what it led to, try all second ones."""
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, "positive")
    chain, length = MarkovChain(matrix, initial=start), 4
    later = (1, 1, 2, Fraction(1)) if answer > 1 else (0, 3, 4, Fraction(1, 2))
    releases = [(1, 1, 4, Fraction(3)), later]
    law = reference.chain_law(chain, length)
    counts = {
        path: tuple(sum(x == s for x in path[a - 1 : b]) for s, a, b, _ in releases) for path in law
    }
    grid = [(answer, second) for second in range(-1, 4)]
    account = Accountant(chain, length)
    for _, a, b, scale in releases:
        account.spend(1 / scale, a, b)
    for node in range(1, length + 1):
        densities = reference.node_densities(law, counts, node, grid, [3.0, float(later[3])])
        for p in densities:
            for q in densities:
                assert float(np.log(p / q).max()) <= account.epsilon() * (1 + 1e-9)


def test_ten_releases_of_level_one_cost_less_than_ten():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    scale = calibrate(chain, 100, 1).exact_scale
    account = Accountant(chain, 100)
    account.add_all([Spending.dp(1 / scale, 1, 100)] * 10)
    assert account.epsilon() == pytest.approx(4.298114, abs=5e-7)


@given(spendings(length=40), st.sampled_from(["stationary", "any", "given"]))
@settings(max_examples=25)
def test_a_finite_set_costs_the_worst_of_its_members(records, start):
    initial = [0.3, 0.7] if start == "given" else start
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=initial)
    other = MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    box = ChainBox([[0.75, 0.05], [0.25, 0.5]], [[0.95, 0.25], [0.5, 0.75]])
    alone = []
    for beliefs in ([chain], [other], [box], [chain, other, box]):
        account = Accountant(beliefs, 40)
        account.add_all(records)
        alone.append(account.exact_epsilon)
    assert alone[3] == max(alone[:3])
    assert alone[2] >= alone[1] * (1 - Fraction(1, 10**9)), "the box holds the other chain"


@given(st.integers(0, 10**9))
@settings(max_examples=25)
def test_any_start_and_a_box_cover_every_chain_they_stand_for(seed):
    rng = np.random.default_rng(seed)
    start, matrix = reference.random_chain(rng, 2, "positive")
    length, records = 6, random_case(seed)[2]
    records = [r for r in records if r.stop <= length]
    law = reference.path_law(start, matrix, length)
    truth = reference.total(law, length, records) if records else 0.0
    box = ChainBox(matrix * 0.9, np.minimum(1, matrix * 1.1))
    for belief in (MarkovChain(matrix, initial="any"), box):
        account = Accountant(belief, length)
        account.add_all(records)
        assert account.epsilon() >= truth * (1 - 1e-12)


@given(spendings(length=10), st.lists(st.integers(0, 3), min_size=10, max_size=10))
@settings(max_examples=40)
def test_clusters_cost_the_dearest_cluster(records, labels):
    account = Accountant(Clusters(labels))
    account.add_all(records)
    charges = []
    for cluster in set(labels):
        rows = [i + 1 for i, label in enumerate(labels) if label == cluster]
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        charges.append(
            sum((r.cost(int(run[0]), int(run[-1])) for r in records for run in runs), Fraction(0))
        )
    assert account.exact_epsilon == max(charges)
    values = account.profile().values()
    assert float(values.max()) == account.epsilon()


@given(
    st.integers(0, 10**9), st.sampled_from([[[0.7, 0.3], [0.45, 0.55]], [[0.95, 0.05], [0.1, 0.9]]])
)
@settings(max_examples=12)
def test_long_series_agree_with_a_plain_search_over_all_quilts_of_all_nodes(seed, matrix):
    """Cells, corners, reach, quilts learnt and far ends, against one array per node."""
    rng = np.random.default_rng(seed)
    length, records = 200, []
    for _ in range(rng.integers(1, 12)):
        a, b = sorted(int(t) for t in rng.integers(1, length + 1, 2))
        records.append(Spending.dp(Fraction(int(rng.integers(1, 60)), 1000), a, b))
    density = np.zeros(length + 1)
    for r in records:
        density[r.start : r.stop + 1] += float(r.per_point)
    upto = np.cumsum(density)
    left, right = sides(np.array(matrix), length)
    best = 0.0
    for i in range(1, length + 1):
        a, b = np.arange(1, i), np.arange(1, length - i + 1)
        before = np.append(upto[i - 1] - upto[i - a], upto[i - 1])
        after = np.append(upto[i + b - 1] - upto[i], upto[length] - upto[i])
        e = np.max(
            np.append(left[:, : i - 1], [[0], [0]], axis=1)[:, :, np.newaxis]
            + np.append(right[:, : length - i], [[0], [0]], axis=1)[:, np.newaxis, :],
            axis=0,
        )
        best = max(best, float((before[:, np.newaxis] + after + density[i] + e).min()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_SMALLEST", 16)
        account = Accountant(MarkovChain(matrix), length)
        account.add_all(records)
        assert account.epsilon() == pytest.approx(best, rel=1e-9)


def sides(matrix, length):
    """L_a and R_b of a stationary two-state chain, for both orders of the states."""
    stationary = np.array([matrix[1, 0], matrix[0, 1]]) / (matrix[1, 0] + matrix[0, 1])
    left, right, power = [], [], np.eye(2)
    for _ in range(length):
        power = power @ matrix
        backward = power * stationary[:, np.newaxis] / stationary
        right.append([np.log(power[x] / power[1 - x]).max() for x in (0, 1)])
        left.append([np.log(backward[:, x] / backward[:, 1 - x]).max() for x in (0, 1)])
    return np.array(left).T, np.array(right).T
