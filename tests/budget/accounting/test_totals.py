"""Totals: nearly never above quilts, however computed.

That no mechanism tells more is tested in tests/influence/sweep/test_evidence.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quiltwork as qw
from evidence import accounting_reference as reference
from quiltwork.beliefs import ChainBox, Clusters, HiddenChain, MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.influence import calibrate
from quiltwork.influence.sweep import Sweep, fixed_point, noise
from tests.budget.accounting.test_usage import spendings
from tests.sizes import sample

SHAPES = ["positive", "sparse", "periodic", "deterministic"]
NEARLY = 1.01  # chains without zeros are swept one node at a time, and quilts may jump


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
@settings(max_examples=40)
def test_a_total_is_hardly_above_the_best_quilts_for_all_releases_together(seed):
    chain, length, records, _ = random_case(seed)
    account = Accountant(chain, length)
    account.add_all(records)
    quilts = reference.total(reference.chain_law(chain, length), length, records)
    assert account.epsilon() <= quilts * NEARLY + 1e-9


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_the_worst_node_and_what_surrounds_it_give_the_total(seed):
    chain, length, records, _ = random_case(seed)
    account = Accountant(chain, length)
    account.add_all(records)
    worst = account.after().worst
    if worst.node is None:
        assert worst.exact == 0
        return
    charge = float(sum((record.cost(worst.node, worst.node) for record in records), Fraction(0)))
    total_charge = float(sum((record.cost(1, length) for record in records), Fraction(0)))
    assert worst.own == pytest.approx(charge, rel=1e-9)
    found = min(worst.own + worst.before + worst.after, total_charge) if worst.exact else 0.0
    assert float(worst.exact) == pytest.approx(found, rel=1e-9)


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_repeated_questions_change_nothing(seed):
    chain, length, records, rng = random_case(seed)
    once = Accountant(chain, length)
    once.add_all(records)
    often = Accountant(chain, length, budget=99)
    for record in records:
        often.add(record)
        if rng.random() < 0.5:
            often.epsilon()
    assert often.epsilon() == pytest.approx(once.epsilon(), rel=1e-8, abs=1e-15)


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_the_profile_holds_at_every_node_and_is_attained_at_the_worst(seed):
    rng = np.random.default_rng(seed)
    size, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    start, matrix = reference.random_chain(rng, size, rng.choice(SHAPES))
    chain, releases = MarkovChain(matrix, initial=start), noisy_counts(rng, length, size)
    account = Accountant(chain, length)
    for _, a, b, scale in releases:
        account.spend(1 / scale, a, b)
    profile, law = account.profile().values(), reference.chain_law(chain, length)
    for node in range(1, length + 1):
        told = reference.exact_leakage(law, length, releases, [node])
        assert told <= profile[node - 1] * (1 + 1e-9) + 1e-12
    assert profile.max() == pytest.approx(account.epsilon(), rel=1e-8, abs=1e-12)


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
    account = {}
    for method in ("exact", "sweep"):
        scale = calibrate(chain, 100, 1, method).exact_scale
        account[method] = Accountant(chain, 100)
        account[method].add_all([Spending.dp(1 / scale, 1, 100)] * 10)
    assert account["exact"].epsilon() == pytest.approx(2.675, abs=5e-4)
    assert account["sweep"].epsilon() < 10


@given(spendings(length=40), st.sampled_from(["stationary", "any", "given"]))
@settings(max_examples=sample(12, full=25))
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
    assert float(alone[3]) == pytest.approx(float(max(alone[:3])), rel=1e-8)
    assert alone[2] >= alone[1] * (1 - Fraction(1, 10**9)), "the box holds the other chain"


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
    total = sum((r.cost(1, len(labels)) for r in records), Fraction(0))  # all rows at once
    assert account.exact_epsilon == min(max(charges), total)
    values = account.profile().values()
    assert float(values.max()) == account.epsilon()


@pytest.mark.parametrize(
    ("belief", "length"),
    [
        (
            MarkovChain(
                [[0.9, 0.1 - 1e-5, 1e-5], [0, 0.9, 0.1], [1e-6, 0.1, 0.9 - 1e-6]], initial="any"
            ),
            1000,
        ),
        (ChainBox([[0.998, 0.001], [0.001, 0.998]], [[0.999, 0.002], [0.002, 0.999]]), 10**4),
    ],
    ids=["long-spans", "slow-box"],
)
def test_noise_of_a_slow_chain_fits_a_budget_of_its_own_epsilon(belief, length, monkeypatch):
    """Where sweeps begin nearer, less slow chains do not forget."""
    monkeypatch.setattr(noise, "MOST_WARM_UP", 512)
    epsilon = 0.02
    scale = calibrate(belief, length, epsilon).scale
    account = Accountant(belief, length, budget=epsilon)
    account.spend(dp_epsilon=float(np.nextafter(1 / scale, 0)))
    assert account.epsilon() <= epsilon


@pytest.mark.parametrize(("rare", "length"), [(1e-4, 10_080), (1e-3, 1900)])
def test_noise_of_slow_states_is_what_an_account_of_the_whole_series_asks_for(
    rare, length, monkeypatch
):
    """A week of minutes: the account feels both ends everywhere, and so does the noise for it."""
    if length < 10_000:
        monkeypatch.setattr(noise, "MOST_WARM_UP", 512)
    belief = MarkovChain([[1 - rare, rare], [rare, 1 - rare]])
    account = Accountant(belief, length, budget=1)
    account.spend(dp_epsilon=float(np.nextafter(1 / calibrate(belief, length, 1).scale, 0)))
    assert 0.998 < account.epsilon() <= 1


def hidden(size, seed=1):
    """Three states, of which each stays for some time, as many behind them show it."""
    inner = 0.8 * np.eye(size) + 0.2 * np.random.default_rng(seed).dirichlet(np.ones(size), size)
    return HiddenChain(inner, [f"s{i % 3}" for i in range(size)])


@pytest.mark.parametrize("size", [6, 16])
def test_noise_of_hidden_states_fits_a_budget_of_its_own_epsilon(size):
    belief, length = hidden(size), 20_000
    level = float(np.nextafter(1 / calibrate(belief, length, 0.5).scale, 0))
    account = Accountant(belief, length, budget=0.5)
    account.spend(dp_epsilon=level)
    assert 0.499 < account.epsilon() <= 0.5
    assert account.epsilon() < 25 * level  # far from what all nodes at once would take


def test_windows_of_states_with_too_many_behind_them_cost_no_more_than_all_nodes(monkeypatch):
    """A sweep around every window would take minutes."""
    monkeypatch.setattr(Sweep, "affordable", lambda self, nodes: 0)
    belief, length = hidden(6), 20_000
    whole, windows = (Accountant(belief, length) for _ in range(2))
    whole.spend(0.02)
    for start in (1, 5000, 12_000):
        windows.spend(0.02, start, start + 3000)
    assert windows.epsilon() <= whole.epsilon()
    assert windows.epsilon() == pytest.approx(whole.epsilon(), rel=1e-6)


def test_noise_of_a_window_fits_where_states_have_too_many_behind_them(monkeypatch):
    belief, length = hidden(6), 20_000
    query = qw.queries.count("s1").on(5001, 5010)
    level = float(np.nextafter(1 / calibrate(belief, length, 0.5, query=query).scale, 0))
    monkeypatch.setattr(Sweep, "affordable", lambda self, nodes: 0)
    account = Accountant(belief, length, budget=0.5)
    account.spend(level, 5001, 5010)
    assert 0.49 < account.epsilon() <= 0.5


def test_few_points_of_states_with_too_many_behind_them_cost_no_more_than_their_sum(monkeypatch):
    """Their level on all nodes would; a level that is too high for any bound costs no more."""
    belief, length = hidden(6), 700
    swept = Accountant(belief, length)
    monkeypatch.setattr(fixed_point, "_FAR", 5.0)
    monkeypatch.setattr(Sweep, "affordable", lambda self, nodes: 0)
    account = Accountant(belief, length)
    account.spend(0.02)
    whole = account.epsilon()
    for each in (0.05, 3):
        account.spend(each, 300, 302)
        assert account.epsilon() <= (whole + 3 * sum((0.05, each)[: 1 + (each > 1)])) * (1 + 1e-9)
    monkeypatch.undo()
    swept.add_all(account.spendings)
    assert float(swept.profile().epsilon.max()) <= account.epsilon()


@pytest.mark.parametrize("seed", range(3))
def test_a_total_of_hidden_states_is_no_less_than_what_a_sweep_of_all_nodes_says(seed):
    belief, length = hidden(4, seed), 700
    account = Accountant(belief, length)
    for start, stop in ((1, 700), (200, 230), (215, 600))[: seed + 1]:
        account.spend(0.05, start, stop)
        swept = float(account.profile().epsilon.max())
        assert swept * (1 - 1e-6) <= account.epsilon() <= swept * (1 + 1e-3)
