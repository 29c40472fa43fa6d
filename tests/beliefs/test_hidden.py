"""Beliefs of which the data show a function: memory, ages and states that nobody sees."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import HiddenChain, InvalidInputError, MarkovChain, UnsupportedError, queries
from quiltwork.beliefs import belief_from_json, contexts

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def law_of_paths(belief, length):
    """P(shown path), by adding up all inner paths."""
    inner, found = belief.inner, {}
    for path in itertools.product(range(inner.size), repeat=length):
        chance = inner.start[path[0]]
        for x, y in itertools.pairwise(path):
            chance = chance * inner.transition[x, y]
        shown = tuple(belief.shown[list(path)].tolist())
        found[shown] = found.get(shown, 0.0) + chance
    return found


def test_what_is_shown_has_the_marginals_of_all_inner_paths():
    belief = HiddenChain([[0.6, 0.4, 0], [0.1, 0.5, 0.4], [0.5, 0, 0.5]], ["a", "b", "a"])
    law = law_of_paths(belief, 3)
    for node in range(3):
        share = sum(chance for path, chance in law.items() if path[node] == 1)
        assert belief.marginal(node + 1)[1] == pytest.approx(share, rel=1e-9)
    assert sum(law.values()) == pytest.approx(1)


def test_emissions_are_pairs_of_a_hidden_state_and_what_it_shows():
    emissions = np.array([[0.8, 0.2], [0.1, 0.9]])
    belief = HiddenChain.from_emissions(P, emissions, [0.3, 0.7], ["x", "y"])
    law = law_of_paths(belief, 3)
    for shown in itertools.product(range(2), repeat=3):
        direct = np.array([0.3, 0.7]) * emissions[:, shown[0]]
        for code in shown[1:]:
            direct = direct @ P * emissions[:, code]
        assert law[shown] == pytest.approx(direct.sum(), rel=1e-9)
    sharp = HiddenChain.from_emissions(P, np.eye(2))
    assert sharp.inner.size == 2
    assert qw.calibrate(sharp, 100, 1.0).scale == pytest.approx(
        qw.calibrate(MarkovChain(P), 100, 1.0).scale, rel=1e-9
    )


def test_paths_that_cannot_be_shown_are_known():
    ring = HiddenChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], ["a", "b", "b"], [1, 0, 0])
    assert ring.allows(np.array([0, 1, 1, 0]))
    assert not ring.allows(np.array([0, 1, 0]))
    assert ring.support(2).tolist() == [False, True]
    assert ring.sample(6, seed=0).tolist() == ["a", "b", "b", "a", "b", "b"]


@pytest.mark.parametrize("initial", ["stationary", "any", [0.2, 0.3, 0.5]])
def test_files_and_copies_give_the_same_belief(initial):
    rows = [[0.6, 0.4, 0], [0.1, 0.5, 0.4], [0.5, 0, 0.5]]
    belief = HiddenChain(rows, [1, "b", 1], initial, ["b", 1], grid=qw.Grid(step="1h"))
    assert belief_from_json(belief.to_json()) == belief == copy.deepcopy(belief)
    assert hash(belief_from_json(belief.to_json())) == hash(belief)
    assert belief != HiddenChain(rows, [1, 1, "b"], initial, ["b", 1], grid=qw.Grid(step="1h"))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: HiddenChain(P, ["a"]), "1 labels for 2 inner states"),
        (lambda: HiddenChain(P, ["a", "b"], states=["a", "c"]), "Inner state 2 shows 'b'"),
        (lambda: HiddenChain.from_emissions(P, [[1.0]]), "1 rows for 2 hidden states"),
        (lambda: HiddenChain.from_emissions(P, [[0.5, 0.6], [0, 1]]), "Row 1 of emissions sums"),
        (lambda: MarkovChain.fit([0, 1, 0, 1], order=2, durations=True), "two kinds of memory"),
        (lambda: MarkovChain.fit([0, 1, 0], order=2, initial=[1, 0]), "begins with a past"),
        (lambda: MarkovChain.fit(list(range(9)) * 2, order=3), "729 pasts"),
        (lambda: MarkovChain.fit([0, 1, 0, 1], order=0), "order must be at least 1"),
        (lambda: MarkovChain.fit([0, 1, 0, 1, 1, 1, 0], 0, order=3), "smoothing > 0"),
    ],
)
def test_what_makes_no_sense_is_refused(build, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        build()


def test_contexts_of_order_two_are_pairs_of_states():
    kind = contexts.last_states(3, 2)
    path = np.array([0, 2, 1, 1, 0])
    assert kind.read(path).tolist() == [-1, 0 * 3 + 2, 2 * 3 + 1, 1 * 3 + 1, 1 * 3 + 0]
    for context, state in np.ndindex(9, 3):
        assert kind.follows[context, state] == context % 3 * 3 + state


def test_ages_count_up_to_the_cap_and_begin_anew_with_every_change():
    kind = contexts.ages(2, 3)
    path = np.array([0, 0, 1, 1, 1, 1, 1, 0, 1])
    assert kind.read(path).tolist() == [-1, -1, 3, 4, 5, 5, 5, 0, 3]
    assert kind.read(np.array([1, 1, 1, 1])).tolist() == [-1, -1, 5, 5]
    for path in np.random.default_rng(0).integers(0, 2, (50, 12)):
        read = kind.read(path)
        for t in range(11):
            if read[t] >= 0:
                assert kind.follows[read[t], path[t + 1]] == read[t + 1]


def test_a_fit_of_order_two_has_the_frequencies_of_pairs():
    data = np.random.default_rng(3).choice(2, 20_000)
    data[2:] = np.where(np.arange(19_998) % 5 < 3, data[:-2], data[2:])
    fitted = MarkovChain.fit(data, order=2)
    pairs, hits = np.zeros(4), np.zeros(4)
    for x, y, z in zip(data, data[1:], data[2:], strict=False):
        pairs[2 * x + y] += 1
        hits[2 * x + y] += z
    rows = fitted.inner.transition
    ones = [rows[c, contexts.last_states(2, 2).follows[c, 1]] for c in range(4)]
    assert ones == pytest.approx((hits / pairs).tolist(), abs=2e-3)


def test_stays_that_are_not_geometric_are_told_by_their_age():
    rng = np.random.default_rng(4)
    stays = [int(n) for n in rng.integers(5, 8, 2000)]
    data = np.concatenate([np.full(n, i % 2) for i, n in enumerate(stays)])
    fitted = MarkovChain.fit(data, durations=True)
    assert fitted.inner.size >= 2 * 6
    drawn = fitted.sample(20_000, seed=1)
    lengths = np.diff(np.flatnonzero(np.diff(drawn)))
    assert np.quantile(lengths, 0.05) > 4.5
    assert lengths.mean() == pytest.approx(6, abs=0.2)
    plain = MarkovChain.fit(MarkovChain(P).sample(5000, seed=1), durations=True)
    assert plain.inner.size <= 8


def test_users_speak_of_shown_states_everywhere(tmp_path):
    data = MarkovChain(P, states=["rest", "walk"]).sample(400, seed=2)
    belief = MarkovChain.fit(MarkovChain(P, states=["rest", "walk"]).sample(4000, seed=3), order=2)
    released = qw.release(data, queries.histogram(), belief, epsilon=1.0, secrets=(1, 200))
    assert released.cells == ("rest", "walk")
    assert len(qw.release(data, queries.transitions(), belief, epsilon=1.0).cells) == 4
    with pytest.raises(InvalidInputError, match="none of the belief's states"):
        qw.release(["run"] * 5, queries.histogram(), belief)
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path / 'b.db'}")
    ledger.create("d", belief, 400, budget=2.0)
    qw.release(data, queries.count("walk"), belief, 1.0, ledger=ledger, dataset="d")
    assert ledger.accountant("d").epsilon() == pytest.approx(1.0, rel=1e-6)
    assert qw.calibrate(belief, 400, 1.0, "group").scale == 400
    with pytest.raises(UnsupportedError, match="Leave method out"):
        qw.calibrate(belief, 400, 1.0, "exact")
    assert 0.1 < qw.bayesian_dp(belief, 0.1, length=400) < 400 * 0.1
    assert qw.Accountant([belief, MarkovChain(P, states=["rest", "walk"])], 400).explain()


def test_an_order_too_high_for_the_data_costs_next_to_nothing():
    """A chain of order one seen as one of order two needs the same noise."""
    rows = np.zeros((4, 4))
    for last in range(4):
        rows[last, last % 2 * 2 : last % 2 * 2 + 2] = P[last % 2]
    seen = HiddenChain(rows, [0, 1, 0, 1])
    for length in (6, 300, 5000):
        plain = qw.calibrate(MarkovChain(P), length, 1.0).scale
        assert qw.calibrate(seen, length, 1.0).scale == pytest.approx(plain, rel=1e-5)
