"""Which beliefs public data leave plausible."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import CyclicChain, HiddenChain, MarkovChain
from quiltwork.beliefs import candidates, contexts
from quiltwork.beliefs.alternatives import nats_allowed

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def test_data_of_a_chain_leave_the_chain():
    found = candidates(MarkovChain(P).sample(5000, seed=1), period=24)
    assert found[0].name == "order 1"
    assert found[0].plausible
    assert isinstance(qw.plausible(MarkovChain(P).sample(5000, seed=1))[0], MarkovChain)


def test_data_with_a_clock_rule_out_chains_without_one():
    day = CyclicChain([[[0.97, 0.03], [0.9, 0.1]]] * 12 + [[[0.2, 0.8], [0.1, 0.9]]] * 12)
    data = day.sample(24 * 200, seed=2)
    (best,) = qw.plausible(data, period=24)
    assert isinstance(best, CyclicChain)
    assert all(not isinstance(one, CyclicChain) for one in qw.plausible(data))


def test_data_that_remember_two_states_rule_out_order_one():
    rows = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])
    inner = contexts.inner_matrix(rows, contexts.last_states(2, 2))
    data = HiddenChain(inner, [0, 1, 0, 1]).sample(20_000, seed=3)
    found = candidates(data)
    assert found[0].name in ("order 2", "durations")  # for two states one knows what the other does
    assert not next(one for one in found if one.name == "order 1").plausible
    second = next(one for one in found if one.name == "order 2")
    assert second.plausible
    assert second.belief == MarkovChain.fit(data, order=2)


def test_the_score_is_the_likelihood_of_each_half_by_the_other_with_the_best_smoothing():
    path = np.random.default_rng(4).integers(0, 2, 160)
    half = contexts.fold_of_steps(path, 0)
    totals = []
    for amount in (0.5 * 4.0**power for power in range(-5, 4)):
        total = 0.0
        for fit, seen in ((0, 1), (1, 0)):
            counts = np.full((2, 2), amount)
            for t in np.flatnonzero(half == fit):
                counts[path[t], path[t + 1]] += 1
            rows = counts / counts.sum(axis=1, keepdims=True)
            total += sum(np.log(rows[path[t], path[t + 1]]) for t in np.flatnonzero(half == seen))
        totals.append(total)
    one = contexts.last_states(2, 1)
    assert contexts.held_out_log_likelihood([path], one, 2, 0.5) == pytest.approx(
        max(totals), rel=1e-12
    )


def _warned_of_order_two(size: int, steps: int, mixed: float, cases: int) -> int:
    """How often order two beats order one on chains of which a part remembers two states."""
    found = 0
    for case in range(cases):
        random = np.random.default_rng((size, steps, case))
        spread, stay = np.full(size, (0.05, 0.3, 2.0)[case % 3]), (0.0, 0.7, 0.97)[case // 3 % 3]
        plain = stay * np.eye(size) + (1 - stay) * random.dirichlet(spread, size)
        rows = (1 - mixed) * plain + mixed * random.dirichlet(np.full(size, 0.05), (size, size))
        sums, drawn = rows.cumsum(axis=2), random.random(steps + 1)
        path, before, last = np.zeros(steps + 1, dtype=np.int64), 0, 0
        for t, level in enumerate(drawn.tolist()):
            after = min(int(sums[before, last].searchsorted(level)), size - 1)
            path[t], before, last = after, last, after
        score = [
            contexts.held_out_log_likelihood([path], contexts.last_states(size, order), size, 0.5)
            for order in (1, 2)
        ]
        found += score[1] > score[0] + nats_allowed(steps)
    return found


@pytest.mark.parametrize(("size", "steps"), [(3, 3000), (27, 3000)])
def test_order_two_is_seen_where_it_is_true_and_nowhere_else(size, steps):
    assert _warned_of_order_two(size, steps, 0.0, 18) == 0
    assert _warned_of_order_two(size, steps, 0.5, 18) >= 16


def test_a_guarantee_under_the_list_is_the_worst_of_its_members():
    data = MarkovChain(P).sample(400, seed=5)
    found = qw.plausible(data)
    scales = [qw.calibrate(one, 300, 1.0).scale for one in found]
    assert qw.calibrate(found, 300, 1.0).scale == max(scales)
